"""Work that takes its time, on any stream of any framework, and the driver's own words about memory.

All of it goes through the driver itself, in whatever context is current, so that it is the same for
all frameworks. The kernel is that of kernels.ptx.
"""

import ctypes
import os
import threading
import time

import numpy

cu = ctypes.CDLL("libcuda.so.1")

NOT_READY = 600
COUNT = 6 << 20  # floats of an array: 24 MiB, more than one chunk of an expandable segment

with open(os.path.join(os.path.dirname(__file__), "..", "kernels.ptx"), "rb") as file:
    KERNELS = file.read()


def check(result):
    if result:
        text = ctypes.c_char_p()
        cu.cuGetErrorName(result, ctypes.byref(text))
        raise RuntimeError((text.value or b"%d" % result).decode())


class Work:
    """What was queued last, and whether it still runs."""

    def __init__(self):
        self.kernels = {}  # by context and name
        self.event = None
        self.milliseconds = int(os.environ.get("WORK_MS", "300"))  # that work takes

    def kernel(self, name=b"wait"):
        context = ctypes.c_void_p()
        check(cu.cuCtxGetCurrent(ctypes.byref(context)))
        key = context.value, name
        if key not in self.kernels:
            module, function = ctypes.c_void_p(), ctypes.c_void_p()
            check(cu.cuModuleLoadData(ctypes.byref(module), KERNELS))
            check(cu.cuModuleGetFunction(ctypes.byref(function), module, name))
            self.kernels[key] = function
        return self.kernels[key]

    def prepare(self):
        """Load the kernel, which takes a while, and may wait for what the context does."""
        self.kernel()

    def begin(self, stream=0):
        """Keep a stream busy."""
        wait = ctypes.c_uint64(self.milliseconds * 1_000_000)
        arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(wait), ctypes.c_void_p))
        check(cu.cuLaunchKernel(self.kernel(), 1, 1, 1, 1, 1, 1, 0, ctypes.c_void_p(stream), arguments, None))

    def fail(self):
        """Have the context broken after a while."""
        if hasattr(cu, "cudasim_fault"):  # where no address is a fault of the GPU's
            threading.Timer(self.milliseconds / 1000, cu.cudasim_fault, [b"lost"]).start()
            time.sleep(self.milliseconds / 2000)
            return self.begin()
        nowhere, count, amount = ctypes.c_uint64(8), ctypes.c_uint64(1), ctypes.c_float(1)
        values = nowhere, count, amount, ctypes.c_uint64(self.milliseconds * 1_000_000)
        arguments = (ctypes.c_void_p * 4)(*[ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in values])
        check(cu.cuLaunchKernel(self.kernel(b"add"), 1, 1, 1, 1, 1, 1, 0, None, arguments, None))

    def end(self, stream=0):
        """Remember all that was given to the stream until now."""
        self.event = ctypes.c_void_p()
        check(cu.cuEventCreate(ctypes.byref(self.event), 2))
        check(cu.cuEventRecord(self.event, ctypes.c_void_p(stream)))

    def running(self):
        """Whether what end remembered is not done."""
        result = cu.cuEventQuery(self.event)
        if result != NOT_READY:
            check(result)
        return result == NOT_READY


work = Work()


def use_primary():
    """Make the first device's primary context this thread's, for what leaves its threads without one."""
    context = ctypes.c_void_p()
    check(cu.cuInit(0))
    check(cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(cu.cuCtxSetCurrent(context))
    return context


def free_memory():
    """The device's free memory in bytes."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    check(cu.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
    return free.value


def synchronize():
    """Wait for all work of the current context."""
    check(cu.cuCtxSynchronize())


def write_words(address, value, count, stream=0):
    """Queue a write of count floats, to memory of any kind."""
    bits = ctypes.c_uint32.from_buffer(ctypes.c_float(value))
    check(cu.cuMemsetD32Async(ctypes.c_uint64(address), bits, ctypes.c_size_t(count), ctypes.c_void_p(stream)))


def read_words(address, count):
    """The least and the greatest of count floats, after all work of the context."""
    synchronize()
    memory = numpy.empty(count, dtype="f4")
    check(cu.cuMemcpy(ctypes.c_uint64(memory.ctypes.data), ctypes.c_uint64(address), ctypes.c_size_t(4 * count)))
    return [float(memory.min()), float(memory.max())]


def begin_capture(mode=2):
    """A stream whose work goes into a graph from now on. Mode 0: calls of other threads may break it, too."""
    stream = ctypes.c_void_p()
    check(cu.cuStreamCreate(ctypes.byref(stream), 1))
    check(cu.cuStreamBeginCapture_v2(stream, mode))
    return stream


def end_capture(stream):
    """The end of a capture, which must not have been broken."""
    graph = ctypes.c_void_p()
    result = cu.cuStreamEndCapture(stream, ctypes.byref(graph))
    check(cu.cuStreamDestroy_v2(stream))
    check(result)
    check(cu.cuGraphDestroy(graph))
