"""Functions of the program that a host calls with arrays of its own on a GPU."""

import work as driver
from work import COUNT, read_words, work, write_words

kept = []


def address(x):
    """Of the first element, whatever x is."""
    if hasattr(x, "data_ptr"):
        return x.data_ptr()
    if hasattr(x, "unsafe_buffer_pointer"):
        return x.unsafe_buffer_pointer()
    return x.__cuda_array_interface__["data"][0]


def enter():
    """Work in the primary context, on whatever thread this is."""
    driver.use_primary()
    work.prepare()


def sees(x):
    """The least and the greatest element."""
    enter()
    return read_words(address(x), COUNT)


def late_fill(x, value):
    """Has x written, after a while, and returns at once."""
    enter()
    work.begin(0)
    write_words(address(x), value, COUNT)


def late_raise(x, value):
    late_fill(x, value)
    raise ValueError("late_raise")


def late_values(x, n):
    for i in range(n):
        late_fill(x, i)
        yield i


def keep(x):
    kept.append(x)


def late_kept(x, value):
    """The program's own array, which is written after a while."""
    late_fill(kept[-1], value)
    return kept[-1]


def broken_kept(x):
    """The program's own array, and work behind which there is nothing to be had any more."""
    enter()
    work.fail()
    return kept[-1]


def sees_kept():
    return sees(kept[-1])


def drop_late():
    """Lets go of what it keeps while the GPU is to write there."""
    late_fill(kept[-1], 9)
    kept.clear()


def drop():
    kept.clear()


def kind(x):
    return type(x).__module__.split(".")[0]


def twice(x):
    return x * 2


def nothing(*x):
    pass


def free():
    """The device's free memory in bytes."""
    enter()
    return driver.free_memory()


def same(x):
    return x is kept[-1]
