"""What forks cost, and making arrays shared again after them: this runs once with the shared heap and once without.

Arguments: "writers" or "fork", BYTES, ROUNDS. It prints what it found as JSON; durations are in nanoseconds.
"""

import ctypes
import json
import os
import sys
import threading
import time

import numpy as np

process = ctypes.CDLL(None)
CHUNK = 64 << 10  # a writer's step, whose duration is measured


def fork():
    """Fork a child that lives until the descriptor that this gives is closed; the duration is the call's."""
    end, keep = os.pipe()
    start = time.perf_counter_ns()
    pid = os.fork()
    took = time.perf_counter_ns() - start
    if pid == 0:
        os.close(keep)
        os.read(end, 1)
        os._exit(0)
    os.close(end)
    return pid, keep, took


def promote(array):
    """Have an array that a fork has made private shared again, as configured and alone; 0 if that was done."""
    return process.ndheap_promote(ctypes.c_void_p(array.ctypes.data), 0, 0)


def join(pid, keep):
    os.close(keep)
    assert os.waitpid(pid, 0)[1] == 0


class Writer:
    """A thread that writes to a part of an array. Pass n leaves n in each word, or n % 251 in each byte."""

    def __init__(self, part, step, adds):
        self.part, self.step, self.adds = part, step, adds
        self.passes = self.calls = self.failed = self.longest = 0
        self.stop = False
        self.thread = threading.Thread(target=self.run)

    def run(self):
        chunks = [self.part[i : i + CHUNK] for i in range(0, len(self.part), CHUNK)]
        while not self.stop:
            for chunk in chunks:
                start = time.perf_counter_ns()
                self.failed += not self.step(chunk, self.passes + 1)
                self.longest = max(self.longest, time.perf_counter_ns() - start)
            self.calls += len(chunks)
            self.passes += 1

    def lost(self):
        """Elements that do not hold what the last pass has left there."""
        if self.adds:
            return int(np.count_nonzero(self.part.view("i8") != self.passes))
        return int(np.count_nonzero(self.part != self.passes % 251))


def with_numpy(chunk, number):
    view = chunk.view("i8")
    np.add(view, 1, out=view)
    return True


def with_torch():
    import torch

    torch.set_num_threads(1)

    def step(chunk, number):
        torch.from_numpy(chunk.view("i8")).add_(1)
        return True

    return step


def with_c():
    process.memset.argtypes = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t

    def step(chunk, number):
        process.memset(chunk.ctypes.data, number % 251, len(chunk))
        return True

    return step


def with_readinto():
    files = []
    for number in range(251):
        fd = os.memfd_create("bench")
        os.write(fd, bytes([number]) * CHUNK)
        files.append(open(fd, "rb", buffering=0))

    def step(chunk, number):
        file = files[number % 251]
        file.seek(0)
        try:
            return file.readinto(chunk) == len(chunk)
        except OSError:
            return False

    return step


def writers(size, rounds):
    array = np.zeros(size, "u1")
    parts = np.split(array, 4)
    threads = [
        Writer(parts[0], with_c(), False),
        Writer(parts[1], with_numpy, True),
        Writer(parts[2], with_torch(), True),
        Writer(parts[3], with_readinto(), False),
    ]
    heap = hasattr(process, "ndheap_promote")
    took, promoted = [], 0
    for w in threads:
        w.thread.start()
    for _ in range(rounds):
        child = fork()
        start = time.perf_counter_ns()
        if heap:
            promoted += promote(array) == 0
        else:
            time.sleep(0.06)  # the writers go on as long
        took.append(time.perf_counter_ns() - start)
        join(*child[:2])
    for w in threads:
        w.stop = True
    for w in threads:
        w.thread.join()
    return {
        "promoted": promoted,
        "took": took,
        "writes": sum(w.passes * len(w.part) // 8 for w in threads),
        "lost": sum(w.lost() for w in threads),
        "calls": threads[3].calls,
        "failed": sum(w.failed for w in threads),
        "longest": max(w.longest for w in threads),
    }


def tend():
    """What a plugin does every second, which is there when arrays are leased."""
    while True:
        process.ndheap_trim(ctypes.c_uint32(1000))
        time.sleep(1)


def forks(size, rounds):
    """Durations of forks of a program with arrays of 1 MiB, of which every hundredth is leased and shared again each time."""
    arrays = [np.ones(1 << 17) for _ in range(size >> 20)]
    if hasattr(process, "ndheap_pin"):
        threading.Thread(target=tend, daemon=True).start()
        for a in arrays[::100]:
            assert process.ndheap_pin(ctypes.c_void_p(a.ctypes.data), ctypes.create_string_buffer(64)) == 0
    took = []
    for _ in range(rounds):
        pid, keep, duration = fork()
        took.append(duration)
        join(pid, keep)
        if hasattr(process, "ndheap_promote"):
            for a in arrays[::100]:
                promote(a)
    return {"took": took}


work = {"writers": writers, "fork": forks}[sys.argv[1]]
print(json.dumps(work(int(sys.argv[2]), int(sys.argv[3]))))
