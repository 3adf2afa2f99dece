"""A program that has arrays in memory of many allocators, and does to them at random what programs do. All elements of an array are the same
number: which array it is, and how often it was written. Each thread holds that its own arrays are as it has left them."""

import ctypes
import mmap
import os
import random
import threading
import traceback

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import remote

pools = [getattr(pa, name + "_memory_pool")() for name in pa.supported_memory_backends()]


def functions():
    """Malloc's, as the program's libraries see them."""
    library = ctypes.CDLL(None)
    library.malloc.restype = library.realloc.restype = ctypes.c_void_p
    library.malloc.argtypes, library.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
    library.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return library


early = functions()  # before the shared heap's, if that comes late


def library():
    return random.choice([early, functions()])


class Numpy:
    def __init__(self, n):
        self.a = np.empty(n, np.uint64)

    def resize(self, n):
        self.a.resize(n, refcheck=False)

    def end(self):
        self.a = None


class Bytes(Numpy):
    def __init__(self, n):
        self.bytes = bytearray(8 * n)
        self.a = np.frombuffer(self.bytes, np.uint64)

    def resize(self, n):
        self.a = None
        more = bytes(max(0, 8 * n - len(self.bytes)))
        try:
            if not more:  # in place it would put a zero behind its new end
                raise BufferError
            self.bytes.extend(more)
        except BufferError:  # or a host still looks
            self.bytes = self.bytes[: 8 * n] + more
        self.a = np.frombuffer(self.bytes, np.uint64)


class Malloc(Numpy):
    """The caller sees to it that nothing is left of an array that has gone, as in C."""

    def __init__(self, n):
        self.p = library().malloc(8 * n)
        self.look(n)

    def look(self, n):
        self.a = np.ctypeslib.as_array((ctypes.c_uint64 * n).from_address(self.p))

    def resize(self, n):
        self.a = None
        self.p = library().realloc(self.p, 8 * n)
        self.look(n)

    def end(self):
        self.a = None
        library().free(self.p)


class Pool(Numpy):
    def __init__(self, n, pool):
        self.buffer = pa.allocate_buffer(8 * n, memory_pool=pool, resizable=True)
        self.a = np.frombuffer(self.buffer, np.uint64)

    def resize(self, n):
        self.a = None
        self.buffer.resize(8 * n)
        self.a = np.frombuffer(self.buffer, np.uint64)

    def end(self):
        self.a = self.buffer = None


class Arrow(Numpy):
    """An array of PyArrow's, which nobody writes to: another one comes in its place."""

    def __init__(self, n, pool):
        self.n, self.pool = n, pool

    def fill(self, value):
        self.a = pc.add(pa.scalar(value, pa.uint64()), pa.array(np.zeros(self.n, np.uint64)), memory_pool=self.pool)


kinds = [("numpy", Numpy), ("bytearray", Bytes), ("malloc", Malloc)]
for pool in pools:
    name = pool.backend_name
    kinds.append((name + " pool", lambda n, pool=pool: Pool(n, pool)))
    kinds.append((name + " array", lambda n, pool=pool: Arrow(n, pool)))


def size():
    return int(2 ** random.uniform(11, 18)) + random.randrange(512)


class Slot:
    """Arrays that come one after the other."""

    def __init__(self, number):
        self.number, self.serial, self.memory = number, 0, None
        self.new()

    def value(self):
        return self.serial << 40 | self.number << 32 | self.writes

    def new(self):
        self.a = None
        if self.memory:
            self.memory.end()
        self.serial, self.writes = self.serial + 1, 0
        self.kind, make = random.choice(kinds)
        self.memory = make(size())
        self.write()

    def write(self):
        if isinstance(self.memory, Arrow):
            self.a, self.serial = None, self.serial + 1
            self.memory.fill(self.value())
        else:
            self.writes += 1
            self.memory.a[:] = self.value()
        self.a = self.memory.a

    def read(self):
        """A system call writes to the array."""
        self.writes += 1
        os.pwrite(file, self.value().to_bytes(8, "little") * len(self.a), 0)
        view, done = memoryview(self.a).cast("B"), 0
        while done < len(view):
            done += os.preadv(file, [view[done:]], done)

    def resize(self):
        n = min(len(self.a), fresh := size())
        self.a = None
        self.memory.resize(fresh)
        self.hold(self.memory.a[:n])
        self.write()

    def give_up(self):
        """The program gives pages back that it will write to."""
        address = self.memory.a.ctypes.data
        first, last = -address % mmap.PAGESIZE, (address + self.memory.a.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
        ctypes.CDLL(None).madvise(ctypes.c_void_p(address + first), ctypes.c_size_t(last - address - first), mmap.MADV_DONTNEED)
        assert not self.memory.a[-(-first // 8) : (last - address) // 8].any()
        self.write()

    def hold(self, a=None):
        a = np.asarray(self.a if a is None else a)
        wrong = np.flatnonzero(a != self.value())
        assert not len(wrong), (self.kind, hex(self.value()), wrong, [hex(x) for x in a[wrong[:9]]])


def purge():
    """All allocators give back what is free."""
    for pool in pools:
        pool.release_unused()
    library = ctypes.CDLL(None)
    for name, arguments in (
        ("malloc_trim", [0]),
        ("mi_collect", [1]),
        ("MallocExtension_ReleaseFreeMemory", []),
        ("mallctl", [b"arena.4096.purge", None, None, None, ctypes.c_size_t(0)]),
    ):
        if hasattr(library, name):
            getattr(library, name)(*arguments)


def fork(slots):
    """The child has the arrays as they are, and writes to its own."""
    pid = os.fork()
    if pid == 0:
        try:
            for slot in slots:
                slot.hold()
                slot.write()
                slot.hold()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0


def step(slots):
    slot, what = random.choice(slots), random.random()
    slot.hold()
    if what < 0.3:
        slot.new()
    elif what < 0.5 and isinstance(slot.memory, Arrow):
        slot.write()
    elif what < 0.45:
        slot.resize()
    elif what < 0.5 and slots is workers[0].slots:
        slot.read()
    elif what < 0.55 and "ALONE" not in os.environ and not isinstance(slot.memory, Arrow):
        slot.give_up()
    elif what < 0.9:
        slot.write()
    elif what < 0.95:
        purge()
    else:
        fork(slots)
    slot.hold()


class Worker(threading.Thread):
    def __init__(self, slots):
        super().__init__()
        self.slots, self.turn, self.steps = slots, threading.Lock(), 0

    def run(self):
        try:
            while not ended:
                with self.turn:
                    step(self.slots)
                self.steps += 1
        except BaseException:
            failures.append(traceback.format_exc())


file = os.memfd_create("numbers")
failures, ended = [], False
slots = [Slot(i) for i in range(10)]
workers = [Worker(slots[:5]), Worker(slots[5:])]


def start():
    for worker in workers:
        worker.start()


def pause():
    """Says what all arrays are, until the program goes on."""
    for worker in workers:
        worker.turn.acquire()
    assert not failures, failures[0]
    return [{"Kind": slot.kind, "Value": slot.value(), "Elements": len(slot.a)} for slot in slots]


def resume():
    for worker in workers:
        worker.turn.release()


def end():
    global ended
    ended = True
    for worker in workers:
        worker.join()
    for slot in slots:
        slot.hold()
    return {"Failures": failures, "Steps": sum(worker.steps for worker in workers)}


if "ALONE" in os.environ:
    import ndbridge

    print(ndbridge.listen(), flush=True)
remote.serve()
