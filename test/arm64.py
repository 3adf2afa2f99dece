import mmap
import os

import numpy as np

ones = np.ones(300_000)
child = os.fork()
if child == 0:
    ones[:] = 2
    os._exit(0)
os.waitpid(child, 0)
before = ones
after = np.full(200_000, 3.0)
pages = np.full(100_000, mmap.PAGESIZE)
