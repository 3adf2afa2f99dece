"""Functions to call."""

import sys
import time

import numpy as np

print("said on stdout", sys.argv[1:])


def predict(x, top=1, *, scale=1.0):
    """Gives the scores of x."""
    return {"top": top, "scores": x * scale, "sums": x.sum(axis=0)}


def double(x):
    return x * 2


def echo(*args, **kw):
    return [args, kw, {1, 2}, float("nan"), 1j, {(1, 2): "t"}]


def fails():
    raise ValueError("no such thing")


def sleeps():
    print("sleeping", flush=True)
    while True:
        time.sleep(0.01)
