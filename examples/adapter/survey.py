"""A program that uses gridlib, and knows nothing of a host."""

import time

import gridlib


def measure(height):
    grid = gridlib.zeros(300, 400)
    grid.put(10, 20, height)
    return grid


heights = measure(7.5)
while heights[0][0] == 0:  # until somebody writes there
    time.sleep(0.01)
print("somebody wrote", heights[0][0])
