"""One array of every kind that numpy has, and what numpy itself says about each.

Globals hold the arrays; the file named by the first argument gets a JSON list of what the host must
see of them.
"""

import hashlib
import json
import mmap
import sys
import tempfile
from multiprocessing import shared_memory

import ml_dtypes
import numpy as np

import remote

N = 1 << 15  # elements: of two bytes and more, an array is in the shared heap
cases = []

CARRIED = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()


def overlaps(array):
    """Do two indices name the same byte?"""
    if array.size == 0:
        return False
    spans = sorted((abs(step), extent) for step, extent in zip(array.strides, array.shape) if extent > 1)
    reach = array.itemsize
    for step, extent in spans:
        if step < reach:
            return True
        reach = step * (extent - 1) + reach
    return False


def expect(name, array, routes=("shared-heap",), framework="numpy", writable=None):
    """A view of exactly what numpy says, by one of those routes."""
    globals()[name] = array
    array = np.asanyarray(array)
    plain = array.dtype.name in CARRIED and array.dtype.isnative or array.dtype.type.__module__ == "ml_dtypes"
    if array.size == 0:
        routes = ("empty",)
    read_only = not array.flags.writeable or overlaps(array)
    cases.append({
        "name": name,
        "shape": array.shape,
        "strides": array.strides,
        "dtype": array.dtype.name if plain else "opaque[%d]" % array.dtype.itemsize,
        "tag": "" if plain else str(array.dtype),
        "read_only": read_only if writable is None else not writable,
        "routes": routes,
        "sha256": hashlib.sha256(array.tobytes()).hexdigest(),
    })


def refuse(name, array, category):
    """An error of that category."""
    globals()[name] = array
    cases.append({"name": name, "error": category})


def counted(dtype, count=8 * N):
    return (np.arange(count) % 101).astype(dtype)


# Every element type.
for carried in CARRIED:
    expect("type_" + carried, counted(carried))
for odd in ">i2 >u4 >i8 >f2 >f4 >f8 >c8 >c16 M8[ns] M8[D] M8[25s] m8[ms] S5 U7 V9".split():
    data = np.frombuffer(bytes(counted("u1", 2 * N * np.dtype(odd).itemsize)), odd).copy()
    expect("type_" + "".join(c if c.isalnum() else "_" for c in odd), data)
for name in "bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3b11fnuz".split():
    if hasattr(ml_dtypes, name):
        expect("type_" + name, counted("f4").astype(getattr(ml_dtypes, name)))
refuse("type_longdouble", counted("longdouble"), "dtype")
refuse("type_clongdouble", counted("clongdouble"), "dtype")
refuse("type_object", np.array([None, 1, "x"] * N, dtype=object), "dtype")
if hasattr(np.dtypes if hasattr(np, "dtypes") else np, "StringDType"):
    refuse("type_string", np.array(["a", "bc"] * N, dtype=np.dtypes.StringDType()), "dtype")

# Structures.
point = np.zeros(N, [("x", "<f4"), ("y", "<f8"), ("tag", "S3")])
point["x"], point["y"] = np.arange(N), -np.arange(N)
expect("record", point)
expect("record_field", point["y"])
expect("record_array", point.view(np.recarray))
expect("record_aligned", np.zeros(N, np.dtype({"names": ["a", "b"], "formats": ["u1", "<i4"]}, align=True)))
expect("record_nested", np.zeros(N, [("p", [("x", "<i2"), ("m", "<f4", (2, 2))])]))
refuse("record_object", np.zeros(N, [("x", "<f4"), ("o", "O")]), "dtype")

# Layouts.
cube = counted("f8", 24 * 30 * 40).reshape(24, 30, 40)
expect("cube", cube)
expect("transposed", cube.T)
expect("permuted", cube.transpose(1, 2, 0))
expect("fortran", np.asfortranarray(cube))
expect("reversed_all", cube[::-1, ::-1, ::-1])
expect("reversed_middle", cube[:, ::-1])
expect("stepped", cube[::2, ::3, 1::7])
expect("stepped_backwards", cube[::-2, 3:1:-1])
expect("cropped", cube[3:9, 10:20, 5:35])
expect("column", cube[:, 4, 5])
expect("axis_added", cube[:, None, :, :, None])
expect("diagonal", cube[:, :24, 0].diagonal())
expect("imaginary", counted("c16").imag)
expect("broadcast", np.broadcast_to(counted("f4", N).reshape(N, 1), (N, 8)))
expect("broadcast_scalar", np.broadcast_to(cube[0, 0, 0:1], (3, 5)))
expect("windows", np.lib.stride_tricks.as_strided(counted("f8"), (N, 5), (8, 8)))
expect("unaligned", np.zeros(8 * N + 1, "u1")[1:].view("f8"))
expect("many_axes", cube.reshape((1,) * 29 + cube.shape))
expect("nothing", np.empty(0))
expect("nothing_inside", np.empty((3, 0, 2), "i4"))
expect("nothing_left", cube[5:5])
expect("zero_d", np.array(2.5), ("staged",))
expect("scalar", np.float32(1.5), ("staged",), writable=False)
expect("small", np.arange(10), ("staged",))
expect("small_transposed", np.arange(10).reshape(2, 5).T, ("staged",))
expect("special_values", np.tile([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324], N))

# Flags and subclasses.
frozen = counted("i4")
frozen.setflags(write=False)
expect("read_only", frozen)
expect("matrix", np.matrix(cube[0]).repeat(20, 0).view(np.matrix))


class Named(np.ndarray):
    pass


expect("subclass", cube.view(Named))
expect("masked_nowhere", np.ma.array(counted("f8"), mask=False))
refuse("masked_somewhere", np.ma.array(counted("f8"), mask=counted("i4") == 3), "unsupported")

# Memory that numpy did not allocate.
file = tempfile.NamedTemporaryFile()
file.write(bytes(counted("u1", 1 << 18)))
file.flush()
expect("map_shared", np.memmap(file.name, "i4", "r+"), ("mapped-file",))
expect("map_offset", np.memmap(file.name, "i4", "r+", offset=1028, shape=(3, 100)), ("mapped-file",))
expect("map_read_only", np.memmap(file.name, "i4", "r"), ("mapped-file",))
expect("map_copy_on_write", np.memmap(file.name, "i4", "c"), ("staged",))
shared = shared_memory.SharedMemory(create=True, size=1 << 16)
expect("map_shared_memory", np.frombuffer(shared.buf, "i4"), ("mapped-file",))
unnamed = mmap.mmap(-1, 1 << 16)
expect("map_anonymous", np.frombuffer(unnamed, "i4"), ("mapped-file", "staged"))
expect("over_bytes", np.frombuffer(bytes(1 << 17), "f4"), ("staged",))
expect("over_bytearray", np.frombuffer(bytearray(1 << 17), "f4"), ("staged",))

with open(sys.argv[1], "w") as out:
    json.dump(cases, out)
remote.serve()
del map_shared_memory
shared.close()
shared.unlink()
