"""What is shown of a program: many weights, a large array, and, when it is told to, a video."""

import sys
import time

weights, edge, large, module = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
sys.path.append(module)

import ndbridge
import numpy as np

for i in range(weights):
    globals()[f"weight{i}"] = np.full((edge, edge), 1 + i, np.float32)
picture = np.empty((1024, large // 4096), np.float32)
picture[:] = np.sin(np.arange(picture.shape[1], dtype=np.float32))
step, recording = 0, False
print("there", flush=True)
frames, due = 0, time.monotonic()
while True:
    if recording:
        ndbridge.publish("video", np.full((480, 640, 3), frames % 251, np.uint8))  # of one colour each
    frames += 1
    due = max(due + 1 / 60, time.monotonic())  # what it is late by, it does not make up for
    time.sleep(max(due - time.monotonic(), 0))
