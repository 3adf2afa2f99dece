"""Arrays of every kind, in `arrays`, and in `report` what NumPy itself says about each.

It runs under every NumPy from 1.20 on. What a version does not have is left out, and said in `report`.
"""

import array
import ctypes
import hashlib
import json
import mmap
import os
import tempfile
from multiprocessing import shared_memory

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

NUMPY = tuple(int(n) for n in np.__version__.split(".")[:2])
HEAP = ("shared-heap", "")
FILE = ("mapped-file", "")
EMPTY = ("empty", "")
SMALL = ("staged", "below-threshold")
OUTSIDE = ("staged", "outside-heap")
PRIVATE = ("staged", "private-mapping")
SCALAR = ("staged", "converted") if NUMPY < (2, 5) else SMALL  # from then on not a copy any more

# This starts a process: a fork, before which no array should be made that is expected in the heap.
shared = shared_memory.SharedMemory(create=True, size=1 << 16)

arrays = {}
said = []


def see(name, a, dtype, tag="", way=SMALL, read_only=None):
    """A view of just what NumPy says, by that way."""
    arrays[name] = a
    plain = np.ndarray.view(a, np.ndarray) if isinstance(a, np.ndarray) else np.asarray(a)
    said.append({
        "name": name, "dtype": dtype, "tag": tag, "shape": plain.shape, "strides": plain.strides,
        "route": way[0], "reason": way[1],
        "read_only": not plain.flags.writeable if read_only is None else read_only,
        "sha256": hashlib.sha256(plain.tobytes()).hexdigest(),
    })


def refuse(name, a, category, text):
    """An error of that category, which says text."""
    arrays[name] = a
    said.append({"name": name, "error": category, "text": text})


def filled(dtype, count):
    """Elements that differ from each other."""
    dtype = np.dtype(dtype)
    return np.frombuffer(bytes(i * 7 % 127 for i in range(count * dtype.itemsize)), dtype).copy()


# Element types.
see("bool", np.arange(9) % 2 == 0, "bool")
for letter, name in [("i", "int"), ("u", "uint"), ("f", "float"), ("c", "complex")]:
    for size in (1, 2, 4, 8) if letter in "iu" else (2, 4, 8) if letter == "f" else (8, 16):
        see("%s%d" % (name, 8 * size), np.arange(1, 8).astype("%s%d" % (letter, size)), "%s%d" % (name, 8 * size))
        if size > 1:
            foreign = ">%s%d" % (letter, size)
            see(foreign, np.arange(1, 8).astype(foreign), "opaque[%d]" % size, foreign)
see("longlong", np.arange(5, dtype="longlong"), "int64")
see("intc", np.arange(5, dtype="intc"), "int32")
for unit in "Y M W D h m s ms us ns ps fs as 25s".split():
    for kind, name in [("M8", "datetime64"), ("m8", "timedelta64")]:
        see("%s[%s]" % (name, unit), filled("%s[%s]" % (kind, unit), 5), "opaque[8]", "%s[%s]" % (name, unit))
see("datetime64", filled("M8", 5), "opaque[8]", "datetime64")
see(">datetime64", filled("M8[s]", 5).astype(">M8[s]"), "opaque[8]", ">M8[s]")
see("bytes", np.array([b"abc", b"de"]), "opaque[3]", "|S3")
see("text", np.array(["abc", "größe"]), "opaque[20]", "<U5")
see(">text", np.array(["abc", "größe"]).astype(">U5"), "opaque[20]", ">U5")
see("void", filled("V7", 5), "opaque[7]", "|V7")
see("structured", filled([("x", "<f4"), ("n", "<i8")], 5), "opaque[12]", "[('x', '<f4'), ('n', '<i8')]")
nested = np.dtype([("p", [("x", "<i2"), ("m", "<f4", (2, 2))]), ("s", "S3")])
see("nested", filled(nested, 5), "opaque[21]", str(nested))
aligned = np.dtype([("a", "u1"), ("b", "<f8")], align=True)
see("aligned", filled(aligned, 5), "opaque[16]", str(aligned))
refuse("object", np.array([None, 1]), "wrong dtype", "pointers into the process")
refuse("object_empty", np.array([], dtype=object), "wrong dtype", "pointers into the process")
refuse("object_field", np.zeros(3, [("x", "f4"), ("o", "O")]), "wrong dtype", "pointers into the process")
refuse("longdouble", np.zeros(3, "longdouble"), "wrong dtype", "long doubles")
refuse("clongdouble", np.zeros(3, "clongdouble"), "wrong dtype", "long doubles")
refuse("no_fields", np.zeros(3, []), "wrong dtype", "0 bytes")
if hasattr(getattr(np, "dtypes", None), "StringDType"):
    refuse("string", np.array(["a", "bc"], np.dtypes.StringDType()), "wrong dtype", "pointers into the process")
