"""The driver of a Ray cluster, whose functions a Go program calls: it knows nothing of Go."""

import asyncio
import os
import sys

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import numpy as np
import ray

ray.init(address=sys.argv[1], log_to_driver=False, configure_logging=False)


@ray.remote(scheduling_strategy="SPREAD")
def part(x, i, n):
    """The sum of one of n parts. x is read where it lies in the object store."""
    return float(np.array_split(x, n)[i].sum())


@ray.remote
def scaled(x):
    return x / x.max()


@ray.remote
def sleep(path):
    """Says when it begins, and runs until it is cancelled."""
    import time

    open(path, "x").close()
    while True:
        time.sleep(0.01)


@ray.remote
class Counter:
    def __init__(self):
        self.n = 0

    def add(self, n):
        self.n += n
        return self.n


counter = Counter.remote()


async def result(*refs):
    """Waits for tasks of the cluster. If the caller gives up, they are cancelled."""
    try:
        return await asyncio.gather(*refs)
    except asyncio.CancelledError:
        for ref in refs:
            ray.cancel(ref)
        raise


async def total(x, parts=8):
    x = ray.put(x)  # the one copy: into the object store
    return sum(await result(*(part.remote(x, i, parts) for i in range(parts))))


async def scale(x):
    (y,) = await result(scaled.remote(ray.put(x)))
    return y  # lies in the object store, where the host reads it


async def count(n):
    (n,) = await result(counter.add.remote(n))
    return n


async def endless(path):
    await result(sleep.remote(path))


def nodes():
    return sum(node["Alive"] for node in ray.nodes())
