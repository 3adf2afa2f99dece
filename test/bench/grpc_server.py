"""Serves arrays as bytes over gRPC, on the Unix socket given: the request is their size, the answer messages.

The request "keep SIZE" makes that array, and drops the large ones of other sizes; its answer is empty. Last is a call:
its requests are an array of float32 in pieces, and the answer is the last element.
"""

import sys
from concurrent import futures

import grpc
import making
import numpy as np

CHUNK = 1 << 20  # bytes in one message; the default limit is 4 MiB
arrays = {}


def keep(size):
    for other in list(arrays):
        if other != size and other >= making.LARGE:
            del arrays[other]
    if size not in arrays:
        arrays[size] = memoryview(making.make("numpy", size)).cast("B")


def chunks(request, context):
    if request.startswith(b"keep "):
        keep(int(request[5:]))
        return
    data = arrays[int(request)]
    for start in range(0, len(data), CHUNK):
        yield bytes(data[start : start + CHUNK])


def last(pieces, context):
    return np.frombuffer(b"".join(pieces), "f4")[-1].tobytes()


server = grpc.server(futures.ThreadPoolExecutor(2))
handlers = {"Get": grpc.unary_stream_rpc_method_handler(chunks), "Last": grpc.stream_unary_rpc_method_handler(last)}
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("bench.Arrays", handlers)])
server.add_insecure_port("unix:" + sys.argv[1])
server.start()
sys.stdin.read()
server.stop(None)
