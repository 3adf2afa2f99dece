"""Stands for the module ndbridge where no host has started the process: in spawned children of a program, which run
the program's main module again."""

connected = False


def publish(name, array=...):
    """Does nothing: there is no host."""


def unpublish(name):
    """Does nothing: there is no host."""


__all__ = ["connected", "publish", "unpublish"]
