import sys

import ndbridge
import numpy as np

frame = np.zeros((480, 640), np.uint8)
ndbridge.listen(sys.argv[1])
print("ready", flush=True)
sys.stdin.read()  # until nobody wants it any more
