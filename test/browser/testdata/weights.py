import os
import sys
import time

import numpy as np


def main():
    state = {"w%d" % i: np.ones((64, 128), np.float32) for i in range(300)}
    step = 0
    while True:
        step += 1
        state["w%d" % (step % 300)] *= 0.999
        if os.path.exists(sys.argv[1]):
            state["w137"][7, 5] = float("nan")
        time.sleep(0.005)


main()
