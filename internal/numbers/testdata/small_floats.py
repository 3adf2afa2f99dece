"""Writes small_floats.txt: what ml_dtypes says that each pattern of the small floats means.

    python small_floats.py > small_floats.txt
"""

import ml_dtypes
import numpy as np

NAMES = [
    "float8_e3m4", "float8_e4m3", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e4m3b11fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
    "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn",
]  # fmt: skip

for name in NAMES:
    dtype = np.dtype(getattr(ml_dtypes, name))
    count = 1 << int(name[len("float")])
    values = np.arange(count, dtype=np.uint8).view(dtype).astype(np.float64)
    print(name, *(value.hex() for value in values.tolist()))
