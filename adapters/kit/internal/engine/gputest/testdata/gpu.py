"""Memory of a GPU, and objects that tell of it, by the CUDA driver alone."""

import ctypes

cu = ctypes.CDLL("libcuda.so.1")
PTX = b""".version 6.0
.target sm_50
.address_size 64
.visible .entry wait(.param .u64 nanoseconds)
{
	.reg .u64 %rd<3>;
	.reg .pred %p;
	ld.param.u64 %rd0, [nanoseconds];
	mov.u64 %rd1, %globaltimer;
	add.u64 %rd0, %rd0, %rd1;
late:
	mov.u64 %rd2, %globaltimer;
	setp.lt.u64 %p, %rd2, %rd0;
	@%p bra late;
	ret;
}
"""
SLOW = 200_000_000  # nanoseconds that slow work takes
MB = 1 << 20
p64, size_t, word = ctypes.c_uint64, ctypes.c_size_t, ctypes.c_uint


def call(name, *args):
    result = getattr(cu, name)(*args)
    if result:
        raise RuntimeError(f"{name}: {result}")


def out(kind, name, *args):
    value = kind()
    call(name, ctypes.byref(value), *args)
    return value.value


call("cuInit", 0)
devices = out(ctypes.c_int, "cuDeviceGetCount")
contexts = [out(p64, "cuDevicePrimaryCtxRetain", i) for i in range(devices)]


def enter(device=0):
    call("cuCtxSetCurrent", p64(contexts[device]))


enter()
wait_kernel = out(p64, "cuModuleGetFunction", p64(out(p64, "cuModuleLoadData", PTX)), b"wait")


def alloc(n):
    return out(p64, "cuMemAlloc_v2", size_t(n))


def managed(n):
    return out(p64, "cuMemAllocManaged", size_t(n), 1)


def pinned(n):
    return out(p64, "cuMemHostAlloc", size_t(n), 3)


def free(p):
    call("cuMemFree_v2", p64(p))


def new_stream():
    return out(p64, "cuStreamCreate", 1)  # it does not wait for the default stream


def fill(p, value, n, stream, slow=SLOW):
    """Sets n words, after a time."""
    enter()
    if slow:
        argument = p64(slow)
        params = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
        call("cuLaunchKernel", p64(wait_kernel), 1, 1, 1, 1, 1, 1, 0, p64(stream), params, None)
    bits = ctypes.c_uint.from_buffer(ctypes.c_float(value)).value
    call("cuMemsetD32Async", p64(p), word(bits), size_t(n), p64(stream))


class PoolProperties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", ctypes.c_int), ("device", ctypes.c_int),
                ("security", ctypes.c_void_p), ("max", ctypes.c_size_t), ("rest", ctypes.c_ubyte * 56)]


def pool(shareable):
    properties = PoolProperties(type=1, handles=1 if shareable else 0, location=1)
    return out(p64, "cuMemPoolCreate", ctypes.byref(properties))


def from_pool(pool, n, stream):
    p = out(p64, "cuMemAllocFromPoolAsync", size_t(n), p64(pool), p64(stream))
    call("cuStreamSynchronize", p64(stream))
    return p


class Properties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", ctypes.c_int), ("device", ctypes.c_int),
                ("meta", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8)]


class Access(ctypes.Structure):
    _fields_ = [("location", ctypes.c_int), ("device", ctypes.c_int), ("flags", ctypes.c_int)]


def chunks(count, each=2 * MB):
    """One range over several physical allocations."""
    base = out(p64, "cuMemAddressReserve", size_t(count * each), size_t(0), p64(0), p64(0))
    properties = Properties(type=1, handles=1, location=1)
    for i in range(count):
        handle = out(p64, "cuMemCreate", size_t(each), ctypes.byref(properties), p64(0))
        call("cuMemMap", p64(base + i * each), size_t(each), size_t(0), p64(handle), p64(0))
        call("cuMemRelease", p64(handle))
    access = Access(location=1, flags=3)
    call("cuMemSetAccess", p64(base), size_t(count * each), ctypes.byref(access), size_t(1))
    return base


def faults(words):
    assert cu.cudasim_fault(words.encode()) == 0


class Array:
    """Speaks the CUDA Array Interface. Keys that are None are left out."""

    def __init__(self, p, n, **entries):
        entries = dict({"shape": (n,), "typestr": "<f4", "data": (p, False), "version": 3}, **entries)
        self.__cuda_array_interface__ = {k: v for k, v in entries.items() if v is not None}


def host_array(p, n):
    """A NumPy array over memory that the CPU reaches."""
    import numpy as np
    return np.frombuffer((ctypes.c_float * n).from_address(p), "f4")
