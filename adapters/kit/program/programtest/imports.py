import ctypes
import gc
import json
import os

free = ctypes.CDLL(os.environ["IMPORTTESTS"])  # without the GIL
lib = ctypes.PyDLL(os.environ["IMPORTTESTS"])  # with it
lib.ndImport.restype = ctypes.py_object
lib.ndHost.restype = ctypes.c_void_p
lib.ndMeasure.restype = ctypes.c_double
assert free.ndOpen(os.environ["IMPORTTESTS_SETTINGS"].encode()) == 0


def described(framework, dtype, shape, strides=None, offset=0, readonly=False, tag=""):
    return json.dumps(dict(
        Framework=framework, DType=dtype, Shape=shape, Strides=strides, Offset=offset, ReadOnly=readonly, Tag=tag,
    )).encode()


def host(*args, **kw):
    """Gives the framework's array; without a framework, the host array itself."""
    return lib.ndImport(described(*args, **kw))


def cost(*args, times=100000, **kw):
    """Gives the nanoseconds that it takes to make the array, and to end it."""
    return min(lib.ndMeasure(described(*args, **kw), times) for _ in range(3))


def memory(n=1 << 20):
    """Gives the first bytes of the memory, as the host has it."""
    return memoryview((ctypes.c_uint8 * n).from_address(lib.ndHost())).cast("B")


def held():
    """Gives how many arrays are in use."""
    gc.collect()
    return lib.ndHeld()


def mappings():
    """Gives how often the memory is mapped: the host has it, too."""
    with open("/proc/self/maps") as maps:
        return sum("memfd:importtests " in line for line in maps)


def refused(f, *args, **kw):
    """Gives the exception that f raises."""
    try:
        r = f(*args, **kw)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    raise AssertionError(f"not refused: {r!r}")
