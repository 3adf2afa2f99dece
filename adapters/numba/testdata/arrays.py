"""Numba's arrays of every kind, in `arrays`, and in `report` what Numba itself says about each."""

import hashlib
import json

COPIED = ("staged", "host-without-gpu")  # the test's host has none
EMPTY = ("empty", "")

arrays = {}
said = []


def see(name, x, dtype, way=COPIED, quirk="", tag="", plain=None):
    """A view of just what Numba says: the same geometry, and the elements that copy_to_host() copies."""
    arrays[name] = x
    plain = x.copy_to_host() if plain is None else plain
    said.append({
        "name": name, "dtype": dtype, "tag": tag, "shape": x.shape, "strides": x.strides,
        "route": way[0], "reason": way[1], "read_only": False, "quirk": quirk,
        "sha256": hashlib.sha256(plain.tobytes()).hexdigest(),
    })


def refuse(name, x, category, text, **more):
    """An error of that category, which says text."""
    arrays[name] = x
    said.append({"name": name, "error": category, "text": text, **more})


def on_gpu(dtype, shape=(7,), **more):
    return cuda.to_device((np.arange(np.prod(shape)) % 100).reshape(shape).astype(dtype), **more)


# Element types.
for dtype in (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128",
):
    see(dtype, on_gpu(dtype), dtype)
    see("large " + dtype, on_gpu(dtype, (70000,)), dtype)
bits = on_gpu("uint16")
see("bfloat16", bits.view(ml_dtypes.bfloat16), "bfloat16", quirk="numba.extension-dtypes", plain=bits.copy_to_host())
see("records", cuda.to_device(np.ones(3, record)), "opaque[8]", quirk="numba.records-without-fields", tag=str(record))
see("record", cuda.to_device(np.ones(3, record))[1], "opaque[8]", quirk="numba.records-without-fields", tag=str(record),
    plain=np.ones((), record))
see("dates", cuda.to_device(np.arange("2026-01", "2026-04", dtype="M8[M]")), "opaque[8]", tag="datetime64[M]")

# Geometry.
matrix = on_gpu("float32", (5, 6))
plain = matrix.copy_to_host()
see("matrix", matrix, "float32")
see("column-major", cuda.to_device(np.asfortranarray(np.arange(30.0).reshape(5, 6))), "float64")
see("rows", matrix[1:4], "float32")
see("row", matrix[2], "float32")
see("column", matrix[:, 2], "float32", plain=plain[:, 2])
see("every other", matrix[::2, 1::3], "float32", plain=plain[::2, 1::3])
see("reshaped", matrix.reshape(2, 15), "float32")
see("ravelled", matrix.ravel(), "float32")
see("4 axes", on_gpu("int16", (2, 3, 4, 5)), "int16")
see("no axes", cuda.to_device(np.array(1.5)), "float64")
see("one element", on_gpu("float64", (1, 1)), "float64")
see("no elements", cuda.device_array((0, 3), "float32"), "float32", EMPTY)
refuse("broadcast", wide, "layout not supported", "the array was broadcast", quirk="numba.broadcast-as-dense")

# Streams.
stream = cuda.stream()
see("bound to a stream", on_gpu("float32").bind(stream), "float32")
see("made on a stream", on_gpu("float32", stream=stream), "float32")

report = bytearray(json.dumps(said).encode())
