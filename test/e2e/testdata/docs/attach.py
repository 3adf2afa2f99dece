import ndbridge
import numpy as np

ndbridge.listen("trainer")

weights = np.zeros((1000, 1000))
for step in range(1_000_000):
    weights += 1
