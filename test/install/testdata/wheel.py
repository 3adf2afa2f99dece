"""Runs with the wheel installed: without a host, in a spawned child, and as a host's program."""

import inspect
import multiprocessing
import sys

import ndbridge


def look():
    return ndbridge.connected, ndbridge.__file__ is not None


if __name__ == "__main__":
    if sys.argv[1:] == ["hosted"]:
        print("connected:", ndbridge.connected, ndbridge.__version__)
        sys.exit()
    for module in ndbridge, sys.modules["ndbridge"]:
        assert module.connected is False
    assert ndbridge.publish("x", 1) is None and ndbridge.publish({"x": 1}) is None and ndbridge.unpublish("y") is None
    assert ndbridge.serve() is None and not hasattr(ndbridge.host, "f")
    assert all(inspect.getdoc(getattr(ndbridge, name)) for name in ("publish", "serve", "unpublish", "wait", "host"))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(look) == (False, True)
    stub = open(ndbridge.__file__ + "i").read()
    for name in ndbridge.__all__ + ["__version__"]:
        assert any(("\n" + words % name) in "\n" + stub for words in ("def %s(", "class %s(", "%s: ")), name
    compile(stub, "__init__.pyi", "exec")
    print("alone:", ndbridge.__version__)
