"""PyCUDA's arrays."""

import numpy as np
import pycuda

import probing
from probing import MANY, arrays, kind, now


def content(x):
    if not isinstance(x, np.ndarray):
        x = x.get()
    return x.shape, x.tobytes()


def plain(dtype, shape=(MANY,)):
    return gpuarray.to_gpu((np.arange(np.prod(shape)) % 100).reshape(shape).astype(dtype))


def bfloat16():
    import ml_dtypes
    return plain(ml_dtypes.bfloat16)


def begin():
    global driver, gpuarray
    import pycuda.autoinit
    from pycuda import driver, gpuarray


report = probing.on_gpu(begin)
if report is None:
    for dtype in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
                  "float64", "complex64", "complex128"):
        kind(dtype, lambda: plain(dtype), content, shared=False)
    kind("column-major", lambda: gpuarray.to_gpu(np.asfortranarray(np.ones((256, 512)))), lambda x: content(x.get()), shared=False)
    kind("records", lambda: gpuarray.to_gpu(np.ones(MANY, gpuarray.vec.float4)), content, "pycuda.records-without-fields",
         shared=False)
    kind("bfloat16", bfloat16, content, "pycuda.extension-dtypes", shared=False)
    kind("no elements", lambda: gpuarray.empty((0, 3), "f4"), lambda x: (x.shape, b""), shared=False)
    kind("allocation", lambda: driver.mem_alloc(64), quirk="pycuda.allocations")
    report = probing.report()
