"""An ordinary program with an array of each size, and names of every form."""

import sys

import numpy as np

frame = np.arange(64 * 96 * 3, dtype=np.uint8).reshape(64, 96, 3)
big = np.arange(1 << 16, dtype=np.float64)
small = np.array([[1, 2, 3], [4, 5, 6]], np.int16)
frozen = np.arange(5.0)
frozen.flags.writeable = False
batch = {"x": small, "it's": frozen, 'a "b"': [frame, small.T]}
objects = np.array([None, 1], dtype=object)
arguments = np.array(sys.argv[1:])

print("said on stdout")
print("said on stderr", file=sys.stderr)
