"""Serves arrays as bytes over gRPC, on the Unix socket given: the request is their size, the answer messages."""

import sys
from concurrent import futures

import grpc
import making

CHUNK = 1 << 20  # bytes in one message; the default limit is 4 MiB
arrays = {}


def chunks(request, context):
    size = int(request)
    if size not in arrays:
        arrays[size] = memoryview(making.make("numpy", size)).cast("B")
    data = arrays[size]
    for start in range(0, len(data), CHUNK):
        yield bytes(data[start : start + CHUNK])


server = grpc.server(futures.ThreadPoolExecutor(2))
handler = grpc.unary_stream_rpc_method_handler(chunks)
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("bench.Arrays", {"Get": handler})])
server.add_insecure_port("unix:" + sys.argv[1])
server.start()
sys.stdin.read()
server.stop(None)
