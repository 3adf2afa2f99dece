"""The program of the image: what it does to its frame, a host sees."""

import numpy as np

frame = np.zeros((480, 640), np.float32)
frame[240] = 1
