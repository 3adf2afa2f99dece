"""PyArrow's arrays. Memory of its own pool is copied; that of NumPy's arrays is shared."""

import numpy as np
import pyarrow as pa

import probing
from probing import MANY, arrays, kind, now


def content(x):
    x = x.to_numpy()
    return x.shape, x.tobytes()


def plain(dtype):
    return pa.array((np.arange(MANY) % 100).astype(dtype))


for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float64"):
    kind(dtype, lambda: plain(dtype), content)
kind("float32", lambda: plain("float32"), content, "pyarrow.stream-none-only")
kind("part", lambda: plain("float32")[1000:60000], content, "pyarrow.kwargs-before-26")
kind("one chunk", lambda: pa.chunked_array([plain("float32")]), content, "pyarrow.one-chunk")
kind("of its own pool", lambda: pa.array([1.5] * MANY), content, shared=False)
kind("tensor", lambda: pa.Tensor.from_numpy(np.ones((256, 512))), content)
kind("buffer", lambda: pa.array([1.5] * MANY).buffers()[1], lambda x: ((len(x),), x.to_pybytes()), "pyarrow.resized-buffer", shared=False)
kind("small", lambda: pa.array([1, 2, 3]), content, shared=False)
kind("no elements", lambda: pa.array([], pa.int32()), content, shared=False)
kind("missing elements", lambda: pa.array([1, None]), quirk="pyarrow.nulls")
kind("truth values", lambda: pa.array([True, False]), quirk="pyarrow.bit-packed-bool")
kind("text", lambda: pa.array(["a"]), quirk="pyarrow.other-types")
kind("chunks", lambda: pa.chunked_array([[1], [2]]), quirk="pyarrow.chunks")
kind("table", lambda: pa.table({"x": [1, 2]}), quirk="pyarrow.no-arrays")

report = probing.report()
