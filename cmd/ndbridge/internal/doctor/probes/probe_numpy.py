"""NumPy's arrays."""

import tempfile

import numpy as np

import probing
from probing import MANY, arrays, kind, now


def content(x):
    x = np.asarray(x)
    return x.shape, x.tobytes()


def plain(dtype):
    return (np.arange(MANY) % 100).astype(dtype)


def frozen():
    x = plain("float64")
    x.flags.writeable = False
    return x


def mapped():
    with tempfile.TemporaryFile() as file:
        x = np.memmap(file, "float32", "w+", shape=MANY)
        x[:] = 2.5
        return x


def foreign():
    import ml_dtypes

    return plain(ml_dtypes.bfloat16)


grid = np.arange(MANY * 2.0).reshape(256, 512)
records = np.ones(MANY, [("a", "u1"), ("b", "f4")])

for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
              "float16", "float64", "complex64", "complex128"):
    kind(dtype, lambda: plain(dtype), content)
kind("float32", lambda: plain("float32"), content, "numpy.stream-none-only")
kind("bool", lambda: plain("bool"), content, "numpy.bool-before-1.25")
kind("transposed", lambda: grid.T, content)
kind("reversed", lambda: grid[::-1, ::-1], content)
kind("part", lambda: grid[1:-1:2, 3::7], content)
kind("repeated", lambda: np.broadcast_to(grid[0], (3, 512)), content)
kind("writable", lambda: grid * 2, content, "numpy.kwargs-before-2.1")
kind("read-only", frozen, content, "numpy.readonly-needs-versioned")
kind("memory-mapped", mapped, content)
kind("big-endian", lambda: plain(">f8"), content, "numpy.foreign-byte-order")
kind("dates", lambda: plain("datetime64[s]"), content, "numpy.non-numeric-dtypes")
kind("text", lambda: plain("U7"), content)
kind("records", lambda: records, content)
kind("field", lambda: records["b"], content, "numpy.stride-not-multiple")
kind("bfloat16", foreign, content, "numpy.extension-dtypes")
kind("small", lambda: np.arange(3), content, shared=False)
kind("no elements", lambda: np.zeros((0, 3)), content, shared=False)
kind("scalar", lambda: np.float64(2.5), content, "numpy.scalars-without-dlpack", shared=False)
kind("masked", lambda: np.ma.array([1, 2], mask=[True, False]), quirk="numpy.mask-dropped")
kind("objects", lambda: np.array([None, "x"], object), quirk="numpy.object-dtype")
kind("longdouble", lambda: plain("longdouble"), quirk="numpy.longdouble")

report = probing.report()
