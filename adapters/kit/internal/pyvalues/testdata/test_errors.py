"""What cannot cross, where it is, and what is given back afterwards."""
import gc
import socket
import sys

from inside import append, build, check, equal, raises, through


class Array:
    def __init__(self):
        for f in when:
            f()


class Raising:
    @property
    def array(self):
        raise KeyError("no array")


async def agen():
    yield 1


class Self:
    pass


when = []
circle, circles, twice = [], {}, {"a": []}
circle.append(circle)
circles["k"] = [circles]
twice["a"].append((twice, twice))
deep = []
for _ in range(100):
    deep = [deep]
s = socket.socket()
s.close()

ERRORS = [
    (s, TypeError, ["append: unsupported operation: a socket.socket cannot cross; hand over numbers, text or arrays"]),
    ({"a": [0, 1, 2, s]}, TypeError, ['append ["a"][3]: unsupported operation: a socket.socket cannot cross']),
    ({1: {"x\n": (s,)}}, TypeError, ["[1]", "x", "[0]", "a socket.socket cannot cross"]),
    ({None: [s]}, TypeError, ["[None][0]"]),
    ({True: s}, TypeError, ["[true]"]),
    ({(1,): s}, TypeError, ["[a tuple]"]),
    ({s: 1}, TypeError, ["[a socket.socket]", "a socket.socket cannot cross"]),
    ({2**70: s}, TypeError, ["[an int]"]),
    ({"x" * 1000: s}, TypeError, ["xxx...", "socket.socket cannot cross"]),
    ([{1, s}], TypeError, ["[0]{...}"]),
    (lambda: 1, TypeError, ["a function cannot cross"]),
    (sys, TypeError, ["a module cannot cross"]),
    (iter([]), TypeError, ["a list_iterator cannot cross; hand over list(...) of it, or have the host take", "Func.Stream"]),
    (range(3), TypeError, ["a range cannot cross; hand over list(...) of it"]),
    (object(), TypeError, ["an object cannot cross"]),
    (agen(), TypeError, ["an async_generator cannot cross; the host's Func.Stream takes"]),
    (type(sys)("m").__dict__.keys(), TypeError, ["a dict_keys cannot cross; hand over list(...) of it"]),
    (int.__dict__, TypeError, ["a mappingproxy cannot cross; hand over dict(...) of it"]),
    ({1, s}, TypeError, ["append {...}: ", "a socket.socket cannot cross"]),
    ("\ud800", TypeError, ["a str with a lone surrogate cannot cross"]),
    (["a", "x\udc80"], TypeError, ["[1]", "a str with a lone surrogate cannot cross"]),
    ({"\udc80": 1}, TypeError, ["lone surrogate"]),
    (circle, TypeError, ["[0][0][0]", "...", "containers lie more than 100 deep"]),
    (circles, TypeError, ['["k"][0]["k"]', "containers lie more than 100 deep"]),
    (twice, TypeError, ["containers lie more than 100 deep"]),
    (deep, TypeError, ["containers lie more than 100 deep"]),
    ([Raising()], KeyError, ["no array"]),
]
for value, kind, texts in ERRORS:
    raises(append, value, kind, *texts)

# What changes while it is read. The first item is an array, to ask for which runs code.
for make, change in [
    (lambda: [Array(), 1, 2], lambda v: v.pop()),
    (lambda: [Array(), 1, 2], lambda v: v.clear()),
    (lambda: [Array(), 1, 2], lambda v: v.append(1)),
    (lambda: {1: Array(), 2: 3}, lambda v: v.clear()),
    (lambda: {1: Array(), 2: 3}, lambda v: v.update({3: 4})),
]:
    value = make()
    when.append(lambda: change(value))
    raises(append, [value], TypeError, "[0]", "it has changed while it was read")
    when.clear()
value = {1: [Array()], 2: [3], 4: "x" * 99}
when.append(lambda: [value.pop(k) for k in list(value)] and [value.update({k: "y"}) for k in range(3)])
try:
    append(value)
except TypeError:
    pass
when.clear()

# What Python cannot make.
RAISES = [
    ("a18001", TypeError, "unhashable type: 'list'"),
    ("81a1a001", TypeError, "build [0][a dict]: unsupported operation: TypeError"),
    ("d9010281a0", TypeError, "unhashable"),
    ("8161ff", RuntimeError, "protocol violation"),
    ("a201f60101", TypeError, "the same in Python"),
    ("d901028201f5", TypeError, "the same in Python"),
    ("a201f6f5f6", TypeError, "the same in Python"),
    ("d96e6600", TypeError, "there is no array 0"),
    ("8201", RuntimeError, "items"),
    ("", RuntimeError, "ends too early"),
    ("0000", RuntimeError, "1 bytes too many"),
    ("81" * 101 + "00", RuntimeError, "deep"),
    ("9b7fffffffffffffff", RuntimeError, "items"),
    ("bb7fffffffffffffff", RuntimeError, "items"),
    ("9a00ffffff" * 5, RuntimeError, "items"),
    ("83" + "83" * 60 + "00" * 3, RuntimeError, ""),
    ("8200" + "82" * 70 + "00" * 70 + "ff", RuntimeError, "byte 0xff"),
]
append(1)  # forgets the arrays of before
for form, kind, text in RAISES:
    raises(build, bytes.fromhex(form), kind, text)


# Nothing stays of values that went wrong.
def blocks():
    gc.collect()
    return sys.getallocatedblocks()


def wrong():
    for f, cases in (append, ERRORS), (lambda v: build(bytes.fromhex(v)), RAISES):
        for case in cases:
            try:
                f(case[0])
            except (TypeError, RuntimeError, KeyError):
                pass


# Python's caches grow for a while. What one of these leaves behind, it leaves each time.
counts, grown = [sys.getrefcount(case[0]) for case in ERRORS], []
for _ in range(8):
    before = blocks()
    for _ in range(200):
        wrong()
    grown.append(blocks() - before)
check("blocks are left: %s" % grown, min(grown) > 100)
equal([sys.getrefcount(case[0]) for case in ERRORS], counts)
print("done")
