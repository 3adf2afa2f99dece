from typing import Any, Callable, Mapping, Optional, overload

__version__: str
"""The version of ndbridge."""

connected: bool
"""Whether this process has a host: one that has started it, or, once listen was called, one that has come. Without, publish does nothing."""

class Cancelled(BaseException):
    """Is raised in a function that the host has called, when the host does not wait for it any more."""

class HostError(Exception):
    """Is raised by a function of the host's that has failed."""

class Host:
    """The functions that the host lets this program call."""

    def __getattr__(self, name: str) -> Callable[..., Any]: ...

host: Host
"""The functions that the host lets this program call: host.name(...)."""

def listen(name: Optional[str] = None, path: Optional[str] = None) -> Optional[str]:
    """Lets hosts of the same user come to this program, and gives the path of the socket at which it listens."""

@overload
def publish(name: str, array: object) -> None:
    """Makes array the next version of a name, by which the host can ask for it."""

@overload
def publish(name: Mapping[str, object]) -> None:
    """Makes the arrays and numbers of a dict the next versions of their names at once: the host sees all or none."""

def serve() -> None:
    """Runs what the host calls on this thread, the program's main one, until the host ends the session."""

def unpublish(name: str) -> None:
    """Takes the name back. What the host holds of the array stays valid."""

def wait(array: object, stream: int | None = None) -> None:
    """Lets a stream of a GPU wait until the host has done what it has begun to read there, so that the array may be written to."""
