"""Serves arrays as bytes over gRPC, on the Unix socket given: the request is their size, the answer messages.

The request "keep SIZE" makes that array, and drops the large ones of other sizes; its answer is empty.
"""

import sys
from concurrent import futures

import grpc
import making

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


server = grpc.server(futures.ThreadPoolExecutor(2))
handler = grpc.unary_stream_rpc_method_handler(chunks)
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("bench.Arrays", {"Get": handler})])
server.add_insecure_port("unix:" + sys.argv[1])
server.start()
sys.stdin.read()
server.stop(None)
