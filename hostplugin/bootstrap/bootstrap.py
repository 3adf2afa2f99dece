"""Hands arrays of this program to the host that started it.

Nothing has to be published: the host reaches every array that has a name in this program. Publishing
gives an array a name of its own, wherever the program keeps it, and makes versions that the host can
wait for.

connected is True in the program that a host has started, and in children that it forks, which cannot
publish; it is False in children that it spawns, where publish does nothing.
"""

# This is what an interpreter started by a host runs first: it loads the plugin into the process, and
# then runs the user's script or module as the interpreter alone would have.
#
# It runs in a namespace of its own, so nothing of it shows in the program but the module ndbridge.
# It must compile under every Python, 2.7 included, because only Python can tell the host that it is
# too old. Until the program runs it imports only what no program shadows.

import os
import sys

# The descriptors that the host hands over, besides standard input and standard error.
HANDSHAKE, SIDE, STDOUT = 1, 3, 4

# What the plugin's functions say, besides 0 for success.
ENDED, INTERRUPTED, FORKED = 1, -1, 2

# How many threads and descriptors the plugin makes, and some more. Go ends the process that has none left.
THREADS, DESCRIPTORS = 12, 16

# How long a program that failed waits for the host to have read why.
LINGER_MS = 1000

# What Session.run gives for a program that an interrupt has ended.
INTERRUPT = object()

# How long a signal may stay unhandled that comes at the wrong moment: see Session.wait.
SIGNALS_MS = 1000


def send(stage, **fields):
    """Sends the host one status message, a JSON object in one datagram."""
    fields["stage"] = stage
    message = "{%s}" % ",".join("%s:%s" % (quote(k), quote(v)) for k, v in sorted(fields.items()))
    try:
        # A lone surrogate, which UTF-8 cannot say, becomes the escape that JSON has for it.
        transmit(message.encode("utf-8", "backslashreplace"))
    except OSError as error:
        sys.exit("ndbridge: this code is run by a host, not by hand (%s): %s" % (error, message))


def transmit(message):
    """Writes one datagram to the side socket. In a running program another function takes its place."""
    os.write(SIDE, message)


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


def check_script(path):
    try:
        if os.path.isfile(path):
            open(path, "rb").close()
        else:
            os.stat(path)  # opening a pipe would take from it
    except OSError as error:
        give_up("config", "the script %s: %s" % (path, error.strerror), "check the path of the script")


def take_descriptors():
    """Makes the host's pipe for output this program's standard output, and gives the handshake's."""
    handshake = os.dup(HANDSHAKE)
    os.dup2(STDOUT, 1)
    os.close(STDOUT)
    os.set_inheritable(SIDE, False)
    if sys.stdout is not None:
        sys.stdout.reconfigure(line_buffering=True)
    return handshake


def load(path, started=True):
    """Gives the plugin twice: its functions to be called without the GIL, and with it. started says that the program does not run yet."""
    modules = set(sys.modules)
    try:
        import ctypes
    except ImportError as error:
        give_up("unavailable", "this Python has no ctypes: %s" % error,
                "install libffi and build this Python again, or use another")
    try:
        check_c_library(ctypes)
        lib, with_gil = load_quietly(ctypes, path, started), ctypes.PyDLL(path)
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
    for name in set(sys.modules) - modules if started else ():
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


def check_descriptors(libc, like):
    """Gives up in a running program that may not have as many descriptors more as the plugin makes."""
    spare = [libc.dup(like)]
    while spare[-1] >= 0 and len(spare) < DESCRIPTORS:
        spare.append(libc.dup(like))
    enough = spare[-1] >= 0
    for descriptor in spare:
        libc.close(descriptor)
    if not enough:
        give_up("unavailable", "the program has too few descriptors left for a host, which needs up to %d" % DESCRIPTORS,
                "raise its limit of open files (RLIMIT_NOFILE, ulimit -n)")


def check_threads(ctypes, libc):
    """Gives up in a running program that may not have as many threads more as the plugin makes. All signals are blocked."""
    threads, thread = [], ctypes.c_ulong()
    create = getattr(libc, "ndheap_create_thread", libc.pthread_create)
    attributes, semaphore = ctypes.create_string_buffer(256), ctypes.create_string_buffer(256)
    libc.pthread_attr_init(attributes)
    libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(1 << 17))
    libc.sem_init(semaphore, 0, 0)
    while len(threads) < THREADS and not create(ctypes.byref(thread), attributes, libc.sem_wait, semaphore):
        threads.append(thread.value)
    for _ in threads:
        libc.sem_post(semaphore)
    for ident in threads:
        libc.pthread_join(ctypes.c_ulong(ident), None)
    if len(threads) < THREADS:
        give_up("unavailable", "the program may have %d threads more, and a host needs up to %d" % (len(threads), THREADS),
                "raise its limit of processes (RLIMIT_NPROC, ulimit -u, pids.max of its control group)")


