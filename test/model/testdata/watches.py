"""What a view that was taken of an object must show from then on.

A view that was not copied shows the memory of its object, whatever becomes of the name: live, while an
object of the program stands on that memory; and the last values, when the program has given it up. If memory of
the shared heap went through a fork, the view shows the values of then until it is live again. A copy shows what it was
made of.
"""

import ctypes
import os
import sys
import zlib

import numpy as np

from places import Missing, Refused, memory, published_memory, root

LIVE, CHANGED, KEPT = "live", "changed", "kept"  # changed: live, but what stands there has another size

_files = []  # (address, size, descriptor) of each file that was mapped, the latest first


def mapped(address, size, descriptor):
    """Note that memory of the program is that of a file, which lives on without it."""
    _files.insert(0, (address, size, os.dup(descriptor)))


def forget_files():
    for _, _, descriptor in _files:
        os.close(descriptor)
    _files.clear()


def is_fixed(o):
    """Whether a version of o goes on showing the memory that was published, if o has other memory since."""
    jax = sys.modules.get("jax")
    return type(o) is np.ndarray or bool(jax and isinstance(o, jax.Array))


class Watch:
    """The memory of an object, as of one moment."""

    def __init__(self, m, route):
        self.memory = m
        self.state = LIVE
        self.parted_by_fork = route == "shared-heap"
        self.forked = []  # what it showed at the last forks
        self.low, self.high = m.span()
        self.file = self.root = None
        if m.content is not None or self.low == self.high:
            self.state, self.raw = KEPT, m.content or b""
            return
        self.raw = ctypes.string_at(self.low, self.high - self.low)
        if route == "mapped-file":
            for address, size, descriptor in _files:
                if address <= self.low and self.high <= address + size:
                    if os.pread(descriptor, len(self.raw), self.low - address) == self.raw:  # not of an earlier mapping
                        self.file = descriptor, self.low - address
                        break

    def refresh(self, roots, written=True):
        """Read the memory again, as far as the program still has it, if it may have been written."""
        if self.state == KEPT or self.file and not written:
            return
        if self.file:
            self.raw = os.pread(self.file[0], self.high - self.low, self.file[1])
            return
        found = False
        for low, high in roots:
            if self.root is None and low <= self.low and self.high <= high:
                self.root = low, high
            low, high = max(low, self.low), min(high, self.high)
            if low < high:
                found = True
                if not written:
                    break
                part = ctypes.string_at(low, high - low)
                if high - low == self.high - self.low:
                    self.raw = part
                    break
                self.raw = self.raw[: low - self.low] + part + self.raw[high - self.low :]
        if not found:
            self.state = KEPT
        elif self.root is not None and self.root not in roots:
            self.state = CHANGED

    def poke(self, offset, value):
        """Write one byte, as a host does through a writable view."""
        if self.file:
            os.pwrite(self.file[0], bytes([value]), self.file[1] + offset)
        elif self.state == LIVE:
            ctypes.memset(self.memory.address + offset, value, 1)

    def say(self):
        if self.memory.content is not None:
            return [self.state, zlib.crc32(self.memory.content), []]
        return [self.state, zlib.crc32(self.memory.row_major(self.raw)), self.forked]


class Watches:
    """All watches of a program, by the host's numbers for its views."""

    def __init__(self, places):
        self.places = places
        self.all = {}
        self.published = {}  # name: the watch of what was published, or None
        self.rebound = {}  # name: whether a look may have published it again, since the object has other memory or another shape
        self.uncounted = set()  # names of which the same was true of an earlier version
        self.blurred = False  # the same was true of a name that was unpublished, above whose version others begin

    def add(self, number, path, route):
        read = published_memory if path in self.places.published else memory
        o = self.places.get(path)  # perhaps made by looking: a row of JAX's, whose memory is there only as long as it is
        self.all[number] = Watch(read(o), route)

    def publish(self, name):
        o = self.places.published.get(name, Missing)
        if o is Missing:
            self.published.pop(name, None)
            self.blurred |= bool(self.rebound.pop(name, None)) or name in self.uncounted
            self.uncounted.discard(name)
            return
        if self.rebound.get(name) or self.blurred and name not in self.rebound:
            self.uncounted.add(name)
        self.rebound[name] = False
        try:
            m = published_memory(o)
            self.published[name] = Watch(m, "") if m is not None else None
        except Refused:
            self.published[name] = None

    def refresh(self, written=True):
        live = [w for w in list(self.all.values()) + list(self.published.values()) if w and w.state != KEPT]
        roots = self.places.roots() if live else ()
        for w in live:
            w.refresh(roots, written)

    def refresh_published(self):
        """Read what is published, of which the program holds the objects, once before it is told of."""
        roots = self.places.roots()
        for w in self.published.values():
            if w:
                w.refresh(roots)

    def fork(self):
        """Note what views of memory of the shared heap show until they are live again."""
        for w in self.all.values():
            if w.parted_by_fork and w.memory.content is None:
                w.forked = (w.forked + [w.say()[1]])[-8:]

    def gone(self, low, high):
        """Note that the program has given memory up, though it may have new memory at the same addresses."""
        for w in list(self.all.values()) + list(self.published.values()):
            if w and not w.file and w.low < high and low < w.high:
                w.state = KEPT

    def say_published(self, name):
        """What was published: what it shows now, whether the object has other memory since then, and whether that is of
        no account."""
        w, o = self.published.get(name), self.places.published[name]
        if w is None:
            self.rebound[name] = True
            return None
        then, fixed = w.memory, is_fixed(o)
        try:
            m = published_memory(o)
        except Refused:
            m = None
        if m is None or (m.address, m.shape, m.strides, m.dtype) != (then.address, then.shape, then.strides, then.dtype):
            self.rebound[name] = True
        if m is None and not fixed:
            return None
        now = root(o)
        moved = m is None or w.low != w.high and m.address != then.address
        if now is not None and w.low != w.high:  # memory may have become smaller where it is
            moved = moved or not (now[0] <= w.low and w.high <= now[1])
        return {"is": [list(then.shape), then.dtype, then.tag, w.say()[1], then.read_only], "moved": moved, "fixed": fixed}

    def renamed(self, name):
        """Whether the fields of what was published have other names since then."""
        w = self.published.get(name)
        try:
            return w is not None and published_memory(self.places.published[name]).tag != w.memory.tag
        except Refused:
            return False

    def was_writable(self, name):
        """Whether the program might write to what was published, then."""
        w = self.published.get(name)
        return w is not None and not w.memory.read_only

    def clear(self):
        self.all.clear()
        self.published.clear()
        self.rebound.clear()
        self.uncounted.clear()
