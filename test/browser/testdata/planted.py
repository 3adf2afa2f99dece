"""Plants a NaN when told to: it takes the numbers of elements from a file that grows."""

import pathlib
import sys
import time

import numpy as np

values = np.ones((400, 400))
orders = pathlib.Path(sys.argv[1])
while True:
    if orders.exists():
        for line in orders.read_text().split():
            values.flat[int(line)] = np.nan
    time.sleep(0.005)
