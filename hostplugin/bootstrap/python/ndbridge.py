"""Stands for the module ndbridge where no host has started the process: in spawned children of a program."""


def publish(name, array=...):
    """Raises RuntimeError: there is no host."""
    raise RuntimeError("this process has no host: publish from the process that the host started")


def unpublish(name):
    """Raises RuntimeError: there is no host."""
    raise RuntimeError("this process has no host: unpublish in the process that the host started")


__all__ = ["publish", "unpublish"]
