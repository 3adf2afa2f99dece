"""Numba. It has no current stream: each kernel and each copy is given one."""

import contextlib

import numba
import numpy as np
from work import COUNT

if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack  # NumPy 2.5 has taken it away, and numba-cuda 0.30 needs it to compile

import numba.cuda

_stream = numba.cuda.default_stream()
_kept = []


@numba.cuda.jit
def _fill(array, value):
    start = numba.cuda.grid(1)
    for i in range(start, array.size, numba.cuda.gridsize(1)):
        array[i] = value


def version():
    try:
        import numba_cuda

        return f"{numba.__version__} (numba-cuda {numba_cuda.__version__})"
    except ImportError:
        return numba.__version__


def make(kind):
    if kind == "device":
        return numba.cuda.device_array(COUNT, np.float32)
    if kind == "managed":
        return numba.cuda.managed_array(COUNT, np.float32)
    if kind == "mapped":
        return numba.cuda.mapped_array(COUNT, np.float32)
    return numba.cuda.pinned_array(COUNT, np.float32)


def small(count):
    return numba.cuda.device_array(count, np.float32)


def write(kind, array, value):
    if kind == "pinned":
        source = numba.cuda.device_array(COUNT, np.float32)
        _fill[64, 256, _stream](source, np.float32(value))
        source.copy_to_host(array, stream=_stream)
        _kept.append(source)  # freeing it would wait for the work
    else:
        _fill[64, 256, _stream](array, np.float32(value))


def address(array):
    if hasattr(array, "__cuda_array_interface__"):
        return array.__cuda_array_interface__["data"][0]
    return array.ctypes.data


def stream():
    handle = _stream.handle
    return int(getattr(handle, "value", handle) or 0)


@contextlib.contextmanager
def other_stream():
    global _stream
    default, _stream = _stream, numba.cuda.stream()
    yield
    _kept.append(_stream)
    _stream = default
