"""A small training: figures, weights, a batch of pictures and a field that moves. Looked at by the tests, and for the documentation."""

import sys
import time

import ndbridge
import numpy as np

rng = np.random.default_rng(1)
y, x = np.mgrid[0:240, 0:320]

numbers = np.arange(10000, dtype=np.float64).reshape(100, 100)
field = np.zeros((240, 320), np.float32)
nothing = np.zeros((0, 3))
photo = np.stack([x % 256, y, (x + y) // 3], -1).astype(np.uint8)
digits = np.zeros((16, 28, 28), np.uint8)
for i, digit in enumerate(digits):
    digit[:] = 255 * (np.hypot(np.mgrid[0:28, 0:28][0] - 14, np.mgrid[0:28, 0:28][1] - 14) < i)


class Model:
    def __init__(self):
        self.head = np.full((300, 300), 0.25)


model = Model()


def train():
    weight = rng.normal(0, 0.02, (256, 784)).astype(np.float32)
    bias = np.zeros(131072, np.float32)
    step = 0
    while True:
        step += 1
        weight += rng.normal(0, 0.0005, weight.shape).astype(np.float32)
        bias += 0.001
        field[:] = np.sin(x / 23 + step / 9) * np.cos(y / 17) + 0.3 * np.sin((x + y) / 31 - step / 7)
        if len(sys.argv) > 1 and step == int(sys.argv[1]):
            weight[100, 300] = np.nan
        ndbridge.publish({"loss": float(2 * np.exp(-step / 200) + 0.1 * rng.random()), "accuracy": float(1 - np.exp(-step / 150)), "step": step})
        time.sleep(0.04)


train()