def load_quietly(ctypes, path, started):
    """Loads the plugin so that all signals stay the program's.

    The threads of the plugin block what is blocked here, for a signal that is sent to the process goes to
    any thread that does not block it. Faults, which a thread causes itself, cannot be blocked.
    """
    import _signal as signal

    faults = signal.SIGILL, signal.SIGTRAP, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGSYS
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals().difference(faults))
    libc = ctypes.PyDLL(None)  # with the GIL: who lets go of that of a busy program has it again after 5 ms
    # As large as a struct sigaction at least. Python's own functions change handlers on the main thread alone.
    handlers = [(number, ctypes.create_string_buffer(512)) for number in (signal.SIGPIPE, signal.SIGURG)]
    for number, handler in handlers:
        libc.sigaction(number, None, handler)
    try:
        if not started:
            check_descriptors(libc, files[0])
            check_threads(ctypes, libc)
        return ctypes.CDLL(path)
    finally:
        for number, handler in handlers:  # Go has set its own
            libc.sigaction(number, handler, None)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def clean_environment():
    """Takes out what was meant for the plugin, which has its own copy, not for the program."""
    for name in list(os.environ):
        if name.startswith("NDBRIDGE_") or name in (
            "PLUGIN_CLIENT_CERT", "PLUGIN_MAX_PORT", "PLUGIN_MIN_PORT", "PLUGIN_MULTIPLEX_GRPC",
            "PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_UNIX_SOCKET_DIR", "PLUGIN_UNIX_SOCKET_GROUP",
        ):
            del os.environ[name]


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


def restore_signals():
    """Gives Python its handler of SIGINT back, through which the host ends the program."""
    import _signal as signal

    handler = signal.getsignal(signal.SIGINT)
    if handler in (None, signal.SIG_DFL, signal.SIG_IGN):  # ignored, in background jobs of a shell
        handler = signal.default_int_handler
    signal.signal(signal.SIGINT, handler)


def run_script(path, args):
    """Does what `python path args...` does."""
    sys.argv[:] = [path] + args
    own_path = not (sys.flags.isolated or getattr(sys.flags, "safe_path", False))
    for hook in sys.path_hooks:  # a directory or a zip file with a __main__ in it
        try:
            hook(path)
        except ImportError:
            continue
        sys.path.insert(0, path)
        import runpy

        return runpy._run_module_as_main("__main__", alter_argv=False)
    if own_path:
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    if sys.version_info >= (3, 9):
        path = os.path.join(os.getcwd(), path)
    import _frozen_importlib_external as loaders

    if path.endswith(".pyc"):
        loader = loaders.SourcelessFileLoader("__main__", path)
        code = loader.get_code("__main__")
    else:
        loader = loaders.SourceFileLoader("__main__", path)
        code = compile(loader.get_data(path), path, "exec", dont_inherit=True)
    main = sys.modules["__main__"].__dict__
    main.update(__file__=path, __cached__=None, __loader__=loader)
    exec(code, main)


def run_module(name, args):
    """Does what `python -m name args...` does."""
    sys.argv[:] = ["-m"] + args
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        sys.path.insert(0, os.getcwd())
    import runpy

    runpy._run_module_as_main(name)


def wait_for_threads():
    """Waits as Python does before it exits: a script has not ended while its threads run."""
    threading = sys.modules.get("threading")
    if threading is None:
        return
    while True:
        current = threading.current_thread()
        others = [t for t in threading.enumerate() if not t.daemon and t is not current]
        if not others:
            return
        for thread in others:
            thread.join()


def flush():
    """Writes out what was printed, since the process may stay for long."""
    for stream in sys.stdout, sys.stderr:
        try:
            stream.flush()
        except Exception:  # closed, None, or not a stream; Python says so when it exits
            pass


