"""CuPy's arrays."""

import cupy as cp
import numpy as np

import probing
from probing import MANY, arrays, kind, now


def content(x):
    x = cp.asnumpy(x)
    return x.shape, x.tobytes()


def plain(dtype, shape=(MANY,)):
    return cp.asarray((np.arange(np.prod(shape)) % 100).reshape(shape).astype(dtype))


def managed():
    x = cp.ndarray((MANY,), "f4", memptr=cp.cuda.malloc_managed(4 * MANY))
    x[:] = cp.arange(MANY)
    return x


def apart():
    x = cp.arange(3 * MANY, dtype="u1")
    return cp.ndarray((MANY // 2,), "i2", memptr=x.data, strides=(3,))


def content_apart(x):
    raw = cp.asnumpy(cp.arange(3 * MANY, dtype="u1"))
    x = np.ndarray((MANY // 2,), "i2", raw, strides=(3,))
    return x.shape, x.tobytes()


def records():
    return cp.asarray(np.ones(MANY, [("count", "i4"), ("weight", "f4")]))


def sparse():
    import cupyx.scipy.sparse
    return cupyx.scipy.sparse.csr_matrix(cp.eye(3))


report = probing.on_gpu(lambda: cp.zeros(1))
if report is None:
    for dtype in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
                  "float64", "complex64", "complex128"):
        kind(dtype, lambda: plain(dtype), content, "cupy.kwargs-before-13.4", shared=False)
    kind("transposed", lambda: plain("float32", (256, 512)).T, content, shared=False)
    kind("part", lambda: plain("float32", (256, 512))[1::2, ::-7], content, shared=False)
    kind("managed", managed, content, shared=False)
    kind("no elements", lambda: plain("float32", (0, 3)), content, shared=False)
    kind("records", records, content, "cupy.records-without-dlpack", shared=False)
    kind("uneven strides", apart, content_apart, "cupy.strides-rounded", shared=False)
    kind("sparse matrix", sparse, quirk="cupy.sparse-matrices")
    report = probing.report()