if ml_dtypes:
    for name in ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "float8_e3m4"]:
        see(name, np.arange(1, 8).astype(getattr(ml_dtypes, name)), name)
    for name in ["int4", "uint4", "float4_e2m1fn", "float6_e2m3fn", "int2"]:  # NumPy has a byte for each
        see(name, np.arange(1, 2).repeat(5).astype(getattr(ml_dtypes, name)), "opaque[1]", name)
    see("bfloat16_large", np.arange(1 << 16).astype(ml_dtypes.bfloat16)[::-3], "bfloat16", way=HEAP)
    see("bfloat16_scalar", ml_dtypes.bfloat16(1.5), "bfloat16", way=SCALAR, read_only=True)

# Layouts, of memory in the heap.
cube = filled("f8", 20 * 30 * 40).reshape(20, 30, 40)
see("c_order", cube, "float64", way=HEAP)
see("fortran_order", np.asfortranarray(cube), "float64", way=HEAP)
see("reversed", cube[::-1, ::-1, ::-1], "float64", way=HEAP)
see("reversed_inside", cube[:, ::-1], "float64", way=HEAP)
see("transposed", cube.transpose(2, 0, 1)[:, ::-2, 3:], "float64", way=HEAP)
see("stepped", cube[1::3, ::-4, 2::5], "float64", way=HEAP)
see("broadcast", np.broadcast_to(cube, (3, 20, 30, 40)), "float64", way=HEAP, read_only=True)
see("broadcast_small", np.broadcast_to(np.arange(3.0), (1 << 14, 3)), "float64", read_only=True)
see("one_value", as_strided(cube[:1, 0, 0], (1 << 16,), (0,)), "float64", way=HEAP, read_only=True)
see("windows", sliding_window_view(cube[0], (5, 7)), "float64", way=HEAP, read_only=True)
see("overlapping", as_strided(cube, (100, 9), (8, 8)), "float64", way=HEAP, read_only=True)
see("diagonal", cube[0].diagonal(2), "float64", way=HEAP, read_only=True)
see("far_in", filled("f4", 1 << 20)[-3:], "float32", way=HEAP)
see("extent_one", cube[3:4, 5:6], "float64", way=HEAP)
see("new_axes", cube[None, :, None, ..., None], "float64", way=HEAP)
see("rank_32", cube.reshape((1,) * 29 + cube.shape), "float64", way=HEAP)
if NUMPY >= (2, 0):
    see("rank_64", cube.reshape((1,) * 61 + cube.shape), "float64", way=HEAP)
records = filled([("a", "u1"), ("x", "<f8"), ("k", "<i2", (2, 3))], 1 << 12)
see("field", records["x"], "float64", way=HEAP)
see("field_reversed", records["x"][::-3], "float64", way=HEAP)
see("field_of_arrays", records["k"], "int16", way=HEAP)
see("fields", records[["a", "k"]], "opaque[21]", str(records[["a", "k"]].dtype), way=HEAP)
see("real_part", filled("c8", 1 << 14).real, "float32", way=HEAP)
see("unaligned", np.zeros((1 << 16) + 9, "u1")[1:-8].view("f8"), "float64", way=HEAP)
see("unaligned_field", filled([("a", "u1"), ("x", "<f8")], 1 << 13)[5:6]["x"], "float64", way=HEAP)
see("zero_d", np.array(2.5), "float64")
see("zero_d_inside", cube[3, 4, ..., 5], "float64", way=HEAP)
see("empty", np.empty(0), "float64", way=EMPTY)
see("empty_inside", np.empty((3, 0, 2), ">i4"), "opaque[4]", ">i4", way=EMPTY)
see("empty_slice", cube[5:5, ::-1], "float64", way=EMPTY)
see("empty_odd_strides", as_strided(cube, (0, 4), (12345, -7)), "float64", way=EMPTY)
see("empty_records", records[:0], "opaque[21]", str(records.dtype), way=EMPTY)

# Scalars.
see("scalar_bool", np.bool_(True), "bool", way=SCALAR if NUMPY < (2, 5) else PRIVATE, read_only=True)  # one of two
for scalar in [np.int8(-3), np.uint64(1 << 63), np.float16(1.5), np.float64(2.5), np.complex64(1 - 2j)]:
    see("scalar_" + scalar.dtype.name, scalar, scalar.dtype.name, way=SCALAR, read_only=True)
see("scalar_datetime64", np.datetime64("2026-11-21"), "opaque[8]", "datetime64[D]", way=SCALAR, read_only=True)
see("scalar_bytes", np.bytes_(b"abc"), "opaque[3]", "|S3", way=SCALAR, read_only=True)
see("scalar_text", np.str_("abc"), "opaque[12]", "<U3", way=SCALAR, read_only=True)
refuse("scalar_longdouble", np.longdouble(1), "wrong dtype", "long doubles")

