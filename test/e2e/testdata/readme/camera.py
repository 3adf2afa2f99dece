import time
import numpy as np

frame = np.zeros((480, 640, 3), np.uint8)
while True:
    frame[:] = np.random.randint(0, 256, frame.shape)  # the host sees this without being told
    time.sleep(1 / 30)
