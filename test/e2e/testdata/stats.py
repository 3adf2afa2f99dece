"""Arrays of many dtypes, shapes and strides, and what NumPy says of them: JSON in the file that is the argument."""

import json
import math
import sys

import ml_dtypes
import numpy as np
import remote

rng = np.random.default_rng(int(sys.argv[2]))
arrays = {}
dtypes = [np.dtype(d) for d in "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split()] + [
    np.dtype(d) for d in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
]


def values(dtype, n):
    """n random elements, some of them special."""
    if dtype.kind in "?iub" and dtype.kind != "V":
        if dtype.kind == "b":
            return rng.random(n) < 0.4
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, n, dtype, endpoint=True)
        return np.where(rng.random(n) < 0.2, dtype.type(0), x)
    scale = 10.0 ** rng.integers(-4, 4)
    x = (rng.standard_normal(n) * scale + rng.integers(-2, 3) * scale).astype(np.float64)
    if dtype.kind == "c":
        x = x + 1j * rng.standard_normal(n)
    special = rng.random(n)
    if rng.random() < 0.7:
        x[special < 0.05] = 0
    if rng.random() < 0.5:
        x[special > 0.98] = np.nan
        x[(special > 0.95) & (special < 0.96)] = np.inf
        x[(special > 0.96) & (special < 0.97)] = -np.inf
    with np.errstate(all="ignore"):
        return x.astype(dtype)


def strided(dtype):
    """A random array, as slices, reversals, transpositions and broadcasts make it."""
    shape = tuple(int(d) for d in rng.integers(0 if rng.random() < 0.05 else 1, [4, 9, 40, 400][rng.integers(4)], rng.integers(0, 5)))
    while math.prod(shape) > 200_000:
        shape = shape[1:]
    step = [int(s) for s in rng.choice([1, 1, 2, 3, -1, -2], len(shape))]
    whole = values(dtype, math.prod(d * abs(s) for d, s in zip(shape, step))).reshape([d * abs(s) for d, s in zip(shape, step)])
    a = whole[tuple(slice(None, None, s) for s in step)]
    a = a.transpose(rng.permutation(a.ndim)) if a.ndim else a
    if rng.random() < 0.1:
        a = np.broadcast_to(a, (3,) + a.shape)
    return a


def said(a, low=None, high=None):
    """What NumPy says of an array."""
    with np.errstate(all="ignore"):
        x = np.abs(a.astype(np.complex128)) if a.dtype.kind == "c" else a.astype(np.float64)
    x = x.ravel()
    finite = x[np.isfinite(x)]
    wide = finite.astype(np.longdouble)
    mean = wide.mean() if len(wide) else np.nan
    figures = {
        "mean": mean,
        "std": np.sqrt(np.mean((wide - mean) ** 2)) if len(wide) else np.nan,
        "norm": np.sqrt(np.sum(wide**2)),
        "min": finite.min() if len(wide) else np.nan,
        "max": finite.max() if len(wide) else np.nan,
    }
    bins, edges = np.histogram(finite, 10, (low, high)) if low is not None else ([], [])
    return {
        "len": a.size,
        "nan": int(np.isnan(x).sum()),
        "pos_inf": int(np.isposinf(x).sum()),
        "neg_inf": int(np.isneginf(x).sum()),
        "zero": int((x == 0).sum()),
        "negative": int((finite < 0).sum()),
        "positive": int((finite > 0).sum()),
        "figures": {k: float(v).hex() for k, v in figures.items()},
        "low": low,
        "high": high,
        "counts": [int(n) for n in bins],
        "edges": [float(e).hex() for e in edges],
    }


cases = []


def add(a):
    name = f"a{len(cases)}"
    arrays[name] = a
    low, high = (-1.5, 2.25) if rng.random() < 0.5 else (0.0, 100.0)
    cases.append({"name": f'arrays["{name}"]', "dtype": str(a.dtype), "shape": a.shape, "strides": a.strides, **said(a, low, high)})


for _ in range(int(sys.argv[3])):
    add(strided(dtypes[rng.integers(len(dtypes))]))
tiny, huge = 5e-324, np.finfo(np.float64).max
for hard in [
    1e9 + 1e-3 * rng.standard_normal(50_000),
    np.full(10_000, 0.1),
    np.full(10_000, huge),
    np.array([huge, -huge] * 3000),
    np.array([tiny, -tiny, 0.0, -0.0] * 3000),
    1e-300 * rng.standard_normal(10_000),
    1e300 * rng.standard_normal(10_000),
    np.array([1e300, 1e-300, 1.0, np.nan] * 2000),
    np.concatenate([1e12 + rng.standard_normal(3000), rng.standard_normal(9000)]),
    np.full(5000, np.nan),
    np.full(5000, -np.inf),
    np.linspace(0, 1, 100_001),
    np.linspace(0, 100, 100_001, dtype=np.float32),
    np.float32(16_777_216) + np.arange(100_000, dtype=np.float32),
    np.zeros((0, 3)),
    np.array(7.5),
]:
    add(hard)
with open(sys.argv[1], "w") as f:
    json.dump(cases, f)
remote.serve()
