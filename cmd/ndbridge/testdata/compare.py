"""compare.py OURS NUMPYS: says how files that ndbridge wrote differ from those that NumPy wrote."""

import pathlib
import sys

import numpy as np

ours, numpys = map(pathlib.Path, sys.argv[1:])
for path in sorted(numpys.iterdir()):
    if path.suffix == ".raw":
        if (ours / path.name).read_bytes() != path.read_bytes():
            print(path.name, "has other bytes")
        continue
    got, want = np.load(ours / path.name), np.load(path)
    if got.dtype != want.dtype or got.shape != want.shape or got.tobytes() != want.tobytes():
        print(path.name, "got", got.dtype, got.shape, "want", want.dtype, want.shape)
    if want.flags.fnc and not got.flags.fnc:
        print(path.name, "has lost its column-major order")
print("compared", len(list(numpys.iterdir())))
