"""Makes an array of every kind, and with a folder as its argument saves each as NumPy does."""

import pathlib
import sys

import ml_dtypes
import numpy as np

base = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
kinds = {
    "bools": np.array([[True, False], [False, True]]),
    "int8s": np.arange(-3, 3, dtype=np.int8),
    "uint64s": np.array([0, 1, 2**64 - 1], np.uint64),
    "halves": np.array([0, 0.5, -1.25, np.inf, np.nan], np.float16),
    "doubles": np.linspace(0, 1, 20000),
    "complexes": np.array([1 + 2j, -3.5j], np.complex64),
    "complex128s": np.arange(4) * (1 - 1j),
    "big_endian": (np.arange(5) / 3).astype(">f8"),
    "dates": np.array(["2026-01-02", "NaT"], "datetime64[ns]"),
    "durations": np.arange(3).astype("timedelta64[25us]"),
    "records": np.array([(1, 2.5, b"ab"), (-1, 0.5, b"c")], [("a", "<i4"), ("b", ">f8"), ("c", "S3")]),
    "recarray": np.rec.array([(1, 2.5), (-1, 0.5)], [("a", "<i4"), ("b", ">f8")]),
    "nested": np.zeros(2, [("p", [("x", "<f4"), ("y", "<f4")], (2,)), ("n", "u1")]),
    "texts": np.array(["one", "drei"]),
    "bytestrings": np.array([b"one", b"three"]),
    "voids": np.array([b"abc", b"def"], "V3"),
    "scalar": np.array(3.5),
    "empty": np.zeros((0, 3), np.float32),
    "backwards": base[:, ::-1, ::-2],
    "broadcasted": np.broadcast_to(np.arange(3, dtype=np.int16), (4, 3)),
    "fortran": np.asfortranarray(base),
    "transposed": base.transpose(2, 0, 1),
    "stepped": np.arange(100, dtype=np.uint8)[3:90:7],
    "windows": np.lib.stride_tricks.as_strided(np.arange(6, dtype=np.int64), (4, 3), (8, 8)),
    "bfloats": np.arange(6).astype(ml_dtypes.bfloat16),
}
globals().update(kinds)

if len(sys.argv) > 1:
    folder = pathlib.Path(sys.argv[1])
    for name, array in kinds.items():
        np.save(folder / (name + ".npy"), array)
        (folder / (name + ".raw")).write_bytes(array.tobytes())
