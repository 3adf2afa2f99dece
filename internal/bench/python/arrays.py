"""The program whose arrays are looked at: of each framework, one for each size, all of them published too.

It connects to the socket that it is given, says "ready", and then does what it is told, one word a line:
"spin" computes in pure Python, which never lets go of the GIL by itself, and "replace" publishes one array
after the other under the same name, both until the first byte of the given file is not zero.
"""

import mmap
import socket
import sys
import time

import making
import ndbridge

_, control, stop_file, frameworks, *sizes = sys.argv

for framework in frameworks.split(","):
    for size in sizes:
        array = making.reserve(framework, int(size))
        globals()[framework + size] = array
        ndbridge.publish("published_" + framework + size, array)


def spin(stop):
    x = 0
    while not stop[0]:
        for i in range(1000):
            x = (x * 3 + i) & 0xFFFF


def replace(stop):
    import numpy as np

    turn = 0
    while not stop[0]:
        turn += 1
        ndbridge.publish("replaced", np.full(1024, turn, dtype="f4"))
        time.sleep(0.001)


def serve():
    with socket.socket(socket.AF_UNIX) as connection, open(stop_file, "r+b") as file:
        connection.connect(control)
        stop, lines = mmap.mmap(file.fileno(), 1), connection.makefile("rw")

        def say(word):
            lines.write(word + "\n")
            lines.flush()

        say("ready")
        for line in lines:
            word = line.strip()
            say(word)
            {"spin": spin, "replace": replace}[word](stop)
            say("done")


serve()
