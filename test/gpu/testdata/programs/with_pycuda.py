"""PyCUDA, in a context of its own. It has no current stream: each call is given one, or None."""

import contextlib
import ctypes
import struct

import numpy as np
import pycuda
import pycuda.autoinit  # noqa: F401: makes the context
import pycuda.driver as driver
from pycuda.gpuarray import GPUArray
from pycuda.tools import DeviceMemoryPool
from work import COUNT, check, cu

_pool = DeviceMemoryPool()
_stream = None
_kept = []


def version():
    return pycuda.VERSION_TEXT


def make(kind):
    if kind == "pagelocked":
        return driver.pagelocked_zeros(COUNT, np.float32)
    if kind == "managed":
        return driver.managed_zeros(COUNT, np.float32, mem_flags=driver.mem_attach_flags.GLOBAL)
    allocator = _pool.allocate if kind == "pool" else driver.mem_alloc
    return GPUArray(COUNT, np.float32, allocator=allocator)


class _Pooled:
    """Memory of the device's own pool, which belongs to no context."""

    def __init__(self):
        pointer = ctypes.c_uint64()
        check(cu.cuMemAllocAsync(ctypes.byref(pointer), ctypes.c_size_t(4 * COUNT), None))
        self.__cuda_array_interface__ = {
            "shape": (COUNT,), "typestr": "<f4", "data": (pointer.value, False), "strides": None, "version": 3,
        }


def pooled():
    return _Pooled()


def small(count):
    return GPUArray(count, np.float32, allocator=driver.mem_alloc)


def write(kind, array, value):
    bits = struct.unpack("I", struct.pack("f", value))[0]
    if kind == "pagelocked":
        source = driver.mem_alloc(array.nbytes)
        driver.memset_d32_async(source, bits, COUNT, _stream)
        driver.memcpy_dtoh_async(array, source, _stream)
        _kept.append(source)  # freeing it would wait for the work
    else:
        driver.memset_d32_async(address(array), bits, COUNT, _stream)


def address(array):
    return array.ctypes.data if isinstance(array, np.ndarray) else int(array.gpudata)


def stream():
    return _stream.handle if _stream else 0


@contextlib.contextmanager
def other_stream():
    global _stream
    _stream = driver.Stream()
    yield
    _kept.append(_stream)
    _stream = None
