"""Hands arrays of this program to the host that started it.

Nothing has to be published: the host reaches every array that has a name in this program. Publishing
gives an array a name of its own, wherever the program keeps it, and makes versions that the host can
wait for.

connected is True in the program that a host has started, and in children that it forks, which cannot
publish; it is False in children that it spawns, where publish does nothing.
"""

# This is what an interpreter runs first when a host comes: it loads the plugin into the process, and makes
# the module ndbridge. start.py or attach.py follows it: the one runs the program, the other finds it running.
#
# It runs in a namespace of its own, so nothing of it shows in the program but the module ndbridge.
# It must compile under every Python, 2.7 included, because only Python can tell the host that it is
# too old. Until the program runs it imports only what no program shadows.

import os
import sys

# What the plugin's functions say, besides 0 for success.
ENDED, INTERRUPTED, FORKED = 1, -1, 2


def send(stage, **fields):
    """Sends the host one status message, a JSON object in one datagram, by transmit, which is start.py's or attach.py's."""
    fields["stage"] = stage
    message = "{%s}" % ",".join("%s:%s" % (quote(k), quote(v)) for k, v in sorted(fields.items()))
    try:
        # A lone surrogate, which UTF-8 cannot say, becomes the escape that JSON has for it.
        transmit(message.encode("utf-8", "backslashreplace"))
    except OSError as error:
        sys.exit("ndbridge: this code is run by a host, not by hand (%s): %s" % (error, message))


def quote(text):
    """Writes a JSON string."""
    if isinstance(text, bytes):  # Python 2's str
        text = text.decode("utf-8", "replace")
    safe = (c if c >= " " and c not in '"\\' else "\\u%04x" % ord(c) for c in text[:8000])
    return '"%s"' % "".join(safe)


def give_up(kind, message, remedy):
    send("error", kind=kind, message=message, remedy=remedy)
    sys.exit(1)


def check_interpreter():
    version = "%d.%d.%d" % tuple(sys.version_info[:3])
    name = getattr(getattr(sys, "implementation", None), "name", "cpython")
    send("python", version=version, implementation=name, executable=sys.executable or "")
    if name != "cpython":
        give_up("version", "the interpreter is %s %s" % (name, version), "use CPython 3.8 or newer")
    if sys.version_info < (3, 8):
        give_up("version", "the interpreter is Python %s" % version, "use CPython 3.8 or newer")
    if "t" in getattr(sys, "abiflags", ""):
        give_up("version", "the interpreter is the free-threaded Python %s" % version, "use the build with the GIL")


def load(path, check=None):
    """Gives the plugin twice: its functions to be called without the GIL, and with it. In a program that runs already, check gives up if
    the process has no room for the plugin."""
    def load_library(libc):
        if check:
            check(ctypes, libc)
        return ctypes.CDLL(path)

    modules = set(sys.modules)
    try:
        import ctypes
    except ImportError as error:
        give_up("unavailable", "this Python has no ctypes: %s" % error,
                "install libffi and build this Python again, or use another")
    try:
        check_c_library(ctypes)
        lib, with_gil = quietly(ctypes, load_library), ctypes.PyDLL(path)
    except OSError as error:
        platform = getattr(sys.implementation, "_multiarch", sys.platform)
        give_up("unavailable", "the plugin does not load into this Python (%s): %s" % (platform, error),
                "use a 64-bit CPython for this machine and for Linux with glibc")
    if not hasattr(lib, "nd_start"):
        give_up("version", "the plugin %s is a library, but none of an adapter for Python" % path,
                "name the file of an adapter, or of one of this release")
    lib.nd_finished.argtypes = [ctypes.c_int, ctypes.c_char_p]
    with_gil.nd_version.restype = ctypes.py_object
    with_gil.nd_publish.argtypes = [ctypes.py_object] * 2
    with_gil.nd_publish_all.argtypes = with_gil.nd_unpublish.argtypes = [ctypes.py_object]
    with_gil.nd_failed.argtypes = [ctypes.py_object]
    with_gil.nd_after_reads.argtypes = [ctypes.py_object, ctypes.c_size_t]
    with_gil.nd_call_host.argtypes = [ctypes.py_object] * 3
    with_gil.nd_call_host.restype = with_gil.nd_host_functions.restype = ctypes.py_object
    with_gil.nd_print.argtypes = [ctypes.py_object] * 3
    # The program may have modules of these names; what starts with "_" is built in.
    for name in () if check else set(sys.modules) - modules:
        if not name.startswith("_"):
            del sys.modules[name]
    return lib, with_gil


def check_c_library(ctypes):
    """Gives up without glibc. Where something stands in for glibc's libraries, the plugin could load, and crash the program."""
    if hasattr(ctypes.CDLL(None), "gnu_get_libc_version"):
        return
    with open("/proc/self/maps", "rb") as maps:
        library = "musl" if b"musl" in maps.read() else "a C library other than glibc"
    give_up("unavailable", "this Python is linked with %s, and the plugin needs glibc" % library,
            "use a CPython for glibc, as in an image with Debian: python:3-slim instead of python:3-alpine")


def quietly(ctypes, action):
    """Calls action with the C library, so that all signals stay the program's.

    Threads that it makes block what is blocked here, for a signal that is sent to the process goes to any
    thread that does not block it. Faults, which a thread causes itself, cannot be blocked.
    """
    import _signal as signal

    faults = signal.SIGILL, signal.SIGTRAP, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGSYS
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals().difference(faults))
    libc = ctypes.PyDLL(None)  # with the GIL: see let_in
    # As large as a struct sigaction at least. Python's own functions change handlers on the main thread alone.
    handlers = [(number, ctypes.create_string_buffer(512)) for number in (signal.SIGPIPE, signal.SIGURG)]
    for number, handler in handlers:
        libc.sigaction(number, None, handler)
    try:
        return action(libc)
    finally:
        for number, handler in handlers:  # Go has set its own
            libc.sigaction(number, handler, None)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def make_module(with_gil, stand_in):
    """Makes the module ndbridge that a started program can import. stand_in is a directory with one of that name for
    processes that the program spawns."""

    def publish(name, array=Ellipsis):
        """Makes array the next version of a name, by which the host can ask for it.

        With a dict of names and arrays instead, all of them become the next versions at once: the host
        sees all or none. Numbers (bool, int, float) are published as arrays without axes.

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

    module = Module("ndbridge", __doc__)
    module.__version__ = with_gil.nd_version()
    module.__all__ = ["Cancelled", "HostError", "connected", "host", "listen", "publish", "serve", "unpublish", "wait"]
    module.connected = True
    module._forked = with_gil.nd_forked
    module.Cancelled, module.HostError, module.host = Cancelled, HostError, Host()
    for function in listen, publish, serve, unpublish, wait:
        function.__qualname__ = function.__name__
        setattr(module, function.__name__, function)
    return module
