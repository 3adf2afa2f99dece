import time
import numpy as np

while True:
    x = np.arange(3.0)
    time.sleep(2)
    del x
    time.sleep(6)
