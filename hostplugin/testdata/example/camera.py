"""Holds a picture, and publishes another after a while."""
import threading

import ndbridge
import numpy as np

calibration = np.linspace(0.5, 1.0, 4, dtype=np.float32)
frame = np.arange(12, dtype=np.int32).reshape(3, 4)


def develop():
    ndbridge.publish("developed", frame * 2)


threading.Timer(0.2, develop).start()