# Flags, masks and subclasses.
frozen = cube.copy()
frozen.setflags(write=False)
see("read_only", frozen, "float64", way=HEAP)
see("read_only_foreign", np.frombuffer(bytes(16), ">i4"), "opaque[4]", ">i4")
see("unmasked", np.ma.array(cube), "float64", way=HEAP)
see("unmasked_nomask", np.ma.array([1.0, 2.0], mask=np.ma.nomask), "float64")
see("unmasked_records", np.ma.array(records), "opaque[21]", str(records.dtype), way=HEAP)
refuse("masked", np.ma.array([1.0, 2.0], mask=[False, True]), "unsupported operation", "masked")
refuse("masked_records", np.ma.array(records[:2], mask=[(0, 0, [[0, 0, 0], [0, 1, 0]]), (0, 0, [[0] * 3] * 2)]),
       "unsupported operation", "masked")
see("matrix", np.matrix(cube[0]), "float64")
see("recarray", records.view(np.recarray), "opaque[21]", str(records.view(np.recarray).dtype), way=HEAP)


class Liar(np.ndarray):
    """An array that describes another one."""

    shape = property(lambda self: (7,))
    strides = property(lambda self: (1,))
    dtype = property(lambda self: np.dtype("O"))
    flags = property(lambda self: None)
    data = property(lambda self: memoryview(b"lie"))
    mask = property(lambda self: True)
    __class__ = property(lambda self: int)
    __array_interface__ = {"shape": (1,), "typestr": "|u1", "data": (1, False), "version": 3}

    def __dlpack__(self, **kw):
        raise RuntimeError("no")

    def __len__(self):
        return -1


class Wild:
    """No array, though it says so."""

    __class__ = property(lambda self: np.ndarray)

    def __getattr__(self, name):
        raise RuntimeError("wild")


see("liar", cube.view(Liar), "float64", way=HEAP)
see("liar_foreign", cube.astype(">f8").view(Liar), "opaque[8]", ">f8", way=HEAP)
see("liar_masked", np.ma.array(cube).view(type("LiarMasked", (np.ma.MaskedArray,), {"mask": property(lambda self: 1 / 0)})),
    "float64", way=HEAP)
refuse("wild", Wild(), "python error", "RuntimeError: wild")

# Memory that NumPy did not allocate.
folder = tempfile.TemporaryDirectory()


def file(name, size=1 << 17):
    path = os.path.join(folder.name, name)
    with open(path, "wb") as out:
        out.write(bytes(i % 251 for i in range(size)))
    return path


see("memmap_r", np.memmap(file("r"), "i4", "r"), "int32", way=FILE)
see("memmap_r+", np.memmap(file("r+"), "i4", "r+"), "int32", way=FILE)
see("memmap_w+", np.memmap(file("w+"), "i4", "w+", shape=(5, 6)), "int32", way=FILE)
see("memmap_c", np.memmap(file("c"), "i4", "c"), "int32", way=PRIVATE)
see("memmap_offset", np.memmap(file("offset"), "i4", "r", offset=4099, shape=(3, 100)), "int32", way=FILE)
see("memmap_slice", np.memmap(file("slice"), "i4", "r+")[9000:100:-7], "int32", way=FILE)
gone = np.memmap(file("gone"), "i4", "r+")
os.unlink(gone.filename)
see("memmap_deleted", gone, "int32", way=FILE)
for mode in ["r", "r+"]:
    short = np.memmap(file("short_" + mode), "i4", mode)
    os.truncate(short.filename, 100)
    refuse("memmap_truncated_" + mode, short, "invalid pointer", "truncated")
    see("memmap_part_" + mode, short[:25], "int32", way=FILE)
short = np.memmap(file("short_c"), "i4", "c")
os.truncate(short.filename, 0)
refuse("memmap_truncated_c", short, "invalid pointer", "cannot be read")
see("shared_memory", np.frombuffer(shared.buf, "f4"), "float32", way=FILE)
see("over_bytes", np.frombuffer(bytes(range(200)), "i2"), "int16")
see("over_large_bytes", np.frombuffer(bytes(1 << 17), "i2"), "int16", way=OUTSIDE)
see("over_bytearray", np.frombuffer(bytearray(range(200)), "i2"), "int16")
see("over_array", np.frombuffer(array.array("d", range(9))), "float64")
see("over_ctypes", np.ctypeslib.as_array((ctypes.c_int16 * 3 * 2)()), "int16")
file_mmap = open(file("mmap"), "r+b")
see("over_mmap", np.frombuffer(mmap.mmap(file_mmap.fileno(), 0), "u2"), "uint16", way=FILE)

report = np.frombuffer(json.dumps(said).encode(), "u1")
# The segment lives on in what is mapped; nothing of it must stay behind.
shared.unlink()
