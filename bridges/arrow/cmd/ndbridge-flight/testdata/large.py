import os

import numpy as np

large = np.zeros((1000, 1 << 16), np.uint8)
pid = np.array(os.getpid())
