"""Ends with an exception when it is told to."""

import pathlib
import sys
import time

import numpy as np

values = np.arange(100000.0)
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.01)
raise ValueError("<b>the data is bad</b>")
