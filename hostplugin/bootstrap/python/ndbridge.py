"""Stands for the module ndbridge where no host has started the process: in spawned children of a program, which run
the program's main module again, and in programs without a host where the package ndbridge is installed. connected is
False, publish and unpublish take whatever they are given and do nothing, serve and wait return at once, and host has no functions. In a program that a host has started, a name
is one as in Python: frame, model.weight, batch["x"], frames[0]."""

__version__ = "0.1.0"
connected = False


class Cancelled(BaseException):
    """Is raised in a function that the host has called, when the host does not wait for it any more: never here."""


class HostError(Exception):
    """Is raised by a function of the host's that has failed: never here."""


class Host(object):
    """The functions of the host: there are none."""

    __slots__ = ()

    def __getattr__(self, name):
        raise AttributeError("there is no host, and no function %r of it" % name)


host = Host()


def publish(name, array=...):
    """Does nothing: there is no host. Names and arrays are not checked."""


def serve():
    """Returns at once: there is no host, and nothing to serve."""


def unpublish(name):
    """Does nothing: there is no host."""


def wait(array, stream=None):
    """Returns at once: there is no host, and nobody reads."""


__all__ = ["Cancelled", "HostError", "connected", "host", "publish", "serve", "unpublish", "wait"]
