"""Objects of classes that are made from Python's own, and of those that stand for values."""
import collections
import dataclasses
import enum
import typing

from inside import append, build, equal, raises, through

ran = []


def noted(name, answer=None):
    def method(self, *args, **kw):
        ran.append(name)
        return answer
    return method


class Int(int):
    __index__ = __int__ = __add__ = __eq__ = __repr__ = noted("int", 5)
    __hash__ = int.__hash__


class Float(float):
    __float__ = noted("float", 5.0)


class Complex(complex):
    __complex__ = __float__ = noted("complex", 5j)


class Str(str):
    __str__ = encode = __len__ = noted("str", "5")


class Bytes(bytes):
    __bytes__ = __len__ = noted("bytes", b"5")


class ByteArray(bytearray):
    __bytes__ = __len__ = noted("bytearray", b"5")


class List(list):
    __iter__ = __len__ = __getitem__ = noted("list", 0)


class Tuple(tuple):
    __iter__ = __len__ = __getitem__ = noted("tuple", 0)


class Dict(dict):
    __iter__ = items = keys = __len__ = __getitem__ = noted("dict", 0)


class Set(set):
    __iter__ = __len__ = noted("set", 0)


class FrozenSet(frozenset):
    __iter__ = __len__ = noted("frozenset", 0)


for v, want in [
    (Int(3), 3), (Int(2**70), 2**70), (Int(-2**70), -2**70), (Float(1.5), 1.5), (Complex(2j), 2j), (Str("a"), "a"), (Bytes(b"a"), b"a"),
    (ByteArray(b"ab"), b"ab"), (bytearray(), b""), (List([1, 2]), [1, 2]), (Tuple((1, 2)), (1, 2)), (Dict(a=1), {"a": 1}), (Set([1, 2]), {1, 2}),
    (FrozenSet([1, 2]), frozenset([1, 2])), (Tuple(), ()), ([Tuple(((Tuple((1,))),)), 2], [((1,),), 2]),
    (collections.defaultdict(list, a=1), {"a": 1}), (collections.Counter("aab"), {"a": 2, "b": 1}),
]:
    equal(through(v), want)
    equal(ran, [])

# An OrderedDict has an order of its own.
ordered = collections.OrderedDict([("a", 1), ("b", [2]), ("c", 3)])
ordered.move_to_end("a")
equal(list(through(ordered).items()), [("b", [2]), ("c", 3), ("a", 1)])
equal(through(collections.OrderedDict()), {})


# Named tuples and dataclasses: records, which become dicts.
Point = collections.namedtuple("Point", "x y")


class Typed(typing.NamedTuple):
    b: int
    a: typing.Any = None


@dataclasses.dataclass
class Data:
    z: int
    shared: typing.ClassVar[int] = 5
    init: dataclasses.InitVar[int] = 6
    a: typing.Any = None


@dataclasses.dataclass
class Child(Data):
    own: str = "o"


class Property(Data):
    @property
    def a(self):
        return self.z + 1

    @a.setter
    def a(self, value):
        pass


equal(append(Point(1, [2])).hex(), "d81b82" + "6e" + b"__main__.Point".hex() + "a2" + "6178" + "01" + "6179" + "8102")
equal(list(through(Point(1, Point([], 2))).items()), [("x", 1), ("y", {"x": [], "y": 2})])
equal(through([Typed(1), 2]), [{"b": 1, "a": None}, 2])
equal(list(through(Data(1, a=Data(2)))), ["z", "a"])
equal(through([Data(1, a=[Data(2)]), 2]), [{"z": 1, "a": [{"z": 2, "a": None}]}, 2])
equal(through(Child(1)), {"z": 1, "a": None, "own": "o"})
equal(through(Property(1)), {"z": 1, "a": 2})
gone = Data(1)
del gone.z
raises(append, {"k": [gone]}, TypeError, '["k"][0].z', "without a field")


class Broken(Data):
    @property
    def a(self):
        return 1 // 0

    a = a.setter(lambda self, value: None)


raises(append, [Broken(1)], ZeroDivisionError, "zero")
raises(append, Data, TypeError, "a type cannot cross")


# What only looks like a named tuple is a tuple.
class Odd(tuple):
    _fields = ("a",)


class Odder(tuple):
    _fields = (1, 2)


class Oddest(tuple):
    _fields = "ab"


equal(through([Odd((1, 2)), Odder((1, 2)), Oddest((1, 2))]), [(1, 2)] * 3)
equal(through(Odd((1,))), {"a": 1})


# Members of enums.
class Colour(enum.Enum):
    RED = 1
    MANY = (1, "a")
    NEST = Data(3)


class Number(enum.IntEnum):
    ONE = 1


class Bits(enum.Flag):
    A = 1
    B = 2


class Word(str, enum.Enum):
    W = "w"


class Outer(enum.Enum):
    IN = Colour.MANY


equal(through([Colour.RED, Colour.MANY, Number.ONE, Bits.A | Bits.B, Word.W, Outer.IN, {Colour.RED: 1}, {Colour.RED}]),
      [1, (1, "a"), 1, 3, "w", (1, "a"), {1: 1}, {1}])
equal(through(Colour.NEST), {"z": 3, "a": None})


class Circle(enum.Enum):
    C = 1


Circle.C._value_ = Circle.C
raises(append, [Circle.C], TypeError, "[0]", "stands for others without end")
Circle.C._value_ = 1

# A class of its own name for structs of C's.
import time
equal(through(time.gmtime(0)), (1970, 1, 1, 0, 0, 0, 3, 1, 0))
print("done")
