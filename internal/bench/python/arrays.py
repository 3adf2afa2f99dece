"""The program whose arrays are looked at: of each framework, one for each size, all of them published too, and
the parameters of a model.

It connects to the socket that it is given, writes a line, and then does what it is told, a JSON list a line: the
name of one of the functions below, and its arguments. It writes a line when it begins and one of JSON, the
result, when it is done. Times are those of CLOCK_MONOTONIC, in nanoseconds.
"""

import json
import mmap
import socket
import sys
import time

import functions  # noqa: F401  # which hosts call
import making
import ndbridge

_, control, stop_file, frameworks, count, *sizes = sys.argv

for framework in frameworks.split(","):
    for size in sizes:
        array = making.reserve(framework, int(size))
        globals()[framework + size] = array
        ndbridge.publish("published_" + framework + size, array)
if int(count):
    parameters, model = making.parameters(int(count)), making.model(int(count))

clock = time.perf_counter_ns
frames = []  # of versions


def spin():
    """Computes in pure Python, which never lets go of the GIL by itself, until it is to stop."""
    x = 0
    while not stop[0]:
        for i in range(1000):
            x = (x * 3 + i) & 0xFFFF


def replace():
    """Publishes a small and a large array, new ones each time, until it is to stop."""
    import numpy as np

    turn = 0
    while not stop[0]:
        turn += 1
        ndbridge.publish({
            "replaced": np.full(1024, turn, dtype="f4"), "replaced_large": np.full(65536, turn, dtype="f4"),
        })
        time.sleep(0.001)


def publish(kind, size, warm, count):
    """How long it takes to publish an array: the same again, two in turn, a new one each time (that it is made does
    not count), or two in turn in a dict with another one and a number."""
    a, b, c = (making.make("numpy", size) for _ in range(3))
    made = {"same": lambda i: a, "turns": lambda i: b if i % 2 else a, "new": lambda i: making.reserve("numpy", size)}
    took = []
    for i in range(warm + count):
        if kind == "dict":
            arguments = ({"dict_a": b if i % 2 else a, "dict_b": c, "dict_step": i},)
        else:
            arguments = ("publish_" + kind, made[kind](i))
        start = clock()
        ndbridge.publish(*arguments)
        took.append(clock() - start)
    return took[warm:]


def versions(count, pause):
    """Publishes two arrays in turn, each a time after the one before, whose first number is that of the turn. Gives
    when each publication began and ended."""
    if not frames:
        frames.extend(making.reserve("numpy", 1 << 20).view("i8") for _ in range(2))
    began, ended = [], []
    for i in range(count + 1):
        array = frames[i % 2]
        array[0] = i
        time.sleep(pause)
        began.append(clock())
        ndbridge.publish("versions", array)
        ended.append(clock())
    return began, ended


with socket.socket(socket.AF_UNIX) as connection, open(stop_file, "r+b") as file:
    connection.connect(control)
    stop, lines = mmap.mmap(file.fileno(), 1), connection.makefile("rw")

    def say(what):
        lines.write(json.dumps(what) + "\n")
        lines.flush()

    say("ready")
    for line in lines:
        name, *arguments = json.loads(line)
        say(name)
        say({f.__name__: f for f in (spin, replace, publish, versions)}[name](*arguments))
