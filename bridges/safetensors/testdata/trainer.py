import ndbridge
import numpy as np
from safetensors.numpy import load_file

weight = np.zeros((300, 200), np.float32)
bias = np.zeros((200, 40), np.float16).T  # not in row-major order


def advance(step):
    weight[:] = step
    bias[:] = step
    ndbridge.publish({"weight": weight, "bias": bias, "step": step})


def check(path):
    """What the file holds: the shapes, and the one value of all elements."""
    tensors = load_file(path)
    (value,) = {float(x) for t in tensors.values() for x in np.unique(t)}
    return {"shapes": {name: list(t.shape) for name, t in tensors.items()}, "value": value}
