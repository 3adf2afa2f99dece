"""Reads the program's arrays by Arrow Flight and compares them with what the program makes: client.py URI PROGRAM."""
import runpy
import sys

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

client = flight.connect(sys.argv[1])
want = runpy.run_path(sys.argv[2])
want['table["weights"]'] = want["table"]["weights"]

listed = {info.descriptor.path[0].decode(): info for info in client.list_flights()}
print("listed:", *sorted(listed))


def as_numpy(column):
    if isinstance(column.type, pa.FixedShapeTensorType):
        return np.concatenate([chunk.to_numpy_ndarray() for chunk in column.chunks])
    if isinstance(column.type, pa.Bool8Type):
        return np.concatenate([chunk.to_numpy() for chunk in column.chunks])
    return column.to_numpy()


for name in ["frame", "mirrored", "samples", "halves", "flags", "step", 'table["weights"]']:
    info = client.get_flight_info(flight.FlightDescriptor.for_path(name))
    table = client.do_get(info.endpoints[0].ticket).read_all()
    got, expected = as_numpy(table.column(0)), np.atleast_1d(want[name])
    assert table.schema == info.schema == client.get_schema(flight.FlightDescriptor.for_command(name)).schema
    assert table.column_names == [name] and table.num_rows == info.total_records, table.schema
    assert info.total_bytes == expected.nbytes
    assert got.dtype == expected.dtype and np.array_equal(got, expected), name
    print(name, table.column(0).type, "in", table.column(0).num_chunks)

for what, call in {
    "no such": lambda: client.do_get(flight.Ticket("nothing")).read_all(),
    "dates": lambda: client.get_flight_info(flight.FlightDescriptor.for_path("dates")),
    "two": lambda: client.get_flight_info(flight.FlightDescriptor.for_path("a", "b")),
}.items():
    try:
        call()
    except (pa.ArrowException, KeyError) as e:
        print(what, type(e).__name__)
