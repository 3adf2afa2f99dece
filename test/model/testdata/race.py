"""Changes arrays at full speed, in a thread for each name, and says nothing about it: each array says by its
elements which one it is.

Every array is full of one word of eight bytes (four, for JAX): a mark, the number of its name, a generation, and
a check. So whoever sees an array that is mixed from two, or somebody else's, knows it. Layouts follow from the
generation. Before an array of a generation can be seen, the counter "begun" of its name has that generation; when
it has taken the place of the one before, "done" has it. Both are in a file that the host reads.

Arguments: COUNTERS ERRORS SECONDS-OF-A-SWITCH NAMES, where NAMES is a JSON list of [name, what happens to it]. The
program ends when the first counter is 1, and writes the exceptions that it met into the file ERRORS.
"""

import gc
import json
import os
import sys
import threading
import time
import traceback

import numpy as np

try:
    import ndbridge
except ImportError:
    ndbridge = None

COUNTERS = np.memmap(sys.argv[1], "u8", "r+")
NAMES = json.loads(sys.argv[4])
SIZES = [512, 4096, 65536, 81920, 1 << 20]
LAYOUTS = [  # as the host has them, too
    ("<f8", "C"), ("<i8", "T"), ("u1", "C"), ("<c16", "F"), ("<f4", "C"), ("<i2", "C"), (">f8", "R"), ("<f8", "S"),
]
errors = {}
d, l = {}, [None]


class Node:
    pass


o = Node()


def word(number, generation):
    bits = 0xA5 << 56 | number << 48 | (generation & 0xFFFFFFFF) << 8
    return (bits | (bits >> 48 ^ bits >> 32 ^ bits >> 16 ^ bits >> 8) & 0xFF).to_bytes(8, "little")


