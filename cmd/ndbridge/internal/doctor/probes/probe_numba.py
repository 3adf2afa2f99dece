"""Numba's arrays on GPUs."""

import numpy as np

import probing
from probing import MANY, arrays, kind, now


def content(x):
    x = x.copy_to_host()
    return x.shape, x.tobytes()


def plain(dtype, shape=(MANY,)):
    return cuda.to_device((np.arange(np.prod(shape)) % 100).reshape(shape).astype(dtype))


def bfloat16():
    import ml_dtypes
    return cuda.to_device(np.full(MANY, 0x3F80, "u2")).view(ml_dtypes.bfloat16)


def begin():
    global cuda
    from numba import cuda
    plain("u1", (1,))


report = probing.on_gpu(begin)
if report is None:
    for dtype in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
                  "float64", "complex64", "complex128"):
        kind(dtype, lambda: plain(dtype), content, shared=False)
    kind("records", lambda: cuda.to_device(np.ones(MANY, [("count", "i4"), ("weight", "f4")])), content,
         "numba.records-without-fields", shared=False)
    kind("bfloat16", bfloat16, lambda x: (x.shape, bytes.fromhex("803f") * MANY), "numba.extension-dtypes", shared=False)
    kind("no elements", lambda: cuda.device_array((0, 3), "f4"), lambda x: (x.shape, b""), shared=False)
    kind("broadcast", lambda: cuda.to_device(np.broadcast_to(np.arange(4.0), (3, 4))), quirk="numba.broadcast-as-dense")
    report = probing.report()
