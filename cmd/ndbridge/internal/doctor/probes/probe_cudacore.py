"""cuda.core's buffers."""

import numpy as np
from cuda import core

import probing
from probing import MANY, arrays, kind, now


def filled(x):
    x.fill(7, stream=stream)
    stream.sync()
    return x


def content(x):
    return (x.size,), b"\7" * x.size


def pinned(x):
    return (x.size,), np.from_dlpack(x).tobytes()


def begin():
    global device, stream
    device = core.Device()
    device.set_current()
    stream = device.create_stream()


report = probing.on_gpu(begin)
if report is None:
    kind("buffer", lambda: filled(device.allocate(MANY, stream=stream)), content, "cudacore.buffers-as-int8", shared=False)
    kind("small buffer", lambda: filled(device.allocate(3, stream=stream)), content, "cudacore.stream-ignored", shared=False)
    kind("pinned buffer", lambda: filled(core.LegacyPinnedMemoryResource().allocate(MANY)), pinned, shared=False)
    report = probing.report()
