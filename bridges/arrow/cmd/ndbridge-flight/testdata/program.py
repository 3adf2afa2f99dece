import sys

import numpy as np

frame = np.zeros((480, 640), np.uint8)
globals()[sys.argv[1]] = np.zeros(3)
