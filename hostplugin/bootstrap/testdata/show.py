"""Shows what a script can see of how it was started."""
import sys

import local  # beside the script


class Pickled(object):
    pass


def show(name, value):
    print("%s: %s" % (name, value))


show("name", __name__)
show("doc", __doc__)
show("file", __file__)
show("package", __package__)
show("spec", __spec__)
show("loader", type(__loader__))
show("loader path", getattr(__loader__, "path", None))
show("cached", globals().get("__cached__", "absent"))
show("builtins", __builtins__)
show("annotations", globals().get("__annotations__", "absent"))
show("globals", sorted(globals()))
show("main", sys.modules["__main__"].Pickled is Pickled)
show("module", (Pickled.__module__, show.__module__, show.__code__.co_filename))
show("local", local.__file__)
show("argv", sys.argv)
show("path", sys.path)
show("flags", sys.flags)
show("orig_argv", getattr(sys, "orig_argv", ["python"])[1:])
show("stdin", sys.stdin.read())
show("stdout", (sys.stdout.fileno(), sys.stdout.encoding, sys.stdout.errors))

import os  # noqa: E402
import pickle  # noqa: E402
import signal  # noqa: E402

show("environment", sorted(n for n in os.environ.items() if n[0].startswith(("NDBRIDGE", "PLUGIN", "GODEBUG"))))
show("pickle", pickle.loads(pickle.dumps(Pickled())).__class__ is Pickled)
show("interrupt", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
