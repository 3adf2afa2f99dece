# This is what an interpreter runs first when a host comes: it loads the plugin into the process. start.py or
# attach.py follows it: the one runs the program, the other finds it running. module.py makes the module ndbridge.
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
    try:
        import ctypes
    except ImportError as error:
        give_up("unavailable", "this Python has no ctypes: %s" % error,
                "install libffi and build this Python again, or use another")

    def load_library():
        if check:
            check(ctypes, libc)
        return ctypes.CDLL(path)

    try:
        libc = ctypes.PyDLL(None)  # with the GIL: see let_in
        check_c_library(libc)
        lib, with_gil = quietly(ctypes, libc, load_library), ctypes.PyDLL(path)
    except OSError as error:
        platform = getattr(sys.implementation, "_multiarch", sys.platform)
        give_up("unavailable", "the plugin does not load into this Python (%s): %s" % (platform, error),
                "use a 64-bit CPython for this machine and for Linux with glibc")
    if not hasattr(lib, "nd_start"):
        give_up("version", "the plugin %s is a library, but none of an adapter for Python" % path,
                "name the file of an adapter, or of one of this release")
    return lib, with_gil


def check_c_library(libc):
    """Gives up without glibc. Where something stands in for glibc's libraries, the plugin could load, and crash the program."""
    if hasattr(libc, "gnu_get_libc_version"):
        return
    with open("/proc/self/maps", "rb") as maps:
        library = "musl" if b"musl" in maps.read() else "a C library other than glibc"
    give_up("unavailable", "this Python is linked with %s, and the plugin needs glibc" % library,
            "use a CPython for glibc, as in an image with Debian: python:3-slim instead of python:3-alpine")


def quietly(ctypes, libc, action):
    """Calls action so that all signals stay the program's.

    Threads that it makes block what is blocked here, for a signal that is sent to the process goes to any
    thread that does not block it. Faults, which a thread causes itself, cannot be blocked.
    """
    import _signal as signal

    faults = signal.SIGILL, signal.SIGTRAP, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGSYS
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals().difference(faults))
    # As large as a struct sigaction at least. Python's own functions change handlers on the main thread alone.
    handlers = [(number, ctypes.create_string_buffer(512)) for number in (signal.SIGPIPE, signal.SIGURG)]
    for number, handler in handlers:
        libc.sigaction(number, None, handler)
    try:
        return action()
    finally:
        for number, handler in handlers:  # Go has set its own
            libc.sigaction(number, handler, None)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
