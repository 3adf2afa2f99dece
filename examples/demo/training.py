"""A training that goes on until somebody ends it. It knows nothing of ndbridge, and no host has started it."""

import time

import numpy as np


def main():
    random = np.random.default_rng(0)
    inputs = random.normal(size=(256, 128))
    wanted = inputs @ np.ones((128, 128))
    weights = np.zeros((128, 128))
    while True:
        weights -= inputs.T @ (inputs @ weights - wanted) / 100_000
        time.sleep(0.01)


try:
    main()
except KeyboardInterrupt:
    pass
