import ndbridge
import numpy as np


def render(step):
    return np.full((120, 160, 3), step % 256, np.uint8)


for step in range(1, 501):
    frame = render(step)  # a new array for each version
    ndbridge.publish({"frame": frame, "step": step})  # step is an int, whose value is kept
