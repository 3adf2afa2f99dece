import time
import ndbridge
import numpy as np

BUFFERS = 8
buffers = np.zeros((BUFFERS, 480, 640, 3), np.uint8)

for step in range(1, 501):
    frame = buffers[step % BUFFERS]  # it was published BUFFERS versions ago
    frame[:] = step % 256
    ndbridge.publish("frame", frame)
    time.sleep(0.001)  # the camera's next picture
