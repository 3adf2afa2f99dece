"""Calls of an actor of Ray with an array, each with another last element, which the actor returns: a worker as ways.py is
one. The argument is a folder for Ray's files."""

import itertools
import json
import os
import secrets
import sys
import time

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)  # or Ray writes one into the home directory
sys.stdout, answers = sys.stderr, sys.stdout  # Ray prints

import numpy as np
import ray

PERIOD = 4093
clock = time.perf_counter_ns


@ray.remote
class Function:
    def last(self, x):
        return float(x[-1])


def say(what):
    print(json.dumps(what), file=answers, flush=True)


def timed(function, request):
    array = np.zeros(request["bytes"] // 4, "f4")
    took, numbers = [], itertools.cycle(range(PERIOD))
    for _ in range(request["warm"] + request["count"]):
        start = clock()
        array[-1] = number = next(numbers)
        answer = ray.get(function.last.remote(array))
        took.append(clock() - start)
        if answer != number:
            raise ValueError(f"the last element arrived as {answer}, expected {number}")
    return took[request["warm"] :]


def main():
    ray.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False, object_store_memory=1 << 30,
        _temp_dir=sys.argv[1],
    )
    function = Function.remote()
    ray.get(function.last.remote(np.zeros(1, "f4")))  # the actor runs
    say({"versions": {"ray": ray.__version__}, "missing": {}})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            say({"took": timed(function, request)})
        except Exception as error:  # whatever Ray raises: this way is not to be had
            say({"error": f"{type(error).__name__}: {error}"})
    ray.shutdown()


main()
