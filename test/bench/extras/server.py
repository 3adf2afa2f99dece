"""Serves arrays over Arrow Flight, on the Unix socket given: the ticket is "get SIZE", or "keep SIZE" before it."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

BATCH = 4 << 20  # bytes; larger batches are slower
SCHEMA = pa.schema([("x", pa.float32())])
PERIOD = 4093
LARGE = 256 << 20  # bytes


class Server(flight.FlightServerBase):
    def __init__(self, location):
        super().__init__(location)
        self.batches = {}

    def keep(self, size):
        """Makes an array, and drops large ones of other sizes."""
        for other in list(self.batches):
            if other != size and other >= LARGE:
                del self.batches[other]
        if size not in self.batches:
            data = pa.array(np.resize(np.arange(PERIOD, dtype="f4"), size // 4))
            self.batches[size] = pa.table([data], SCHEMA).to_batches(BATCH // 4)

    def do_get(self, context, ticket):
        what, size = ticket.ticket.split()
        if what == b"keep":
            self.keep(int(size))
            return flight.RecordBatchStream(pa.RecordBatchReader.from_batches(SCHEMA, []))
        return flight.RecordBatchStream(pa.RecordBatchReader.from_batches(SCHEMA, self.batches[int(size)]))


server = Server("grpc+unix://" + sys.argv[1])
print(pa.__version__, flush=True)
sys.stdin.read()
server.shutdown()
