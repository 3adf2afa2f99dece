"""No framework: memory of all kinds by the driver's own calls, told by __cuda_array_interface__.

It runs wherever a driver is, and shows each route by itself.
"""

import contextlib
import ctypes
import weakref

from work import COUNT, begin_capture, check, cu, end_capture, use_primary, write_words

SIZE = 4 * COUNT
POSIX_FILE_DESCRIPTOR = 1

_context = use_primary()
_stream = ctypes.c_void_p()


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class AllocationProperties(ctypes.Structure):  # CUmemAllocationProp
    _fields_ = [
        ("type", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("location", Location),
        ("windows", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


class Access(ctypes.Structure):  # CUmemAccessDesc
    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


class PoolProperties(ctypes.Structure):  # CUmemPoolProps
    _fields_ = [
        ("type", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("location", Location),
        ("windows", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 54),
    ]


DEVICE = Location(1, 0)


class Array:
    """One array of floats in memory that release gives back."""

    def __init__(self, address, release, count=COUNT):
        self.address = address
        self._interface = {
            "shape": (count,), "typestr": "<f4", "data": (address, False), "strides": None, "version": 3, "stream": 1,
        }
        weakref.finalize(self, _in_context, release)

    @property
    def __cuda_array_interface__(self):
        return self._interface


def _in_context(call):
    """Whatever thread is the last to let go of an array."""
    check(cu.cuCtxPushCurrent_v2(_context))
    try:
        call()
    finally:
        check(cu.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p())))


def _u64(n):
    return ctypes.c_uint64(n)


def _device(count=COUNT):
    pointer = ctypes.c_uint64()
    check(cu.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4 * count)))
    return Array(pointer.value, lambda p=pointer.value: check(cu.cuMemFree_v2(_u64(p))), count)


def _managed():
    pointer = ctypes.c_uint64()
    check(cu.cuMemAllocManaged(ctypes.byref(pointer), ctypes.c_size_t(SIZE), 1))
    return Array(pointer.value, lambda p=pointer.value: check(cu.cuMemFree_v2(_u64(p))))


def _vmm():
    """Two physical allocations side by side."""
    properties = AllocationProperties(1, POSIX_FILE_DESCRIPTOR, DEVICE)
    chunk = SIZE // 2
    base = ctypes.c_uint64()
    check(cu.cuMemAddressReserve(ctypes.byref(base), ctypes.c_size_t(SIZE), ctypes.c_size_t(0), _u64(0), _u64(0)))
    for offset in (0, chunk):
        handle = ctypes.c_uint64()
        check(cu.cuMemCreate(ctypes.byref(handle), ctypes.c_size_t(chunk), ctypes.byref(properties), _u64(0)))
        check(cu.cuMemMap(_u64(base.value + offset), ctypes.c_size_t(chunk), ctypes.c_size_t(0), handle, _u64(0)))
        check(cu.cuMemRelease(handle))
    access = Access(DEVICE, 3)
    check(cu.cuMemSetAccess(base, ctypes.c_size_t(SIZE), ctypes.byref(access), ctypes.c_size_t(1)))

    def release(p=base.value):
        for offset in (0, chunk):
            check(cu.cuMemUnmap(_u64(p + offset), ctypes.c_size_t(chunk)))
        check(cu.cuMemAddressFree(_u64(p), ctypes.c_size_t(SIZE)))

    return Array(base.value, release)


_pools = {}


def _pooled(handles):
    if handles not in _pools:
        pool = ctypes.c_void_p()
        properties = PoolProperties(1, handles, DEVICE)
        check(cu.cuMemPoolCreate(ctypes.byref(pool), ctypes.byref(properties)))
        _pools[handles] = pool
    pointer = ctypes.c_uint64()
    check(cu.cuMemAllocFromPoolAsync(ctypes.byref(pointer), ctypes.c_size_t(SIZE), _pools[handles], _stream))
    return Array(pointer.value, lambda p=pointer.value: check(cu.cuMemFreeAsync(_u64(p), _stream)))


def _pinned():
    pointer = ctypes.c_void_p()
    check(cu.cuMemHostAlloc(ctypes.byref(pointer), ctypes.c_size_t(SIZE), 2))
    return Array(pointer.value, lambda p=pointer.value: check(cu.cuMemFreeHost(ctypes.c_void_p(p))))


_KINDS = {
    "cuMemAlloc": _device,
    "managed": _managed,
    "pinned": _pinned,
    "pool": lambda: _pooled(0),
    "shared pool": lambda: _pooled(POSIX_FILE_DESCRIPTOR),
    "vmm": _vmm,
}


def version():
    number = ctypes.c_int()
    check(cu.cuDriverGetVersion(ctypes.byref(number)))
    return f"CUDA {number.value // 1000}.{number.value % 1000 // 10}"


def make(kind):
    return _KINDS[kind]()


def small(count):
    return _device(count)


def write(kind, array, value):
    write_words(array.address, value, COUNT, stream())


def capture(n):
    stream = begin_capture(n % 3)
    write_words(_captured.address, 1, COUNT, stream.value)
    end_capture(stream)


def address(array):
    return array.address


def stream():
    return _stream.value or 0


@contextlib.contextmanager
def other_stream():
    global _stream
    default, _stream = _stream, ctypes.c_void_p()
    check(cu.cuStreamCreate(ctypes.byref(_stream), 1))
    yield
    _stream = default


_captured = _device()
