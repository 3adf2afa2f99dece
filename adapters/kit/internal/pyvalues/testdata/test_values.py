"""What Python's own values are on the other side, byte by byte where it matters, and as objects again."""
import struct

from inside import append, build, equal, same, check, through

PLAIN = [
    None, True, False, 0, 1, -1, 23, 24, 255, 256, -24, -25, 2**31, 2**32, 2**63 - 1, -2**63, 2**63, -2**63 - 1, 2**64 - 1,
    2**64, -2**64, -2**64 - 1, 10**100, -10**100, 1 << 100000, -(1 << 100000), (1 << 100000) - 1, 0.0, -0.0, 1.5, 1e300, -1e-300,
    float("inf"), float("-inf"), 5e-324, 1j, complex(-0.0, 0.0), complex(1, -2), "", "a", "a\0b", "\u00e9\u20ac\U0001f600",
    "x" * 70000, b"", b"\0\xff", b"x" * 70000, [], [1], [[[]]], (), (1,), ((), []), {}, {"a": 1}, {1: 2, "a": 3, None: 4, (1, (2,)): 5,
    b"k": 6, 1.5: 7, True + 1: 8}, set(), {1, "a"}, frozenset(), frozenset({(1, 2)}), {frozenset({1}): [1]}, [None] * 1000,
    list(range(1000)), {str(i): i for i in range(1000)}, [[i, str(i), {"k": [i]}] for i in range(200)], tuple("x" * i for i in range(100)),
    [i * 2**60 for i in range(100)], list(range(31)), list(range(32)), list(range(33)), list(range(63)), list(range(64)),
]
for v in PLAIN:
    equal(through(v), v)
equal(through(PLAIN), PLAIN)
nan = through(float("nan"))
check(nan, nan == nan)

# The order of dicts.
equal(list(through({"b": 1, "a": 2, 3: 4})), ["b", "a", 3])

# The form itself.
for v, form in [
    (None, "f6"), (False, "f4"), (1, "01"), (-1, "20"), (1000, "1903e8"), (2**64, "c249010000000000000000"),
    (-2**64 - 1, "c349010000000000000000"), (2**64 - 1, "1bffffffffffffffff"), (-2**64, "3bffffffffffffffff"),
    (1.5, "fb3ff8000000000000"), (1j, "d9a7f882fb0000000000000000fb3ff0000000000000"), ("a", "6161"), (b"a", "4161"),
    (bytearray(b"a"), "4161"), ([1], "8101"), ((1,), "d96e648101"), ({1}, "d901028101"), (frozenset([1]), "d96e658101"), ({"a": 1}, "a1616101"),
]:
    equal(append(v).hex(), form)
    if type(v) is not bytearray:
        equal(build(bytes.fromhex(form)), v)
equal(append(float("nan"))[1:], struct.pack(">d", float("nan")))

# A record becomes a dict.
equal(build(bytes.fromhex("d81b826150a26179016178f6")), {"y": 1, "x": None})

# As deep as it may be.
deep = []
for _ in range(99):
    deep = [deep]
equal(through(deep), deep)
print("done")
