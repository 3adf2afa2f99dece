"""CuPy. Its allocator can be changed at any time."""

import contextlib

import cupy
import cupyx
import numpy as np
from work import COUNT

_TO_HOST = cupy.cuda.runtime.memcpyDeviceToHost
_captured = cupy.zeros(1024, dtype=np.float32)
_capturing = cupy.cuda.Stream(non_blocking=True)
_kept = []  # freeing it would let later work take its memory
_malloc_async = cupy.cuda.MemoryAsyncPool()
_ALLOCATORS = {
    "pool": cupy.get_default_memory_pool().malloc,
    "no pool": None,
    "malloc_async": _malloc_async.malloc,
    "managed": cupy.cuda.malloc_managed,
}


def version():
    return cupy.__version__


def make(kind):
    if kind == "pinned":
        return cupyx.zeros_pinned((COUNT,), dtype=np.float32)
    cupy.cuda.set_allocator(_ALLOCATORS[kind])
    return cupy.zeros(COUNT, dtype=np.float32)


def write(kind, array, value):
    if kind == "pinned":
        source = cupy.full(COUNT, value, dtype=np.float32)
        _kept.append(source)
        cupy.cuda.runtime.memcpyAsync(array.ctypes.data, source.data.ptr, array.nbytes, _TO_HOST, stream())
    else:
        array.fill(value)


def capture(n):
    with _capturing:
        _capturing.begin_capture(n % 3)
        try:
            _captured.fill(1)
        finally:
            _capturing.end_capture()


def address(array):
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr


def stream():
    return cupy.cuda.get_current_stream().ptr


@contextlib.contextmanager
def other_stream():
    with cupy.cuda.Stream(non_blocking=True):
        yield
