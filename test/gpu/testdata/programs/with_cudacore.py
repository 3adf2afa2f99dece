"""cuda.core. It has no current stream: each call is given one."""

import contextlib

import cuda.core
from cuda.core import (
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    LegacyPinnedMemoryResource,
    ManagedMemoryResource,
    PinnedMemoryResource,
    VirtualMemoryResource,
)
from work import COUNT, write_words

_device = Device()
_device.set_current()
_default = _device.default_stream
_stream = _default
_kept = []
_ipc = DeviceMemoryResource(_device, options=DeviceMemoryResourceOptions(max_size=1 << 30, ipc_enabled=True))
_RESOURCES = {
    "pool": _device.memory_resource,
    "shared pool": _ipc,
    "pinned": LegacyPinnedMemoryResource(),
    "pinned pool": PinnedMemoryResource(),
    "managed": ManagedMemoryResource(),
    "vmm": VirtualMemoryResource(_device),
}


def version():
    return cuda.core.__version__


def make(kind):
    return _RESOURCES[kind].allocate(4 * COUNT, stream=_stream)


def write(kind, array, value):
    if kind != "pinned pool":
        write_words(address(array), value, COUNT, stream())
        return
    source = _RESOURCES["pool"].allocate(4 * COUNT, stream=_stream)  # the driver fills no memory of the host's pool
    write_words(address(source), value, COUNT, stream())
    array.copy_from(source, stream=_stream)
    _kept.append(source)


def address(array):
    return int(array.handle)


def stream():
    return int(_stream.handle)


@contextlib.contextmanager
def other_stream():
    global _stream
    _stream = _device.create_stream()
    yield
    _kept.append(_stream)
    _stream = _default
