"""What the statements of the steps use, so that those that failed can be read and run by themselves."""

import array
import copy
import ctypes
import gc
import mmap
import os
import pickle
import random
import subprocess
import sys
import tempfile
import threading
from multiprocessing import shared_memory

import numpy as np

import watches
from places import Owner, Refused, published_memory, root

_random = random.Random(1)
_noise = bytes(_random.getrandbits(8) for _ in range(1 << 16))
_noise = (_noise + bytes((b + 7) & 255 for b in _noise)) * 10
_truths = _noise.translate(bytes([0, 1] * 128))
_poison = 0xDD

# The model, which is told of what no look at the arrays shows; None where a statement runs by itself.
model = None


class Node:
    """An object with attributes."""


def noise(n, seed, of=_noise):
    """n bytes that differ from those of other seeds."""
    start = seed % 60000
    return (of if start + n <= len(of) else of * (2 + n // len(of)))[start : start + n]


def fill(address, n, seed, truths=False):
    """Write noise, or truth values, over n bytes."""
    ctypes.memmove(address, noise(n, seed, _truths if truths else _noise), n)


def mk(shape, dtype, seed, order="C"):
    """An array of its own memory, full of noise."""
    a = np.empty(shape, dtype, order)
    if a.dtype.hasobject:
        raise TypeError("no place for noise")
    if a.nbytes:
        fill(a.ctypes.data, a.nbytes, seed, a.dtype == bool)
    return a


def aligned(shape, dtype, seed):
    """An array whose memory other frameworks can alias: it begins at a multiple of 64 bytes."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 128, "u1")
    at = -memory.ctypes.data % 64
    a = memory[at : at + size].view(dtype).reshape(shape)
    a[...] = mk(shape, dtype, seed)
    return a


def publish(name, o):
    import ndbridge

    _publish({name: o}, lambda: ndbridge.publish(name, o))


def publish_all(arrays):
    import ndbridge

    _publish(arrays, lambda: ndbridge.publish(arrays))


def _publish(arrays, call):
    try:
        for o in arrays.values():
            is_doubtful(o)
        call()
    except Exception:  # with words that a stub need not know
        raise TypeError("refused") from None
    for name, o in arrays.items():
        if model:
            model.published(name, o)


def is_doubtful(o):
    """Raise an exception if an object may be published, or not."""
    try:
        published_memory(o)
    except Refused as refusal:
        if str(refusal) == "?":
            raise


def unpublish(name):
    import ndbridge

    ndbridge.unpublish(name)
    if model:
        model.published(name, None)


def mapped(shape, dtype, seed, mode="r+"):
    """An array in a mapped file without a name."""
    a = mk(shape, dtype, seed)
    with tempfile.TemporaryFile() as file:
        file.write(a.tobytes() or b"\0")
        file.flush()
        m = np.memmap(file, dtype, mode, 0, a.shape)
        if mode != "c":
            watches.mapped(m.ctypes.data, m.nbytes, file.fileno())
    return m


def shared(shape, dtype, seed):
    """An array in a shared memory whose name is gone."""
    a = mk(shape, dtype, seed)
    memory = shared_memory.SharedMemory(create=True, size=max(a.nbytes, 1))
    memory.unlink()
    b = np.ndarray(a.shape, a.dtype, memory.buf)
    b[...] = a
    watches.mapped(b.ctypes.data, b.nbytes, memory._fd)
    _memories.append(memory)
    return b


_memories = []


def forget():
    """Wait for the threads; close the shared memories, which NumPy does not keep open: no array of them may be left."""
    while _computing:
        _computing.pop().join()
    while _memories:
        _memories.pop().close()


def churn(size, count):
    """Use freed memory again, and write into it what is nobody's value."""
    junk = [np.full(size, _poison, "u1") for _ in range(count)]
    del junk[:: 2]
    junk += [np.full(size, _poison, "u1") for _ in range(count)]


def churn_in_threads(size, count):
    threads = [threading.Thread(target=churn, args=(size, count)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


_computing = []


def compute(rounds):
    """A thread that computes beside the steps that follow."""

    def work():
        a = np.arange(1 << 14, dtype="f8")
        for _ in range(rounds):
            a = np.sqrt(a + 1)

    thread = threading.Thread(target=work)
    thread.start()
    _computing.append(thread)


def cycle(o):
    """An object that the garbage collector has to find."""
    node = Node()
    node.me, node.a = node, o


def fork(scribble=None):
    """A child that ends at once, after it has written into the array that it was given."""
    child = os.fork()
    if child == 0:
        try:
            if scribble is not None:
                scribble[...] = scribble[...] ^ 1 if scribble.dtype.kind in "iu" else 0
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    if model:
        model.watches.fork()


def run_child():
    """Run another program. Before Python 3.10 that begins with a fork, and with vfork since."""
    subprocess.run(["true"])
    if model and sys.version_info < (3, 10):
        model.watches.fork()


def resize(a, n):
    """Resize an array without a look at who refers to it, unless another array stands on its memory."""
    if model and (model.places.shares(a) or not a.flags.writeable):
        raise ValueError("others stand on its memory")
    a.resize(n, refcheck=False)


def point(a, b):
    """Give an array the memory of another one."""
    if model and (model.places.shares(a) or root(a) == root(b)):
        raise ValueError("others stand on its memory")
    a.data = b.data


def refill(a, like, seed):
    """Give an array other memory, and the shape and type of another array."""
    if model and model.places.shares(a) or like.dtype.hasobject or like.dtype == bool:
        raise ValueError("others stand on its memory")
    before = root(a)
    a.__setstate__((1, like.shape, like.dtype, False, noise(like.nbytes, seed)))
    if model:
        model.watches.gone(*before)  # NumPy may take the new memory where the old was


def exported():
    """The names that statements use, all of them no arrays."""
    names = dict(globals())
    for name in ("random", "watches", "forget", "model", "root", "exported", "tempfile", "shared_memory"):
        del names[name]
    return {name: o for name, o in names.items() if not name.startswith("_")}
