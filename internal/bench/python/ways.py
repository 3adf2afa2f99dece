"""The usual ways to hand an array over, each of which this program measures by itself.

It first writes what there is, as JSON: versions, and why others are missing. Then each line that it reads
asks for a measurement: way, framework, bytes, warm (calls that do not count), count. The answer is how many
nanoseconds each of the calls took, or why they failed.

Its child has the arrays; the time is from the request to the child until the last element of an array was read
here. A way that is a call gives an array of this process to the child, which answers with the last element.
"""

import contextlib
import itertools
import json
import multiprocessing
import pickle
import sys
import time
from multiprocessing import shared_memory

import making

clock = time.perf_counter_ns


class Arrays(dict):
    """Arrays by framework and size, made when they are first asked for."""

    def __init__(self, make):
        super().__init__()
        self.make = make

    def __missing__(self, key):
        self[key] = self.make(*key)
        return self[key]


def timed(request, calls):
    """Durations of calls of f, which returns what is to be undone."""
    f, undo = calls
    took = []
    for _ in range(request["warm"] + request["count"]):
        start = clock()
        got = f()
        took.append(clock() - start)
        undo(got)
        del got
    return took[request["warm"] :]


def nothing(_):
    pass


def export(array):
    """What the framework does by itself to hand an array over in its own process."""
    return lambda: array.__dlpack__(), nothing


def memoryview(array):
    from cuda.core.utils import StridedMemoryView

    return lambda: StridedMemoryView.from_dlpack(array, stream_ptr=-1), nothing


# ------------------------------------------------------------------------------- the child's side


def copied(array):
    import numpy as np

    memory = shared_memory.SharedMemory(create=True, size=array.nbytes)
    np.ndarray(array.shape, array.dtype, buffer=memory.buf)[:] = array
    return memory


class Producer:
    """The arrays of the child, and what it does when it is asked for one."""

    def __init__(self, connection):
        self.connection = connection
        self.arrays = Arrays(making.make)
        self.shared = {}

    def prepare(self, way, *key):
        if way != "shared_memory":
            self.arrays[key]
        elif key not in self.shared:
            array = making.make(*key)
            self.shared[key] = copied(array), array.shape, array.dtype
        self.connection.send(None)

    def drop(self, way, *key):
        self.arrays.pop(key, None)
        self.connection.send(None)

    def hand_over(self, way, *key):
        if way == "pickle over a pipe":
            self.connection.send_bytes(pickle.dumps(self.arrays[key], pickle.HIGHEST_PROTOCOL))
        elif way == "shared_memory":
            memory, *rest = self.shared[key]
            self.connection.send((memory.name, *rest))
        else:
            array = self.arrays[key]
            memory = copied(array)
            self.connection.send((memory.name, array.shape, array.dtype))
            self.connection.recv()
            unlink(memory)

    def last(self, array):
        self.connection.send(float(array[-1]))

    def close(self):
        for memory, *_ in self.shared.values():
            unlink(memory)


def unlink(memory):
    memory.close()
    memory.unlink()


def produce(connection):
    producer = Producer(connection)
    for what, *request in iter(connection.recv, None):
        getattr(producer, what)(*request)
    producer.close()


def produce_tensors(connection, queues):
    arrays = Arrays(making.make)
    for way, *key in iter(connection.recv, None):
        queues[way].put(arrays[tuple(key)])


# -------------------------------------------------------------------------------------- this side


def read(array):
    """Gives the array, whose last element has been read."""
    if float(array[-1]) != (len(array) - 1) % making.PERIOD:
        raise ValueError(f"the last element is {array[-1]}")
    return array


def argument(framework, size):
    """An array for calls; one of PyTorch's is moved into shared memory before, and not for each call."""
    array = making.make(framework, size)
    if framework == "torch":
        import torch.multiprocessing  # noqa: F401  # from now on a pipe carries tensors without their elements

        array.share_memory_()
    return array


class Consumer:
    def __init__(self):
        self.arrays = Arrays(making.reserve)
        self.arguments = Arrays(argument)
        self.children = {}

    def child(self, name, start):
        if name not in self.children:
            self.children[name] = start()
        return self.children[name]

    def plain(self):
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        child = context.Process(target=produce, args=(there,), daemon=True)
        child.start()
        return here, child, None

    def torch(self):
        import torch.multiprocessing

        context = torch.multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        queues = {"torch.multiprocessing Queue": context.Queue(), "torch.multiprocessing SimpleQueue": context.SimpleQueue()}
        child = context.Process(target=produce_tensors, args=(there, queues), daemon=True)
        child.start()
        return here, child, queues

    def calls(self, way, key):
        """What is timed and what undoes it."""
        if way == "__dlpack__":
            return export(self.arrays[key])
        if way == "StridedMemoryView":
            return memoryview(self.arrays[key])
        if way in ("torch.multiprocessing Queue", "torch.multiprocessing SimpleQueue"):
            connection, _, queues = self.child("torch", self.torch)
            queue = queues[way]

            def tensor():
                connection.send((way, *key))
                return read(queue.get())

            return tensor, nothing
        connection, *_ = self.child("plain", self.plain)
        if way.endswith(", call"):
            return self.called(connection, self.arguments[key])
        take = self.pickled if way == "pickle over a pipe" else self.shared
        return take(connection, ("hand_over", way, *key))

    def around(self, what, way, key):
        """Lets the child do what is no part of the time: make an array, or drop it."""
        if way in ("pickle over a pipe", "shared_memory", "shared_memory, copied in"):
            connection, *_ = self.child("plain", self.plain)
            connection.send((what, way, *key))
            connection.recv()

    def called(self, connection, array):
        numbers = itertools.cycle(range(making.PERIOD))

        def called():
            array[-1] = number = next(numbers)
            connection.send(("last", array))
            if (answer := connection.recv()) != number:
                raise ValueError(f"the last element arrived as {answer}, expected {number}")

        return called, nothing

    def pickled(self, connection, request):
        def unpickled():
            connection.send(request)
            return read(pickle.loads(connection.recv_bytes()))

        return unpickled, nothing

    def shared(self, connection, request):
        import numpy as np

        def attached():
            connection.send(request)
            name, shape, dtype = connection.recv()
            memory = shared_memory.SharedMemory(name)
            return memory, [read(np.ndarray(shape, dtype, buffer=memory.buf))]

        def detach(got):
            memory, array = got
            array.clear()
            memory.close()
            if request[1] != "shared_memory":
                connection.send(None)

        return attached, detach

    def close(self):
        for connection, child, _ in self.children.values():
            with contextlib.suppress(OSError):  # it may have ended by itself
                connection.send(None)
            child.join()


def main():
    print(json.dumps(making.survey()), flush=True)
    consumer = Consumer()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            key = request["framework"], request["bytes"]
            way = request["way"]
            consumer.around("prepare", way, key)
            answer = {"took": timed(request, consumer.calls(way, key))}
            if request["bytes"] >= making.LARGE:
                consumer.around("drop", way, key)
        except Exception as error:  # whatever a framework raises: this way is not to be had
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    consumer.close()


if __name__ == "__main__":
    main()
