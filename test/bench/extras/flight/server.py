"""Serves arrays over Arrow Flight, on the Unix socket given: the ticket is their size in bytes."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

BATCH = 4 << 20  # bytes; larger batches are slower
SCHEMA = pa.schema([("x", pa.float32())])
PERIOD = 4093


class Server(flight.FlightServerBase):
    def __init__(self, location):
        super().__init__(location)
        self.batches = {}

    def do_get(self, context, ticket):
        size = int(ticket.ticket)
        if size not in self.batches:
            data = pa.array(np.resize(np.arange(PERIOD, dtype="f4"), size // 4))
            self.batches[size] = pa.table([data], SCHEMA).to_batches(BATCH // 4)
        return flight.RecordBatchStream(pa.RecordBatchReader.from_batches(SCHEMA, self.batches[size]))


server = Server("grpc+unix://" + sys.argv[1])
print(pa.__version__, flush=True)
sys.stdin.read()
server.shutdown()