def make(number, generation, size=None):
    """The array of a generation: its size and its layout follow from it."""
    size = size or SIZES[generation % len(SIZES)]
    dtype, order = LAYOUTS[generation % len(LAYOUTS)]
    a = np.empty(size * (2 if order == "S" else 1) // np.dtype(dtype).itemsize, dtype)
    write(a, number, generation)
    if order == "T":
        return a.reshape(-1, 16).T
    if order == "F":
        return a.reshape(16, -1, order="F")
    if order == "R":
        return a[::-1]
    if order == "S":
        return a[::2]
    return a


def write(a, number, generation):
    """Write a whole array while Python's lock is held."""
    memoryview(a.view("u1")).cast("B")[:] = word(number, generation) * (a.nbytes // 8)


class Counter:
    """The generations of one name."""

    def __init__(self, number):
        self.number, self.generation = number, 0

    def begin(self):
        self.generation += 1
        COUNTERS[2 * self.number] = self.generation
        return self.generation

    def done(self):
        COUNTERS[2 * self.number + 1] = self.generation


def note(what):
    kind, error, _ = sys.exc_info()
    key = "%s: %s" % (what, kind.__name__)
    if key not in errors:
        errors[key] = [0, traceback.format_exc()]
    errors[key][0] += 1


def running():
    return COUNTERS[0] == 0


def loop(what, counter, turn):
    """Begin a generation, make it, and count the exceptions."""
    while running():
        generation = counter.begin()
        try:
            turn(generation)
        except Exception:
            note(what)
        else:
            counter.done()


def rebind(name, counter):
    """Names of every kind get new arrays."""
    code = compile("%s = make(number, generation)" % name, name, "exec")
    scope = globals()

    def turn(generation):
        bound = dict(number=counter.number, generation=generation)
        exec(code, scope, bound) if "[" in name or "." in name else scope.__setitem__(name, make(**bound))

    return turn


def come_and_go(name, counter):
    def turn(generation):
        globals()[name] = make(counter.number, generation)
        if generation % 3 == 0:
            del globals()[name]
            gc.collect(0)

    return turn


def computed(name, counter):
    """A property that makes an array each time that it is asked for."""

    class Computed:
        @property
        def a(self):
            with lock:
                a = make(counter.number, counter.begin())
                counter.done()
                return a

    lock = threading.Lock()
    globals()[name.split(".")[0]] = Computed()
    return None


def whole(name, counter, size):
    """One array, all of which is written at once."""
    a = globals()[name] = np.zeros(size, "u1")
    write(a, counter.number, 0)
    return lambda generation: write(a, counter.number, generation)


def small_whole(name, counter):
    return whole(name, counter, 4096)


def large_whole(name, counter):
    return whole(name, counter, 1 << 20)


def refill(name, counter):
    """One array object, which gets other memory, another shape and another type."""
    a = globals()[name] = np.zeros(512, "u1")
    write(a, counter.number, 0)

    def turn(generation):
        b = make(counter.number, generation)
        c = np.zeros(b.size, b.dtype.newbyteorder("="))  # NumPy turns what is read as foreign
        write(c, counter.number, generation)
        a.__setstate__((1, c.shape, c.dtype, False, c.tobytes()))

    return turn


def resized(name, counter, **how):
    """One array that grows and shrinks: what is new is zero until all is written."""
    a = globals()[name] = np.zeros(1 << 17, "u1")
    write(a, counter.number, 0)

    def turn(generation):
        globals()[name].resize((1 << 17) * (1 + generation % 3), **how)
        write(globals()[name], counter.number, generation)
        time.sleep(0)

    del a
    return turn


def resized_without_check(name, counter):
    return resized(name, counter, refcheck=False)


def bytes_that_grow(name, counter):
    """Python's own array of bytes cannot grow while somebody holds on to it."""
    b = globals()[name] = bytearray(word(counter.number, 0) * 25000)

    def turn(generation):
        b.append(0)
        b.pop()
        b[:] = word(counter.number, generation) * 25000

    return turn


def published(name, counter):
    return lambda generation: ndbridge.publish(name, make(counter.number, generation))


def published_and_not(name, counter):
    def turn(generation):
        ndbridge.publish(name, make(counter.number, generation))
        if generation % 5 == 0:
            ndbridge.unpublish(name)

    return turn


at_once = []


def together(name, counter):
    at_once.append((name, counter))
    return None


def all_together(name, counter):
    """Several names, each version of which is published with those of the others."""

    def turn(generation):
        for _, other in at_once:
            other.begin()
        ndbridge.publish({n: make(c.number, generation) for n, c in at_once + [(name, counter)]})
        for _, other in at_once:
            other.done()

    return turn


def torch_of(a):
    import torch

    return torch.from_numpy(a).clone()


def plain(counter, generation):
    """An array that is the same to PyTorch: rows of 64-bit integers."""
    a = np.empty(SIZES[generation % len(SIZES)] // 8, "<i8")
    write(a, counter.number, generation)
    return a


def torch_set(name, counter):
    t = globals()[name] = torch_of(plain(counter, 0))
    return lambda generation: t.set_(torch_of(plain(counter, generation)))


def torch_data(name, counter):
    t = globals()[name] = torch_of(plain(counter, 0))
    return lambda generation: setattr(t, "data", torch_of(plain(counter, generation)))


def torch_published(name, counter):
    """A parameter that is published once, and gets other memory in each round."""
    import torch

    t = torch.nn.Parameter(torch_of(plain(counter, 0)), requires_grad=False)
    ndbridge.publish(name, t)
    return lambda generation: setattr(t, "data", torch_of(plain(counter, generation)))


def jax_donated(name, counter):
    """Each array is made in the memory of the one before. JAX has no word of eight bytes by default."""
    import jax
    import jax.numpy as jnp

    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    globals()[name] = jnp.full(20000, 0x5A000000 | counter.number << 20, "int32")
    counter.generation = 0

    def turn(generation):
        globals()[name] = step(globals()[name])
        globals()[name].block_until_ready()

    return turn


def jax_alias(name, counter):
    """An array of JAX over memory of NumPy's, which is written as a whole."""
    import jax

    memory = np.zeros((1 << 17) + 64, "u1")
    at = -memory.ctypes.data % 64
    a = memory[at : at + (1 << 17)]
    write(a, counter.number, 0)
    globals()[name] = jax.dlpack.from_dlpack(a)
    return lambda generation: write(a, counter.number, generation)


def churn():
    """Take freed memory and write into it what is in no array."""
    sizes = SIZES + [SIZES[-1] // 2, 70000, 1 << 17, 3 << 17]
    turn = 0
    while running():
        turn += 1
        junk = [np.full(size, 0xDD, "u1") for size in sizes[turn % 3 :]]
        del junk


def forks():
    while running():
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        time.sleep(0.05)


def main():
    threads = [threading.Thread(target=churn)]
    for number, (name, what) in enumerate(NAMES, 1):
        counter = Counter(number)
        if what == "forks":
            threads.append(threading.Thread(target=forks))
            continue
        turn = globals()[what](name, counter)
        if turn:
            threads.append(threading.Thread(target=loop, args=(what, counter, turn)))
            turn(counter.begin())
            counter.done()
    sys.setswitchinterval(float(sys.argv[3]))
    for thread in threads:
        thread.start()
    COUNTERS[1] = 1  # all names are there
    for thread in threads:
        thread.join()
    with open(sys.argv[2], "w") as file:
        json.dump(errors, file)


if ndbridge is None:  # without a host, what is published is held
    import types

    held = {}


    def publish(name, array=None):
        held.update(name if isinstance(name, dict) else {name: array})

    ndbridge = types.SimpleNamespace(publish=publish, unpublish=held.__delitem__)
main()
