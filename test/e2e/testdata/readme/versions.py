try:
    import ndbridge
except ImportError:  # no host has started this program
    ndbridge = None
import numpy as np

positions = np.zeros((10000, 3))
for step in range(1, 11):
    positions = positions + 1
    if ndbridge:
        ndbridge.publish({"positions": positions, "step": step})  # the host sees both, or neither
