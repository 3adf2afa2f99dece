"""Warp. Its allocator can be changed at any time."""

import contextlib

import warp as wp
from work import COUNT

wp.config.quiet = True
wp.init()
_kept = []


def version():
    return wp.config.version


def make(kind):
    if kind == "pinned":
        return wp.zeros(COUNT, dtype=wp.float32, device="cpu", pinned=True)
    wp.set_mempool_enabled("cuda:0", kind == "pool")
    return wp.zeros(COUNT, dtype=wp.float32, device="cuda:0")


def write(kind, array, value):
    if kind == "pinned":
        source = wp.empty(COUNT, dtype=wp.float32, device="cuda:0")
        source.fill_(value)
        wp.copy(array, source)
        _kept.append(source)  # freeing it would wait for the work
    else:
        array.fill_(value)


def address(array):
    return array.ptr


def stream():
    return wp.get_stream("cuda:0").cuda_stream or 0


@contextlib.contextmanager
def other_stream():
    with wp.ScopedStream(wp.Stream("cuda:0")):
        yield
