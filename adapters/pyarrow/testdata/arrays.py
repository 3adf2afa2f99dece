"""PyArrow's arrays of every kind, in `arrays`, and in `report` what PyArrow itself says about each.

It runs under every PyArrow from 15 on, after setup.py, with any memory pool.
"""

import hashlib
import json

SMALL = ("staged", "below-threshold")
EMPTY = ("empty", "")
HEAP = ("shared-heap", "")
OWN = HEAP if pa.default_memory_pool().backend_name == "system" else ("staged", "outside-heap")
STREAM = "pyarrow.stream-none-only"

arrays = {}
said = []


def see(name, x, plain, way=SMALL, quirk=STREAM, read_only=True):
    """A view of just what PyArrow says when it makes a NumPy array over the same memory."""
    arrays[name] = x
    said.append({
        "name": name, "dtype": plain.dtype.name, "shape": plain.shape, "strides": plain.strides,
        "route": way[0], "reason": way[1], "read_only": read_only, "quirk": quirk,
        "sha256": hashlib.sha256(plain.tobytes()).hexdigest(),
    })


def refuse(name, x, category, text, **more):
    """An error of that category, which says text."""
    arrays[name] = x
    said.append({"name": name, "error": category, "text": text, **more})


for dtype in (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
):
    values = (np.arange(70000) % 100).astype(dtype)
    see("large " + dtype, pa.array(values.tolist() if dtype != "float16" else list(values), pa.from_numpy_dtype(dtype)), values, OWN)
    see("NumPy's " + dtype, pa.array(values), values, HEAP)
    see(dtype, pa.array(values[:5].copy()), values[:5])
numbers = np.arange(70000.0)
see("slice", pa.array(numbers)[1000:60000], numbers[1000:60000], HEAP)
see("no elements", pa.array([], pa.int32()), np.zeros(0, "i4"), EMPTY)
see("one chunk", pa.chunked_array([numbers]), numbers, HEAP, "pyarrow.one-chunk")
table = pa.table({"x": numbers, "y": numbers + 1})
see("column", table["y"], numbers + 1, HEAP, "pyarrow.one-chunk")
see("times as numbers", pa.array([1, 2], pa.timestamp("s")).view("int64"), np.array([1, 2]))
see("buffer", pa.array(numbers).buffers()[1], numbers.view("i1"), HEAP, "pyarrow.resized-buffer", read_only=False)
see("bytes", pa.py_buffer(b"abcd"), np.frombuffer(b"abcd", "i1"), quirk="pyarrow.resized-buffer")
see("grown buffer", resized(8, 16), np.full(16, 7, "i1"), quirk="pyarrow.resized-buffer", read_only=False)
see("shrunk buffer", resized(64, 10), np.full(10, 7, "i1"), quirk="pyarrow.resized-buffer", read_only=False)
grid = np.arange(60000.0).reshape(200, 300)
see("tensor", pa.Tensor.from_numpy(grid), grid, HEAP, "", read_only=False)
see("tensor, transposed", pa.Tensor.from_numpy(grid.T), grid.T, HEAP, "", read_only=False)

refuse("nulls", pa.array([1, None, 3]), "unsupported operation", "1 elements are missing", quirk="pyarrow.nulls")
refuse("truth values", pa.array([True, False]), "wrong dtype", "share a byte", quirk="pyarrow.bit-packed-bool")
refuse("text", pa.array(["a"]), "wrong dtype", "type string", quirk="pyarrow.other-types")
refuse("times", pa.array([1], pa.timestamp("s")), "wrong dtype", "view('int64')", quirk="pyarrow.other-types")
refuse("lists", pa.array([[1], [2, 3]]), "wrong dtype", "list<", quirk="pyarrow.other-types")
refuse("decimals", pa.array([1], pa.decimal128(5)), "wrong dtype", "decimal128", quirk="pyarrow.other-types")
refuse("chunks", pa.chunked_array([[1], [2]]), "layout not supported", "2 chunks", quirk="pyarrow.chunks")
refuse("table", table, "unsupported operation", "name one column", quirk="pyarrow.no-arrays")
refuse("batch", table.to_batches()[0], "unsupported operation", "name one column", quirk="pyarrow.no-arrays")
refuse("scalar", pa.scalar(1), "unsupported operation", "as_py", quirk="pyarrow.no-arrays")

report = np.frombuffer(json.dumps(said).encode(), "u1")
