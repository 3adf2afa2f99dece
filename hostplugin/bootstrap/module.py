# Makes the module ndbridge: this follows shared.py, at once where a program is started, and elsewhere when the module is first used.

DOC = """Hands arrays of this program to the host that started it.

Nothing has to be published: the host reaches every array that has a name in this program. Publishing
gives an array a name of its own, wherever the program keeps it, and makes versions that the host can
wait for.

connected is True in the program that a host has started, and in children that it forks, which cannot
publish; it is False in children that it spawns, where publish does nothing.
"""


def make_module(with_gil, stand_in):
    """Makes the module ndbridge that a started program can import. stand_in is a directory with one of that name for
    processes that the program spawns."""
    import ctypes

    with_gil.nd_version.restype = ctypes.py_object
    with_gil.nd_publish.argtypes = [ctypes.py_object] * 2
    with_gil.nd_publish_all.argtypes = with_gil.nd_unpublish.argtypes = [ctypes.py_object]
    with_gil.nd_failed.argtypes = [ctypes.py_object]
    with_gil.nd_after_reads.argtypes = [ctypes.py_object, ctypes.c_size_t]
    with_gil.nd_call_host.argtypes = [ctypes.py_object] * 3
    with_gil.nd_call_host.restype = with_gil.nd_host_functions.restype = ctypes.py_object
    with_gil.nd_print.argtypes = [ctypes.py_object] * 3

    def publish(name, array=Ellipsis):
        """Makes array the next version of a name, by which the host can ask for it.

        With a dict of names and arrays instead, all of them become the next versions at once: the host
        sees all or none. Numbers (bool, int, float) are published as arrays without axes. What can be called,
        and is no array, is published for the host to call.

        A name is a str that is written as in Python: an identifier, with attributes and with items by
        int or str behind it, such as frame, model.weight, batch["x"], frames[0]. It need not be the name of
        anything in the program. If it is, the host gets what is published.

        The array stays alive until the name is published again, which replaces it, or unpublished,
        even if the program holds no other reference to it. The host sees what is written into it
        later; what else is changed of the object, its shape for instance, it sees when the array
        is published again.

        Raises ValueError if a name cannot be one, TypeError or ValueError if an array cannot be handed over,
        TypeError if there is no room for more names (16384), and then publishes nothing, and RuntimeError in
        a forked child, which has no host.
        """
        if array is not Ellipsis:
            check(with_gil.nd_publish(name, array))
        elif isinstance(name, dict):
            check(with_gil.nd_publish_all(name))
        else:
            raise TypeError("publish: a name and an array are wanted, or a dict of them")

    def unpublish(name):
        """Takes the name back. What the host holds of the array stays valid.

        Raises KeyError if nothing is published under the name.
        """
        check(with_gil.nd_unpublish(name))

    def wait(array, stream=None):
        """Lets a stream of a GPU wait until the host has done what it has begun to read there: the array may
        be written to in place then. It returns at once. A read that the host begins later is not waited for.

        stream is the address of a CUstream; without it, it is the current one of the array's framework.

        Raises TypeError if the array is not on a GPU, ValueError if a stream must be named, and RuntimeError
        in a forked child, which has no host.
        """
        check(with_gil.nd_after_reads(array, 0 if stream is None else stream or 1))

    def serve():
        """Runs what the host calls on this thread, the program's main one, until the host ends the session.

        Until then calls run on threads of their own. serve is for libraries that want the main thread: for
        signals, windows, or the context of a GPU. One call runs at a time, and the others wait. Between calls
        signals are handled at once. A KeyboardInterrupt or a SystemExit that ends a call ends serve, too, and
        then calls run on other threads again.

        Raises RuntimeError on another thread, within a call that serve runs, and in a forked child.
        """
        try:
            check(with_gil.nd_serve())
        except KeyboardInterrupt:
            if not with_gil.nd_ending():
                raise

    def listen(name=None, path=None):
        """Does nothing: the host that has started this program is there already."""

    def check(result):
        if result == FORKED:
            raise RuntimeError("a forked process has no host: do that in the process that the host started")

    class Host(object):
        """The functions that the host lets this program call: host.name(...).

        Arguments and results are plain values and arrays. A thread that waits for the host lets others run,
        and can be interrupted. If a function fails, HostError is raised with what it says; ConnectionError
        when the host has ended the session; RuntimeError in a forked child, which has no host.
        """

        __slots__ = ()

        def __getattr__(self, name):
            if name.startswith("_"):
                raise AttributeError(name)
            names = functions()
            if name not in names:
                there = "it has " + ", ".join(names) if names else "it has none"
                raise AttributeError("the host has no function %r: %s" % (name, there))

            def call(*args, **kw):
                check(FORKED if with_gil.nd_forked() else 0)
                return with_gil.nd_call_host(name, args, kw)

            call.__name__ = call.__qualname__ = name
            return call

        def __dir__(self):
            return list(functions())

    def functions():
        check(FORKED if with_gil.nd_forked() else 0)
        return with_gil.nd_host_functions()

    class Module(type(sys)):
        @property
        def __spec__(self):
            # Who imports it in a program imports it in spawned children, too, which get their parent's path.
            if stand_in not in sys.path and os.path.isdir(stand_in):
                sys.path.append(stand_in)

    class Cancelled(BaseException):
        """Is raised in a function that the host has called, when the host does not wait for it any more."""

    class HostError(Exception):
        """Is raised by a function of the host's that has failed."""

    for kind in Cancelled, Host, HostError:
        kind.__module__, kind.__qualname__ = "ndbridge", kind.__name__

    module = Module("ndbridge", DOC)
    module.__version__ = with_gil.nd_version()
    module.__all__ = ["Cancelled", "HostError", "connected", "host", "listen", "publish", "serve", "unpublish", "wait"]
    module.connected = True
    module._forked = with_gil.nd_forked
    module.Cancelled, module.HostError, module.host = Cancelled, HostError, Host()
    for function in listen, publish, serve, unpublish, wait:
        function.__qualname__ = function.__name__
        setattr(module, function.__name__, function)
    return module