class Session(object):
    """The program's half of a session, from the host's opening it to its end."""

    def __init__(self, lib, with_gil):
        self.lib = lib
        self.with_gil = with_gil

    def open(self, handshake):
        """Waits until the host has opened the session; gives False if it will not."""
        if self.lib.nd_start(handshake, SIDE):
            return False
        while True:
            result = self.lib.nd_await_open()
            if result != INTERRUPTED:
                return result != ENDED

    def run(self, execute, target, args):
        """Runs the program, tells the host how it ended, and gives its exit status, or INTERRUPT."""
        status = failure = None
        try:
            execute(target, args)
            wait_for_threads()
        except SystemExit as error:
            status = error.code
        except BaseException as error:
            failure = error
        # No exception is being handled from here on, as in Python when it reports one.
        return self.exited(status) if failure is None else self.raised(failure)

    def exited(self, status):
        if self.lib.nd_forked():
            return status
        flush()
        number, text = status, ""
        if status is None:
            number = 0
        elif not isinstance(status, int):
            number, text = 1, str(status)
        self.lib.nd_finished(number, text.encode("utf-8", "backslashreplace"))
        # What ended well stays available. Otherwise the host hears why first.
        self.wait(LINGER_MS if number else -1)
        return status

    def raised(self, error):
        forked = self.lib.nd_forked()
        if isinstance(error, KeyboardInterrupt) and not forked and self.lib.nd_ending():
            return 0  # the host ended the session while the script still ran
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_frame.f_globals is globals():
            traceback = traceback.tb_next
        error = error.with_traceback(traceback)
        self.with_gil.nd_print(type(error), error, traceback)
        if not forked:
            self.with_gil.nd_failed(error)
            self.wait(LINGER_MS)
        return INTERRUPT if isinstance(error, KeyboardInterrupt) else 1

    def wait(self, milliseconds):
        """Waits for the host to end the session; -1 is for ever. Signals are handled meanwhile: at once, or, if
        one comes when nd_wait is called but does not wait yet, when it is called again."""
        ever = milliseconds < 0
        while True:
            result = self.lib.nd_wait(SIGNALS_MS if ever else milliseconds)
            if result != INTERRUPTED and not (ever and result == 0):
                return

    def close(self):
        """Closes the interpreter to the plugin, since it is about to end: also if a signal comes meanwhile, as
        when somebody presses Ctrl-C twice."""
        while True:
            try:
                return self.lib.nd_close()
            except KeyboardInterrupt:
                pass


def main():
    sys.modules["ndbridge"] = None  # so that no other host comes, which could ask the process for that before the script runs
    if "" in sys.path[:1]:  # the current directory, which -c alone adds
        del sys.path[0]
    check_interpreter()
    plugin, kind, target = sys.argv[1:4]
    args = sys.argv[4:]
    if kind == "script":
        check_script(target)
    handshake = take_descriptors()
    session = Session(*load(plugin))
    send("loaded")
    if not session.open(handshake):
        sys.exit(1)
    clean_environment()
    restore_signals()
    sys.modules["ndbridge"] = make_module(session.with_gil, os.path.join(os.path.dirname(plugin), "python"))
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[1:] = ([] if kind == "script" else ["-m"]) + [target] + args
    try:
        status = session.run(run_script if kind == "script" else run_module, target, args)
    except KeyboardInterrupt:  # after the script's end, while its arrays were still in use
        status = 0 if session.lib.nd_ending() else INTERRUPT
    finally:
        session.close()
    if status is INTERRUPT:
        # Python finalizes, and then ends by the signal. Whatever there was to print is printed.
        sys.excepthook = lambda *error: None
        raise KeyboardInterrupt
    sys.exit(status)


def load_copy(library):
    """Loads a copy of the plugin, which the loader takes for another library: in a forked child, where Go does not run in that of the
    parent."""
    copy = os.memfd_create("ndbridge")
    try:
        size, at = os.fstat(library).st_size, 0
        while at < size:
            at += os.sendfile(copy, library, at, size - at)
        return load("/proc/%d/fd/%d" % (os.getpid(), copy), started=False)
    finally:
        os.close(copy)


def attach(plugin):
    """Lets a host in that has come to this running program. Whoever has accepted it gives module, the program's module
    ndbridge; side, the side socket; and files, the descriptors of the plugin's file and of the connection."""
    global transmit
    transmit = lambda message: side.send(message, 0x4000)  # MSG_NOSIGNAL: the host may be gone
    try:
        let_in(plugin)
    except Exception as error:  # by what the program has made of its interpreter; the host may be gone
        give_up("unavailable", "%s: %s" % (type(error).__name__, error), "see whether the program has replaced parts of Python")


def let_in(plugin):
    check_interpreter()
    library, stream = files
    try:
        same = os.path.samestat(os.stat(plugin), os.fstat(library))
    except OSError:
        same = False
    if module._plugin is None:  # a path may lead elsewhere for the program than for the host
        module._plugin = load(plugin if same else "/proc/self/fd/%d" % library, started=False)
        if module._plugin[1].nd_forked():
            module._plugin = load_copy(library)
        import atexit

        atexit.register(module._plugin[0].nd_close)
    lib, with_gil = module._plugin
    send("loaded")
    if module._ending:  # nobody might call nd_close any more
        give_up("unavailable", "the program is ending", "start it again")
    if lib.nd_open(side.fileno()):
        return  # which has said why
    if module._live is None:
        module._go_live(make_module(with_gil, ""), with_gil.nd_hosts)
    os.close(library)
    del files[:]
    lib.nd_attach(side.detach(), stream)
