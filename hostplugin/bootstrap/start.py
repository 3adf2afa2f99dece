# Starts a program: this follows shared.py in an interpreter that a host has started, and runs the user's script or
# module as the interpreter alone would have.

# The descriptors that the host hands over, besides standard input and standard error.
HANDSHAKE, SIDE, STDOUT = 1, 3, 4

# How long a program that failed waits for the host to have read why.
LINGER_MS = 1000

# What Session.run gives for a program that an interrupt has ended.
INTERRUPT = object()

# How long a signal may stay unhandled that comes at the wrong moment: see Session.wait.
SIGNALS_MS = 1000


def transmit(message):
    os.write(SIDE, message)


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


def clean_environment():
    """Takes out what was meant for the plugin, which has its own copy, not for the program."""
    for name in list(os.environ):
        if name.startswith("NDBRIDGE_") or name in (
            "PLUGIN_CLIENT_CERT", "PLUGIN_MAX_PORT", "PLUGIN_MIN_PORT", "PLUGIN_MULTIPLEX_GRPC",
            "PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_UNIX_SOCKET_DIR", "PLUGIN_UNIX_SOCKET_GROUP",
        ):
            del os.environ[name]


def restore_signals():
    """Gives Python its handler of SIGINT back, through which the host ends the program."""
    import _signal as signal

    handler = signal.getsignal(signal.SIGINT)
    if handler in (None, signal.SIG_DFL, signal.SIG_IGN):  # ignored, in background jobs of a shell
        handler = signal.default_int_handler
    signal.signal(signal.SIGINT, handler)


def run_script(path, args, begin):
    """Does what `python path args...` does. begin is called when the program's modules can be found."""
    sys.argv[:] = [path] + args
    own_path = not (sys.flags.isolated or getattr(sys.flags, "safe_path", False))
    for hook in sys.path_hooks:  # a directory or a zip file with a __main__ in it
        try:
            hook(path)
        except ImportError:
            continue
        sys.path.insert(0, path)
        begin()
        import runpy

        return runpy._run_module_as_main("__main__", alter_argv=False)
    if own_path:
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    begin()
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


def run_module(name, args, begin):
    """Does what `python -m name args...` does, as run_script."""
    sys.argv[:] = ["-m"] + args
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        sys.path.insert(0, os.getcwd())
    begin()
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

    def begin(self):
        """Gives the program its module, in whose place None was: so who imports modules for a host knows that the program has begun."""
        sys.modules["ndbridge"] = self.module

    def run(self, execute, target, args):
        """Runs the program, tells the host how it ended, and gives its exit status, or INTERRUPT."""
        status = failure = None
        try:
            execute(target, args, self.begin)
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
    modules = set(sys.modules)
    session = Session(*load(plugin))
    send("loaded")
    if not session.open(handshake):
        sys.exit(1)
    clean_environment()
    restore_signals()
    session.module = make_module(session.with_gil, os.path.join(os.path.dirname(plugin), "python"))
    for name in set(sys.modules) - modules:  # the program may have some of these names; what starts with "_" is built in
        if not name.startswith("_"):
            del sys.modules[name]
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


main()
