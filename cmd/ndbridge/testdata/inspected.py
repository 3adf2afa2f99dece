import time

import numpy as np

numbers = np.arange(12, dtype=np.int64).reshape(3, 4)
cube = np.arange(8).reshape(2, 2, 2)
line = np.array([0.5, np.nan, np.inf])
thirds, tenths = np.array([[1 / 3, 5e-324]]), np.array([[0.1, 1 / 3 - 0.1j]], np.complex64)
tenth = np.full(2, 0.1, np.float32)
field = np.zeros((4096, 8), np.float32)
vacant = np.zeros((3, 0, 5))
parts = {"tail": np.zeros(2)}
photo = np.full((8, 6, 3), 200, np.uint8)
while True:
    field += 1
    time.sleep(0.01)
