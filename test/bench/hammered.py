"""The program whose functions are called at full rate, and which may be killed at any moment.

The file that it is given lies in shared memory. It has a number for each of the last calls, and behind them one that
counts the calls that were made a second time.
"""

import mmap
import sys
import threading

with open(sys.argv[1], "r+b") as file:
    log = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")

twice = len(log) - 1
lock = threading.Lock()


def note(number, x):
    """Notes the number of the call, and gives it back with an array made of x."""
    i = number % twice
    with lock:
        if log[i] == number:
            log[twice] += 1
        log[i] = number
    return {"number": number, "sum": x + 1}
