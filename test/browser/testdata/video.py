"""Publishes a video, 60 pictures a second. All points of a picture have the same colour, so that a torn one is known."""

import sys
import time

import ndbridge
import numpy as np

buffers = [np.zeros((240, 320, 3), np.uint8) for _ in range(int(sys.argv[1]))]
begin = time.monotonic()
for step in range(1 << 30):
    if buffers:
        frame = buffers[step % len(buffers)]
        frame[:] = step % 251
    else:
        frame = np.full((240, 320, 3), step % 251, np.uint8)
    ndbridge.publish("video", frame)
    time.sleep(max(begin + step / 60 - time.monotonic(), 0))
