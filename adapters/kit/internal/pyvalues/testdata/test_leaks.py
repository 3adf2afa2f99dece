"""Conversions leave nothing behind, and take no references."""
import collections
import dataclasses
import enum
import gc
import sys

from inside import append, check, equal, through


@dataclasses.dataclass
class Data:
    a: object
    b: object


class Array:
    pass


class Colour(enum.Enum):
    RED = "a long word that is not interned"


Point = collections.namedtuple("Point", "x y")
inner = object.__new__(Array)
text = "".join(["a text ", "of its own"])
value = [
    1, 10**30, -10**30, 1.25, 2j, text, b"bytes", bytearray(b"b"), [text, [text]], (text, (text,)), {text: [text], (text,): 1}, {text}, frozenset([text]),
    Data(text, [inner]), Point(text, text), Colour.RED, collections.OrderedDict([(text, text)]), type("S", (set,), {})([text]), inner,
    type("T", (tuple,), {})([text]), None, True,
]


def state():
    gc.collect()
    return sys.getallocatedblocks(), sys.getrefcount(text), sys.getrefcount(inner), sys.getrefcount(Array), sys.getrefcount(Data), sys.getrefcount(value)


for _ in range(100):
    through(value)
before = state()
for _ in range(100000 // len(value)):
    through(value)
after = state()
check("%d blocks are left" % (after[0] - before[0]), after[0] - before[0] > 100)
equal(after[1:], before[1:])
small = (1, 2, 3, "a", {"a": 1, "b": 2.5})
before = state()
for _ in range(100000):
    through(small)
after = state()
check("%d blocks are left" % (after[0] - before[0]), after[0] - before[0] > 100)
made = through([inner, [inner]])
check("arrays are not the same", made[0] is not inner or made[1][0] is not inner)
print("done")
