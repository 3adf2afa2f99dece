"""Objects of no framework that have memory, in `objects`, and in `said` what each must look like."""

import array
import collections
import ctypes
import hashlib
import json
import mmap
import sys
import tempfile

import numpy as np
import PIL.Image
import remote

objects = {}
said = []


def see(name, x, plain, read_only, routes=("staged",), strides=None):
    """A view of what plain, a NumPy array of the same elements, is."""
    objects[name] = x
    said.append({
        "name": name, "dtype": plain.dtype.name, "shape": plain.shape, "strides": strides or plain.strides,
        "read_only": read_only, "routes": routes, "sha256": hashlib.sha256(plain.tobytes()).hexdigest(),
    })


def refuse(name, x, category, text):
    objects[name] = x
    said.append({"name": name, "error": category, "text": text})


class Interface:
    """An object with nothing but an array interface."""

    def __init__(self, x, **entries):
        self.x = x
        self.__array_interface__ = {**x.__array_interface__, **entries}


class Exporter:
    """An object with nothing but DLPack."""

    def __init__(self, x):
        self.x = x

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()

    def __dlpack__(self, **keywords):
        return self.x.__dlpack__(**keywords)


class Bad:
    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **keywords):
        raise ValueError("not today")


# Python's own.
for code in "bBhHiIlLqQfd":
    x = array.array(code, range(7))
    see("array of " + code, x, np.array(x), False)
see("bytes", b"abcdef", np.frombuffer(b"abcdef", "u1"), True)
see("large bytes", bytes(range(250)) * 1000, np.frombuffer(bytes(range(250)) * 1000, "u1"), True)
see("bytearray", bytearray(b"abcdef"), np.frombuffer(b"abcdef", "u1"), False)
grid = np.arange(24, dtype="i4").reshape(4, 6)
see("memoryview", memoryview(grid), grid, False)
see("part of a memoryview", memoryview(grid)[1:3], grid[1:3], False)
see("backwards", memoryview(bytes(10))[::-2], np.zeros(5, "u1"), True, strides=(-2,))
see("cast", memoryview(bytes(24)).cast("d", [3, 1]), np.zeros((3, 1)), True)
see("read-only memoryview", memoryview(grid).toreadonly(), grid, True)
numbers = (ctypes.c_float * 3 * 2)(*[(ctypes.c_float * 3)(1, 2, 3)] * 2)
see("ctypes", numbers, np.array([[1, 2, 3]] * 2, "f4"), False)
see("one of ctypes", ctypes.c_double(2.5), np.array(2.5), False)
file = tempfile.TemporaryFile()
file.write(bytes(range(256)) * 1024)
file.flush()
pages = np.frombuffer(bytes(range(256)) * 1024, "u1")
see("mmap", mmap.mmap(file.fileno(), 0), pages, False, ("mapped-file",))
see("read-only mmap", mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ), pages, True, ("mapped-file",))
see("nothing", b"", np.zeros(0, "u1"), True, ("empty",))

# Others' objects, by each protocol.
large = np.arange(60000, dtype="f4").reshape(200, 300)
SHARED = ("shared-heap",)
see("interface", Interface(large), large, False, SHARED)
see("interface, transposed", Interface(large.T), large.T, False, SHARED)
see("interface, offset in a buffer", Interface(large, data=memoryview(large).cast("B"), offset=1200, shape=(300,)), large[1], False, SHARED)
see("interface, struct's typestr", Interface(large, typestr="=f", descr=None), large, False, SHARED)
see("exporter", Exporter(large), large, False, SHARED)
see("exporter, backwards", Exporter(large[::-1]), large[::-1], False, SHARED)
picture = PIL.Image.fromarray((np.arange(48) * 5).astype("u1").reshape(4, 4, 3))
see("picture", picture, np.asarray(picture), True)

# What is no array, or lies.
anything = "name an array, or an object with DLPack"
for name, x, remedy in [
    ("list", [1, 2], anything),
    ("text", "abc", anything),
    ("number", 1, "read it with Session.Value, or publish it"),
    ("nothing at all", None, "look again when the program has put an array there"),
]:
    refuse(name, x, "unsupported operation", "is not an array; " + remedy)
refuse("queue", collections.deque([1]), "unsupported operation", "is not an array")
refuse("pointers", (ctypes.py_object * 2)(1, 2), "wrong dtype", "O")
refuse("structure", (type("S", (ctypes.Structure,), {"_fields_": [("a", ctypes.py_object)]}) * 2)(), "wrong dtype", "")
refuse("outside of its buffer", Interface(large, data=memoryview(large).cast("B"), offset=4, shape=(60000,)), "invalid pointer", "bytes 4 to 240004 of a buffer of 240000")
refuse("masked", Interface(large, mask=np.ones(3)), "unsupported operation", "mask")
refuse("raises", Bad(), "python error", "ValueError: not today")
closed = memoryview(bytes(3))
closed.release()
refuse("released memoryview", closed, "python error", "released")

with open(sys.argv[1], "w") as out:
    json.dump(said, out)
remote.serve()
