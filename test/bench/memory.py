"""How much memory NumPy's arrays take: this runs once with the shared heap and once without.

Arguments: WORK MIB. It prints the most that was resident at any time, and what is when the work is done, in
bytes, as JSON.
"""

import json
import random
import sys

import numpy as np

choose = random.Random(1)


def array():
    """One of 64 KiB to 16 MiB; small ones are as likely as large ones."""
    return np.ones(int(2 ** choose.uniform(13, 21)))


def arrays(size):
    made, held = [], 0
    while held < size:
        made.append(array())
        held += made[-1].nbytes
    return made


def churn(size):
    """Arrays that take each other's place, of which so much is held all the time."""
    made = arrays(size)
    held, written = sum(a.nbytes for a in made), 0
    while written < 8 * size:
        made.append(array())
        held += made[-1].nbytes
        written += made[-1].nbytes
        while held > size:
            held -= made.pop(choose.randrange(len(made))).nbytes
    return made


def free(size):
    arrays(size)


def resize(size):
    a = np.ones(size // 16)
    a.resize(size // 8, refcheck=False)
    a += 1
    return a


def resident(key):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(key))


held = globals()[sys.argv[1]](int(sys.argv[2]) << 20)
print(json.dumps({"peak": resident("VmHWM"), "idle": resident("VmRSS")}))
