"""Runs the command ndbridge that comes with this package: python -m ndbridge doctor examines this Python, and python -m ndbridge
run train.py ARGUMENT... runs a program that listens, in this Python."""

import os
import subprocess
import sys

COMMAND = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "ndbridge")

# Set for the second of the two processes of run, which has the shared heap.
SECOND = "NDBRIDGE_RUN"


def main():
    args = sys.argv[1:]
    if args[:1] == ["run"] and program(args[1:]):
        return run(args[1:])
    if args[:1] == ["doctor"] and not any(a == "--python" or a.startswith("--python=") for a in args):
        args.insert(1, "--python=" + sys.executable)
    os.execv(COMMAND, ["ndbridge"] + args)


def program(args):
    """Says whether these are a program and its arguments, as python takes them, behind --name NAME; else they are for the command."""
    if args[:1] == ["--name"]:
        args = args[2:]
    return bool(args) and (args[0] == "-m" and len(args) > 1 or not args[0].startswith("-") and os.path.exists(args[0]))


def run(args):
    if os.environ.pop(SECOND, None) is None:
        preload(heap())
    name = None
    if args[0] == "--name":
        name, args = args[1], args[2:]
    from . import _run

    _run(name, args)


def heap():
    """Gives the shared heap's file, or None."""
    try:
        os.confstr("CS_GNU_LIBC_VERSION")
    except (OSError, ValueError):  # with the heap it would not even start
        print("ndbridge: this Python is not linked with glibc: the program runs, but no host can attach to it", file=sys.stderr)
        return None
    found = subprocess.run([COMMAND, "version", "--heap"], stdout=subprocess.PIPE, universal_newlines=True)
    path = found.stdout.strip()
    if found.returncode or set(path).intersection(": \t\n$"):  # which LD_PRELOAD cannot hold
        print("ndbridge: the program runs without the shared heap: its arrays will be copied, but for large ones", file=sys.stderr)
        return None
    return path


def preload(path):
    """Becomes this Python again, with the shared heap."""
    if path is None or os.path.basename(path) in os.environ.get("LD_PRELOAD", ""):  # as below "ndbridge run --share"
        return
    if hasattr(sys, "orig_argv"):
        again = [sys.executable] + sys.orig_argv[1:]
    else:
        again = [sys.executable] + subprocess._args_from_interpreter_flags() + ["-m", "ndbridge"] + sys.argv[1:]
    os.environ[SECOND] = "1"
    os.environ["LD_PRELOAD"] = ":".join(p for p in (path, os.environ.get("LD_PRELOAD")) if p)
    sys.stdout.flush()
    os.execv(sys.executable, again)


if __name__ == "__main__":
    main()
