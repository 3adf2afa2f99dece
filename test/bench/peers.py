"""The usual ways to hand a numpy array to another process, for comparison.

A consumer (this process) asks a producer (its child) for an array, and measures until it has one in
its own address space. The benchmark steers it by lines on stdin: "prepare BYTES" or a way's name;
the answer is a JSON line {"view": ns, "read": ns}, where "read" goes on until every element was read
once. The producer also serves the array over gRPC, on the Unix socket named by the first argument.
"""

import json
import multiprocessing
import sys
import time
from concurrent import futures
from multiprocessing import shared_memory

import grpc
import numpy as np

CHUNK = 1 << 20  # bytes in one message of the gRPC stream; its default limit is 4 MiB


class Producer:
    def __init__(self):
        self.array = np.zeros(1)
        self.shared = None

    def prepare(self, size):
        self.close()
        self.array = np.arange(size // 8, dtype="f8")
        self.shared = self.copied()

    def copied(self):
        memory = shared_memory.SharedMemory(create=True, size=self.array.nbytes)
        np.ndarray(self.array.shape, self.array.dtype, buffer=memory.buf)[:] = self.array
        return memory

    def chunks(self, request, context):
        data = memoryview(self.array).cast("B")
        for start in range(0, len(data), CHUNK):
            yield bytes(data[start : start + CHUNK])

    def close(self):
        if self.shared:
            self.shared.close()
            self.shared.unlink()
            self.shared = None


def produce(connection, address):
    producer = Producer()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    handler = grpc.unary_stream_rpc_method_handler(producer.chunks)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("bench.Arrays", {"Get": handler})])
    server.add_insecure_port("unix:" + address)
    server.start()
    for way, size in iter(connection.recv, None):
        if way == "prepare":
            producer.prepare(size)
            connection.send(None)
        elif way == "pickle":
            connection.send(producer.array)
        elif way == "shared_memory":
            connection.send((producer.shared.name, producer.array.shape, producer.array.dtype))
        elif way == "shared_memory_copy":
            memory = producer.copied()
            connection.send((memory.name, producer.array.shape, producer.array.dtype))
            connection.recv()
            memory.close()
            memory.unlink()
    producer.close()
    server.stop(None)


def consume(connection, way):
    start = time.perf_counter_ns()
    connection.send((way, 0))
    memory = None
    if way == "pickle":
        array = connection.recv()
    else:
        name, shape, dtype = connection.recv()
        memory = shared_memory.SharedMemory(name)
        array = np.ndarray(shape, dtype, buffer=memory.buf)
    viewed = time.perf_counter_ns()
    array.sum()
    read = time.perf_counter_ns()
    if memory:
        del array
        memory.close()
    if way == "shared_memory_copy":
        connection.send(None)
    return {"view": viewed - start, "read": read - start}


def main():
    context = multiprocessing.get_context("spawn")
    connection, theirs = context.Pipe()
    child = context.Process(target=produce, args=(theirs, sys.argv[1]), daemon=True)
    child.start()
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "prepare":
            connection.send(("prepare", int(arguments[0])))
            connection.recv()
            answer = {"view": 0, "read": 0}
        else:
            answer = consume(connection, command)
        print(json.dumps(answer), flush=True)
    connection.send(None)
    child.join()


if __name__ == "__main__":
    main()
