import os
import sys

import numpy as np

mapped = np.memmap(sys.argv[1], np.float32, "w+", shape=(10_000, 1000))


def truncate():
    os.truncate(sys.argv[1], 4096)
