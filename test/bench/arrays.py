"""The program whose arrays the benchmark looks at: one for each size in bytes that it is given."""

import sys

import numpy as np

for size in sys.argv[1:]:
    globals()["a" + size] = np.arange(int(size) // 8, dtype="f8")
