"""A program that works in a tight loop, and says how far it has come."""

import sys
import numpy as np

steps = np.zeros(1 << 14)
print("runs", flush=True)


def main(size):
    x = np.zeros(size // 8)
    small = np.ones(500)
    while True:
        small *= 1.0
        x[5] = steps[0] = steps[0] + 1


main(int(sys.argv[1]))
