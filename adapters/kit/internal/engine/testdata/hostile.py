"""Objects that do what no array should, each in its own way. It follows fakes.py."""

import threading

good = np.arange(5.0)


class Capsules:
    """A __dlpack__ that does not give what it should."""

    def __init__(self, give, device=lambda: (1, 0)):
        self.give, self.device = give, device

    def __dlpack_device__(self):
        return self.device()

    def __dlpack__(self, **kw):
        return self.give()


def throw(error):
    raise error


raises = Capsules(lambda: throw(ValueError("not today")))
exits = Capsules(lambda: throw(SystemExit(3)))
interrupts = Capsules(lambda: throw(KeyboardInterrupt()))
gives_none = Capsules(lambda: None)
gives_itself = Capsules(lambda: gives_itself)
device_none = Capsules(lambda: None, lambda: None)
device_text = Capsules(lambda: None, lambda: "cpu")
device_empty = Capsules(lambda: None, lambda: ())
device_huge = Capsules(lambda: None, lambda: (1 << 80, 0))


class Consumed:
    """It hands out one and the same capsule again and again."""

    def __init__(self):
        self.capsule = Fake("consumed", versioned=True).__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **kw):
        return self.capsule


consumed = Consumed()

odd_data = Fake("odd_data", versioned=True, data=ADDRESS + 1)

no_dict = Interface()
no_dict.__array_interface__ = [1, 2]
no_typestr = Interface(typestr=None)
number_typestr = Interface(typestr=8)
strange_typestr = Interface(typestr="<q" * 1000)
number_shape = Interface(shape=4)
negative_shape = Interface(shape=(-4,))
large_shape = Interface(shape=(1 << 62, 1 << 62))
huge_shape = Interface(shape=(1 << 70,))
few_strides = Interface(shape=(2, 2), strides=(8,))
large_strides = Interface(shape=(3, 3), strides=(1 << 62, 1 << 62))
negative_data = Interface(data=(-1, False))
huge_data = Interface(data=(1 << 70, False))
null_data = Interface(data=(0, False))
dangling_data = Interface(data=(4096, False))
last_data = Interface(data=((1 << 64) - 8, False))
lives_in_heap = np.ones(1 << 17)
wild_heap_data = Interface(data=(lives_in_heap.ctypes.data + (1 << 39), False))
behind_heap_data = Interface(data=(lives_in_heap.ctypes.data + lives_in_heap.nbytes, False))
freed_heap_data = [Interface(data=(np.ones(n).ctypes.data, False)) for n in (1 << 14, 1 << 23)]
text_data = Interface(data="here")
no_data = Interface(data=None)
far_offset = Interface(data=bytearray(64), offset=1 << 62)
text_version = Interface(version="3")


class Property:
    @property
    def __array_interface__(self):
        raise OSError("the disk is full")


raising_property = Property()


class Dict(dict):
    def keys(self):
        throw(RuntimeError("keys"))

    items = values = __iter__ = __getitem__ = __contains__ = __len__ = keys


dict_of_traps = Interface()
dict_of_traps.__array_interface__ = Dict()


class Everything:
    """It has every attribute, every item, and is callable."""

    def __getattr__(self, name):
        return self

    def __getitem__(self, key):
        return self

    def __call__(self, *args, **kw):
        return self


everything = Everything()


class Deep:
    def __getattr__(self, name):
        return getattr(self, name + "_")


deep = Deep()


class Trap(type):
    def __getattribute__(self, name):
        throw(RuntimeError("a trap of a type"))

    def __instancecheck__(self, instance):
        throw(RuntimeError("instance"))


class Trapped(metaclass=Trap):
    def __getattribute__(self, name):
        throw(RuntimeError("a trap"))

    def __len__(self):
        throw(RuntimeError("length"))

    def __getitem__(self, key):
        throw(IndexError("a trap of items"))

    def __repr__(self):
        throw(RuntimeError("repr"))

    __str__ = __hash__ = __bool__ = __index__ = __repr__


trapped = Trapped()


class Pretender:
    __class__ = property(lambda self: np.ndarray)


pretender = Pretender()
