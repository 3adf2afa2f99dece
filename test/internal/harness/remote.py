"""Lets a test steer the program that imports it: code in, JSON out, over a Unix socket.

Each request is a JSON line {"exec": code} or {"eval": code}, run in the program's __main__; each
answer is {"value": ...} or {"error": traceback}.
"""

import json
import os
import socket
import sys
import threading
import traceback


def _answer(request, scope):
    try:
        if "exec" in request:
            exec(request["exec"], scope)
            return {"value": None}
        return {"value": eval(request["eval"], scope)}
    except BaseException:
        return {"error": traceback.format_exc()}


def serve():
    """Answer until the test hangs up. Run on the main thread, it keeps the program busy."""
    scope = vars(sys.modules["__main__"])
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.environ["REMOTE_SOCKET"])
        with connection.makefile("rw") as lines:
            for line in lines:
                json.dump(_answer(json.loads(line), scope), lines)
                lines.write("\n")
                lines.flush()


def start():
    """Answer on a thread of its own, while the program goes on."""
    threading.Thread(target=serve, daemon=True).start()
