"""Arrays whose pictures say what they have, and one that changes when it is told to."""

import pathlib
import sys
import time

import numpy as np

n, y, x, c = np.indices((5, 12, 10, 3))
nhwc = ((40 * n + 7 * y + 3 * x + 60 * c) % 256).astype(np.uint8)
nchw = np.ascontiguousarray(nhwc.transpose(0, 3, 1, 2))
chw = nchw[2].copy()
tall = np.repeat(nhwc[0].repeat(200, 0), 2, 1)  # 2400 rows: more than are drawn
cube = np.arange(192.0).reshape(4, 6, 8)
powers = np.exp2(np.arange(20).repeat(1 << 10)) * 1.5
ids = 123456789 + np.arange(2000, dtype=np.int32).reshape(40, 50)
huge = np.arange(-1000.0, 1000.0).reshape(40, 50) * 1.7e305
tiny = np.arange(2000.0).reshape(40, 50) * 5e-324
steps = np.zeros((200, 200), np.float32)
shot = np.full((200, 200), 200, np.uint8)
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.01)
steps[50:100, 100:150] = 3
shot[:100] = 100
time.sleep(3600)
