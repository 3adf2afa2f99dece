"""Runs the command ndbridge that comes with this package: python -m ndbridge doctor examines this Python."""

import os
import sys


def main():
    command = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "ndbridge")
    args = sys.argv[1:]
    if args[:1] == ["doctor"] and not any(a == "--python" or a.startswith("--python=") for a in args):
        args.insert(1, "--python=" + sys.executable)
    os.execv(command, ["ndbridge"] + args)


if __name__ == "__main__":
    main()
