"""The C interface of the shared heap (ndheap.h), for tests in Python."""

import contextlib
import ctypes
import mmap
import os

ABI = 9
SHAREABLE, FROZEN, OUTSIDE = 1, 2, 4
STATES = ("idle", "on", "off", "no-memfd", "no-addresses", "strict-commit")


class Block(ctypes.Structure):
    _fields_ = [
        ("fd", ctypes.c_int32),
        ("task", ctypes.c_int32),
        ("device", ctypes.c_uint64),
        ("inode", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("segment", ctypes.c_uint64),
        ("segment_size", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
        ("available", ctypes.c_uint64),
    ]


class Stats(ctypes.Structure):
    _fields_ = [("state", ctypes.c_uint32), ("descriptors", ctypes.c_uint32)] + [
        (name, ctypes.c_uint64)
        for name in (
            "threshold live_bytes live_blocks warm_bytes warm_blocks pinned_blocks frozen_blocks"
            " taken reused given refused dropped forks"
        ).split()
    ]


_process = ctypes.CDLL(None)


def loaded():
    return hasattr(_process, "ndheap_abi")


assert not loaded() or ctypes.c_uint32.in_dll(_process, "ndheap_abi").value == ABI, "its structures are other ones"


def pin(address):
    """The block that address lies in, or None. A shareable one is pinned."""
    block = Block()
    if not loaded() or _process.ndheap_pin(ctypes.c_void_p(address), ctypes.byref(block)) != 0:
        return None
    return block


def unpin(address):
    return _process.ndheap_unpin(ctypes.c_void_p(address), ctypes.c_uint64(0)) == 0


def where(address):
    """"heap", "frozen", "lost" (its descriptor was closed) or "elsewhere"."""
    block = pin(address)
    if block is None or block.flags & OUTSIDE:
        return "elsewhere"
    if block.flags & SHAREABLE:
        unpin(address)
        return "heap"
    return "frozen" if block.flags & FROZEN else "lost"


def stats():
    s = Stats()
    assert _process.ndheap_stats(ctypes.byref(s)) == 0
    return s


def state():
    return STATES[stats().state]


def trim(idle_ms=0):
    _process.ndheap_trim.restype = ctypes.c_uint64
    return _process.ndheap_trim(ctypes.c_uint32(idle_ms))


@contextlib.contextmanager
def mapped(block):
    """The file behind a pinned block as another process sees it, from the block on."""
    with mmap.mmap(block.fd, block.segment_size, mmap.MAP_SHARED, mmap.PROT_READ) as m:
        with memoryview(m) as whole, whole[block.offset :] as view:
            yield view


def pages(address, size):
    """What another process would see at address: bytes read through the file, not through memory."""
    block = pin(address)
    assert block and block.flags & SHAREABLE and block.available >= size, "not shareable"
    try:
        with mapped(block) as view:
            return bytes(view[:size])
    finally:
        unpin(address)


def descriptors():
    return len(os.listdir("/proc/self/fd"))
