"""The program of the tests: arrays of one framework (its name is the first argument), written late.

A module with_NAME.py is what is known of a framework: make(kind), write(kind, array, value) and
address(array); stream(), the stream that its work goes to now, and other_stream(), a context in which
that is another one. small(count) is an array of another size, by cuMemAlloc; capture(n), the n-th capture of a graph, and others that it has. A framework whose arrays cannot be written has written(kind, value) in their
place, which makes an array that is ready late, unless it is told not to, and pending(array).
"""

import importlib
import os
import sys
import threading
import time

import called  # noqa: F401
import numpy
import remote
from work import COUNT, begin_capture, end_capture, free_memory, read_words, synchronize, work, write_words  # noqa: F401

import ndbridge

framework = importlib.import_module("with_" + sys.argv[1])
arrays = globals()  # each has a name of its own
published = set()


def version():
    return framework.version()


def make(name, kind, value=0.0):
    """An array whose contents are there."""
    arrays[name] = made(kind, value)
    synchronize()
    work.prepare()


def make_small(name, count, value):
    """Free an array, and make another one of any size, which may lie at its place."""
    arrays.pop(name, None)
    arrays[name] = framework.small(count)
    write_words(framework.address(arrays[name]), value, count)
    synchronize()


def made(kind, value):
    if hasattr(framework, "written"):
        return framework.written(kind, value, late=False)
    array = framework.make(kind)
    framework.write(kind, array, value)
    return array


def write_late(name, kind, value):
    """Have an array written, after a while."""
    if hasattr(framework, "written"):
        arrays[name] = framework.written(kind, value)
        return
    work.begin(framework.stream())
    framework.write(kind, arrays[name], value)
    work.end(framework.stream())


def publish_late(name, kind, value):
    """Have an array written, after a while, on a stream that is not the default; publish it then."""
    with framework.other_stream():
        write_late(name, kind, value)
        ndbridge.publish(name, arrays[name])
    published.add(name)


def captures(count, capture="capture"):
    """How many captures of graphs are broken, and why the last one is."""
    broken, why = 0, ""
    for i in range(count):
        try:
            getattr(framework, capture)(i)
        except Exception as error:
            broken, why = broken + 1, str(error)
    return [broken, why]


def launches(name, kind, count):
    """Microseconds that launches of small work take: the median, the 99th and 99.9th percentiles, and the longest."""
    times = []
    for i in range(count):
        begun = time.perf_counter()
        framework.write(kind, arrays[name], 1)
        times.append(1e6 * (time.perf_counter() - begun))
        if i % 500 == 499:  # the next launch takes longer: were it one in a hundred, it would be the 99th percentile
            synchronize()
    synchronize()
    times.sort()
    return [times[len(times) // 2], times[len(times) * 99 // 100], times[len(times) * 999 // 1000], times[-1]]


def launches_beside_thread(name, kind, count, pause):
    """launches, beside a thread of the program's own that wakes up again and again, and does nothing."""
    over = threading.Event()

    def wake():
        while not over.wait(pause):
            pass

    thread = threading.Thread(target=wake)
    thread.start()
    try:
        return launches(name, kind, count)
    finally:
        over.set()
        thread.join()


def running(name):
    if hasattr(framework, "pending"):
        return framework.pending(arrays[name])
    return work.running()


def replace(name, kind, value):
    """Forget an array, and write another value to as many new ones as its memory could go to.

    Whether one of them lies where it lay."""
    before = framework.address(arrays[name])
    if name in published:
        ndbridge.unpublish(name)
        published.remove(name)
    del arrays[name]
    others = []
    for _ in range(4):
        others.append(made(kind, value))
    synchronize()
    return any(framework.address(other) == before for other in others)


def make_result():
    """Host memory for what a kernel of the host reads."""
    global result
    result = numpy.zeros(COUNT, dtype="f4")


def child_publishes():
    """What a forked child does: it is told that it has no host."""
    try:
        ndbridge.publish("child", numpy.zeros(3))
    except RuntimeError:
        os._exit(0)
    os._exit(1)


def contents(name):
    return read_words(framework.address(arrays[name]), COUNT)


ready = numpy.zeros(1)
remote.serve()
