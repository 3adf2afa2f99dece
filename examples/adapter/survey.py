"""A program that uses gridlib, and knows nothing of a host."""

import time

import gridlib

heights = gridlib.zeros(300, 400)
land = gridlib.zeros(300, 400, "bool")
while heights[0][0] == 0:  # until somebody writes there
    land.put(10, 20, True)
    time.sleep(0.01)
print("somebody wrote", heights[0][0])
