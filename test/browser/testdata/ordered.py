"""Does what it is told to: it runs the lines of a file that grows."""

import pathlib
import sys
import time

import numpy as np

x = np.arange(10000.0).reshape(100, 100)
orders = pathlib.Path(sys.argv[1])
done = 0
while True:
    lines = orders.read_text().splitlines() if orders.exists() else []
    for line in lines[done:]:
        exec(line)
    done = len(lines)
    time.sleep(0.005)
