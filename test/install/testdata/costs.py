"""Says what its process takes, in KiB that are resident, KiB of these that no file backs, threads and descriptors: to the host, or as
text without one."""

import os

import numpy as np


def value(file, key):
    with open(file) as lines:
        return int(next(line.split()[1] for line in lines if line.startswith(key)))


taken = [value("/proc/self/smaps_rollup", "Rss:"), value("/proc/self/smaps_rollup", "Anonymous:"), value("/proc/self/status", "Threads:"),
         len(os.listdir("/proc/self/fd"))]
print(*taken)
costs = np.array(taken)
