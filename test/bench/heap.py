"""One framework's work, timed on request: this runs once with the shared heap and once without.

Each line on standard input is "OPERATION BYTES COUNT"; the answer is a JSON list with the duration of
each of the COUNT calls in nanoseconds. Operands are made anew when operation or size change, and then
the work is done a few times before it counts.
"""

import json
import sys
import time


def numpy_operations():
    import numpy as np

    def operands(size):
        return np.ones(size // 8), np.ones(size // 8)

    return operands, {
        "a + b": lambda a, b: a + b,
        "copy": lambda a, b: a.copy(),
        "zeros, fill": lambda a, b: np.zeros(len(a)).fill(1.0),
        "add to out": lambda a, b: np.add(a, b, out=b),
    }


def torch_operations():
    import torch

    def operands(size):
        return torch.ones(size // 4), torch.ones(size // 4)

    return operands, {
        "a + b": lambda a, b: a + b,
        "zeros": lambda a, b: torch.zeros(len(a)),
    }


def jax_operations():
    import jax
    import jax.numpy as jnp

    add = jax.jit(lambda a, b: a + b)

    def operands(size):
        return jnp.ones(size // 4), jnp.ones(size // 4)

    return operands, {"jit a + b": lambda a, b: add(a, b).block_until_ready()}


def main():
    make, operations = globals()[sys.argv[1] + "_operations"]()
    print(json.dumps(list(operations)), flush=True)
    last = a = b = None
    for line in sys.stdin:
        name, size, count = line.rsplit(maxsplit=2)
        work = operations[name]
        if last != (name, size):
            a = b = None
            a, b = make(int(size))
            for _ in range(3):
                work(a, b)
            last = name, size
        durations = []
        for _ in range(int(count)):
            start = time.perf_counter_ns()
            work(a, b)
            durations.append(time.perf_counter_ns() - start)
        print(json.dumps(durations), flush=True)


main()
