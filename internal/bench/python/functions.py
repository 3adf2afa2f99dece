"""The functions of the program that hosts call. Those that compute say how many nanoseconds that has taken."""

import time

clock = time.perf_counter_ns


def empty():
    pass


def last(x):
    return float(x[-1])


def total(x):
    start = clock()
    result = x.sum()
    return {"took": clock() - start, "total": result}


def double(x):
    start = clock()
    y = 2 * x
    return {"took": clock() - start, "double": y}
