"""Stands for the module ndbridge where no host has started the process: in programs that let hosts come to them (listen), in
spawned children of a program, which run the program's main module again, and in programs without a host where the package
ndbridge is installed. Without listen, connected is False, publish and unpublish take whatever they are given and do nothing,
serve and wait return at once, and host has no functions. With it they do what they do in a program that a host has started, for all
hosts that come; below "ndbridge run --share" every program listens. A name is one as in Python: frame, model.weight, batch["x"], frames[0]."""

import errno as _errno  # once: the program may do with its modules what it likes while the thread of listen runs
import os as _os
import sys as _sys

import _thread

__version__ = "0.1.0"


def _own(*names):
    """Gives a function of _thread's own. gevent and eventlet put others in its place, which make greenlets of one thread: one that waits in
    the kernel would stop the program."""
    for module in _thread, _sys.modules.get("__original_module__thread"):  # which eventlet keeps
        for name in names:
            function = getattr(module, name, None)
            if type(function) is type(len):
                return function
    return getattr(_thread, names[0])


_start_thread, _make_lock = _own("start_new_thread", "start_new"), _own("allocate_lock", "allocate")

_plugin = None  # the plugin in this process; None: no host has come yet
_live = None  # a module with the functions below that reach hosts; None: likewise
_hosts = None  # says how many hosts there are; None: likewise
_listener = None
_library = None  # the shared heap, which can listen; False: it is not preloaded
_kept = {}  # what was published while nobody could know whether it may be
_keeping = _thread.RLock()  # guards _kept, and that _live is set when it is empty
_entering = _make_lock()  # one host at a time
_came = None  # a lock that is released when the first host has come
_coming = []  # descriptors of hosts that are being let in, and which files they are of
_sockets = None  # the module _socket, from listen on, or from the first host on
_rest = None  # the text of the rest of this module, where it is not run yet
_ending = False  # the program ends: it is too late for a host to come
_beside = False  # a thread forks that is not the main one
_astray = False  # this child was forked so, or comes from such a one: it ends when that thread does, as its last
_DAY = 86400  # seconds


class Cancelled(BaseException):
    """Is raised in a function that the host has called, when the host does not wait for it any more."""


class HostError(Exception):
    """Is raised by a function of the host's that has failed."""


def _go_live(live, hosts):
    """Is called when the first host has come."""
    global _live, _hosts
    with _keeping:
        while _kept:
            name = next(iter(_kept))
            try:
                live.publish(name, _kept.pop(name))
            except Exception:  # of what has no name; of other things, a host that asks for them learns what is wrong
                pass
        _live, _hosts = live, hosts
    if _came is not None:
        _came.release()


def _about_to_fork():
    global _beside
    _beside = getattr(_thread, "get_native_id", _os.getpid)() != _os.getpid()


def _alone():
    """Is called in a forked child, which is to find the same whether its parent has a host by then or not: none."""
    global _plugin, _live, _hosts, _came, _keeping, _entering, _astray
    _astray = _astray or _beside
    _plugin = _live = _hosts = _came = None
    _keeping, _entering = _thread.RLock(), _make_lock()
    while _coming:
        descriptor, identity = _coming.pop()
        if _identity(descriptor) == identity:
            _os.close(descriptor)  # or this process would look like its parent
    if _listener is not None:
        _listener.in_child()


def _identity(descriptor):
    """Says which file a descriptor is of; None: of none."""
    try:
        status = _os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _pause(seconds):
    lock = _make_lock()
    lock.acquire()
    lock.acquire(True, seconds)


_os.register_at_fork(before=_about_to_fork, after_in_child=_alone)


def _load_sockets():
    """Gives the module _socket, which the program's hooks may keep from being imported later."""
    global _sockets
    if _sockets is None:
        import _socket

        _sockets = _socket
    return _sockets


def _come(module, descriptor):
    """Lets in who has come to this process. module is this one, which nobody may have imported, or a double of it that another host has
    had made at the same time."""
    _load_sockets()  # or whoever calls says that this cannot be done
    known = _sys.modules.setdefault("ndbridge", module)
    waits = 5000
    while waits and getattr(getattr(known, "__spec__", None), "_initializing", False):  # the program is importing it
        _pause(0.001)
        known, waits = _sys.modules.setdefault("ndbridge", module), waits - 1
    if hasattr(known, "_forked") and known._forked():  # by a program that a host has started, whose module the program has
        known = known.__dict__.setdefault("_stand_in", module)
    if hasattr(known, "_let_in"):
        return known._let_in(descriptor, known)
    side = _adopt(descriptor)  # None is there while a host starts the program
    side.settimeout(5)
    side.recv(1 << 16)  # what nobody has read would hide the answer
    said = b'{"stage":"error","kind":"unavailable","message":"another host has started the program","remedy":"look at it from there"}'
    side.send(said, _sockets.MSG_NOSIGNAL)
    side.close()


def _adopt(descriptor):
    try:
        _socket = _load_sockets()
        return _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, descriptor)
    except BaseException:  # the host is not to wait for what does not come
        _os.close(descriptor)
        raise


def _let_in(descriptor, module):
    """Runs the bootstrap that a host sends, if it is one of this user's or root's. module is this one."""
    side, _socket = _adopt(descriptor), _sockets
    files, coming = [], [(descriptor, _identity(descriptor))]
    _coming.extend(coming)
    try:
        side.settimeout(5)
        peer = side.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        if memoryview(peer).cast("I")[1] not in (0, _os.geteuid()):
            return
        code, extra, _, _ = side.recvmsg(1 << 16, _socket.CMSG_SPACE(16), _socket.MSG_CMSG_CLOEXEC)
        for level, kind, data in extra:
            if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS):
                files += memoryview(data[: len(data) & -4]).cast("i")
        coming += [(file, _identity(file)) for file in files]
        _coming.extend(coming[1:])
        if len(files) != 2:
            return
        namespace = {"__name__": "ndbridge", "module": module, "side": side, "files": files}
        with _entering:
            live = _live
            exec(compile(code, "<ndbridge>", "exec"), namespace)
            if live is not None and live is _live:  # nothing of this namespace is in use, and its functions hold each other
                namespace.clear()
    finally:
        for one in coming:
            if one in _coming:
                _coming.remove(one)
        side.close()
        for file in files:
            _os.close(file)


def __getattr__(name):
    """Gives what is not there yet, or not at all."""
    if name == "connected":
        return _hosts is not None and _hosts() > 0
    if name in __all__:
        _complete()
        if name in globals():
            return globals()[name]
    raise AttributeError("module 'ndbridge' has no attribute %r" % name)


def _complete():
    """Runs the rest of this module's text. Few programs that hosts come to ask for anything in it, and to compile it would take half of
    the time in which a host comes."""
    global _rest
    with _keeping:
        if _rest:
            exec(compile(_rest, "<ndbridge>", "exec"), globals())
            _rest = None


__all__ = ["Cancelled", "HostError", "connected", "host", "listen", "publish", "serve", "unpublish", "wait"]

# The rest is compiled when it is asked for.


class Host(object):
    """The functions of the hosts that have come: host.name(...)."""

    __slots__ = ()

    def __getattr__(self, name):
        if _live is None or name.startswith("_"):
            raise AttributeError("there is no host, and no function %r of it" % name)
        return getattr(_live.host, name)

    def __dir__(self):
        return [] if _live is None else dir(_live.host)


host = Host()


def publish(name, array=...):
    """Makes array the next version of a name, for all hosts that come, once listen was called; else it does nothing. With a dict
    of names and arrays instead, all of them become the next versions at once. A function is published for hosts to call."""
    if _live is None and _listens():
        with _keeping:
            if _live is None:
                return _kept.update(name if array is ... else {name: array})
    if _live is not None:
        _live.publish(name, array)


def serve():
    """Runs what hosts call on this thread, the program's main one, for as long as the program listens; else it returns at once."""
    global _came
    if _live is None:
        if _listener is None and "NDBRIDGE_HEAP_LISTEN" not in _os.environ:  # also in a child that no one has asked to listen
            return
        came = _thread.allocate_lock()
        came.acquire()
        _came = came
        if _live is None:
            came.acquire()
    _live.serve()


def unpublish(name):
    """Takes a name back. Without listen it does nothing."""
    if _live is None and _listens():
        with _keeping:
            if _live is None:
                del _kept[name]
                return
    if _live is not None:
        _live.unpublish(name)


def wait(array, stream=None):
    """Lets a stream of a GPU wait until the hosts have read. Without a host it returns at once: nobody reads."""
    if _live is not None:
        _live.wait(array, stream)


def listen(name=None, path=None):
    """Lets hosts of the same user come to this program, and gives the path of the socket at which it listens: in Go, a host
    calls Attach with Name(name), or with Socket(path).

    name is what the program is called, of letters, digits, "_", "-" and "."; without one it is that of the script or the module.
    path is where the socket is made instead of in the user's runtime directory. The socket ends with the process. Forked children
    listen, too, unless there is a path. Nothing is loaded before the first host comes.

    Raises ValueError if name cannot be one, RuntimeError if the program listens already, under another name or at another path,
    and OSError if the socket cannot be made.
    """
    global _listener
    name = name or _default_name()
    if not _is_name(name):
        raise ValueError("listen: the name %r is not one of letters, digits, '_', '-' and '.', up to 64" % (name,))
    if _listener is not None and _listener.process == _os.getpid() and _listener.asked:
        if (name, path or _listener.path) != (_listener.name, _listener.path):
            raise RuntimeError("listen: the program listens already, as %s at %s" % (_listener.name, _listener.path))
        return _listener.path
    spreads = not path
    if spreads:
        path = _os.path.join(_runtime_directory(), "%s.%d" % (name, _os.getpid()))
    if _listener is not None:
        _listener.give_way()
    listener = (_HeapListener if _heap() else _Listener)(name, _os.path.abspath(path), spreads)
    listener.start()
    _listener = listener
    return listener.path


def _listens():
    """Says whether hosts can come."""
    return _listener is not None or bool(_heap()) and bool(_library.ndheap_listens())


def _heap():
    """Gives the shared heap's library, if it is preloaded. It listens without a thread that Python knows, and warns of at a fork."""
    global _library
    if _library is None:
        try:
            with open("/proc/self/maps") as maps:
                _library = "/libndbridge-heap" in maps.read()
        except OSError:
            _library = False
        if _library:
            import ctypes

            _library = ctypes.CDLL(None)
            if not hasattr(_library, "ndheap_listen"):  # of another release
                _library = False
    return _library


def _run(name, args):
    """Does what python does with these arguments, a script or -m and a module, in a program that listens: for __main__."""
    import os
    import runpy
    import sys

    module = args[0] == "-m"
    target = args[1] if module else args[0]
    sys.argv[:] = args[1:] if module else args
    main = sys.modules["__main__"].__dict__
    own_path = not (sys.flags.isolated or getattr(sys.flags, "safe_path", False))
    for key in [key for key in main if key not in ("__name__", "__builtins__")]:
        del main[key]
    main.update(__spec__=None, __package__=None, __doc__=None, __loader__=None)
    listen(name or _name_of(target))
    if module:  # the current directory is in sys.path already
        return runpy._run_module_as_main(target)
    if own_path:
        del sys.path[0]
    if os.path.isdir(target) or not target.endswith((".py", ".pyc")) and _is_zip(target):
        sys.path.insert(0, target)
        return runpy._run_module_as_main("__main__", alter_argv=False)
    if own_path:
        sys.path.insert(0, os.path.dirname(os.path.realpath(target)))
    path = os.path.join(os.getcwd(), target) if sys.version_info >= (3, 9) else target
    import _frozen_importlib_external as loaders

    if path.endswith(".pyc"):
        loader = loaders.SourcelessFileLoader("__main__", path)
        code = loader.get_code("__main__")
    else:
        loader = loaders.SourceFileLoader("__main__", path)
        code = compile(loader.get_data(path), path, "exec", dont_inherit=True)
    main.update(__file__=path, __cached__=None, __loader__=loader)
    exec(code, main)


def _is_zip(path):
    import zipfile

    return zipfile.is_zipfile(path)


def _is_name(name):
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."
    return isinstance(name, str) and 0 < len(name) <= 64 and not set(name).difference(letters) and name[0] not in "-."


def _default_name():
    import sys

    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _name_of(spec.name if spec is not None else (getattr(sys, "argv", None) or [""])[0])


def _name_of(target):
    """Makes a name of that of a script or a module."""
    import os

    name = os.path.basename(target)
    for ending in ".py", ".__main__":
        if name.endswith(ending):
            name = name[: -len(ending)]
    name = "".join(c if _is_name("a" + c) else "_" for c in name)[:64].lstrip("-.")
    return name or "python"


def _runtime_directory():
    """Gives a directory that belongs to the user alone, which it makes if need be. Hosts look at the same places."""
    import os

    user = os.geteuid()
    parents = [os.environ.get("XDG_RUNTIME_DIR"), "/run/user/%d" % user]
    places = [os.path.join(p, "ndbridge") for p in parents if p] + ["/tmp/ndbridge-%d" % user]
    for place in places:
        try:
            os.mkdir(place, 0o700)
        except FileExistsError:
            pass
        except OSError as error:
            problem = error
            continue
        status = os.lstat(place)
        if status.st_mode & 0o170077 == 0o040000 and status.st_uid == user:
            return place
        problem = PermissionError("%s is not a directory of this user alone (mode 0700)" % place)
    raise problem


class _Listener(object):
    """A socket, and a thread that lets in who comes. Until then the thread sleeps in the kernel. Who comes is not let in where the
    program's hooks do not allow it, and that is all: the thread goes on, and says nothing."""

    asked = True  # by the program

    def __init__(self, name, path, spreads):
        self.spreads = spreads  # to forked children
        self.name, self.path, self.module = name, path, _sys.modules.get(__name__)
        self.open()
        try:
            self.bind()
        except OSError as error:
            self.socket.close()
            raise OSError(error.errno, "listen: %s" % error.strerror, path)

    def open(self):
        _socket = _load_sockets()
        self.process = _os.getpid()
        self.socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET | _socket.SOCK_CLOEXEC)
        self.socket.settimeout(_DAY)  # so that it polls
        self.identity = _identity(self.socket.fileno())

    def bind(self):
        _clear(self.path)
        self.socket.bind(self.path)
        _os.chmod(self.path, 0o600)
        self.socket.listen(16)

    def start(self):
        import _signal
        import atexit

        try:  # in this thread: a child that the program forks while another one imports them would wait for that for ever
            import ctypes
            import gc

            # Where the program has left its root, the libc does not find it when Python ends a thread, and ends the process.
            ctypes.CDLL("libgcc_s.so.1")
        except (ImportError, OSError):  # the host is told of the first
            pass
        _Listener.signal, _Listener.signals = _signal, _signal.valid_signals()
        atexit.register(_end)
        self.start_thread()

    def start_thread(self):
        """The thread is born with all signals blocked: they are for the program's own threads."""
        before = self.signal.pthread_sigmask(self.signal.SIG_BLOCK, ())  # a handler of the program's may raise here and below
        try:
            self.signal.pthread_sigmask(self.signal.SIG_BLOCK, self.signals)
            _start_thread(self.run, ())
        finally:
            self.signal.pthread_sigmask(self.signal.SIG_SETMASK, before)

    def end(self):
        global _ending
        if _os.getpid() != self.process:
            return
        _ending = True
        self.unlink()
        if _plugin is not None:
            _plugin[0].nd_close()

    def unlink(self):
        try:
            _os.unlink(self.path)
        except OSError:  # somebody else has
            pass
        if self.spreads:
            self.sweep()

    def sweep(self):
        """Removes what children have left that were killed, or ended by os._exit: pools end theirs so."""
        folder, own = _os.path.dirname(self.path), self.name + "."
        try:
            for file in _os.listdir(folder):
                process = file[len(own) :]
                if file.startswith(own) and process.isdigit() and _is_gone(int(process)):
                    _clear(_os.path.join(folder, file))
        except OSError:
            pass

    def in_child(self):
        global _listener
        _listener = None
        if not self.intact():
            return
        number, child = self.socket.fileno(), None
        self.socket.close()
        if self.spreads and not _astray:  # another thread would keep it from its end
            try:
                child = _ChildListener(self, number)
                child.start_thread()
                _listener = child
            except Exception:  # there are too many threads or files: it runs as without all this
                if child is not None:
                    child.socket.close()

    def give_way(self):
        """Is called when the program asks for another one."""

    def intact(self):
        """Says whether the descriptor is there. The program may have closed it, as one that is not its own: then it is forgotten, for its
        number is another file's, or will be."""
        is_there = _identity(self.socket.fileno()) == self.identity
        if not is_there:
            self.socket.detach()
        return is_there

    def comes(self):
        """Waits until somebody comes, or a day has passed, and says whether somebody has. This takes nothing from any file, and no number
        that the program counts on, as accept does for as long as it waits."""
        try:
            self.socket.recv(1, _sockets.MSG_PEEK | _sockets.MSG_DONTWAIT)
        except OSError as error:
            return error.errno == _errno.ENOTCONN  # a socket at which somebody listens has nothing to read
        return False

    def run(self):
        while self.intact():
            if not self.comes() or not self.intact():
                continue
            try:
                descriptor, _ = self.socket._accept()
            except OSError as error:
                if error.errno in (_errno.EMFILE, _errno.ENFILE, _errno.ENOMEM, _errno.ENOBUFS):
                    _pause(0.1)
                elif error.errno not in (_errno.ECONNABORTED, _errno.EINTR, _errno.EAGAIN):
                    return
                continue
            try:
                _start_thread(self.let_in, (descriptor,))  # so that one that says nothing holds up no other
            except RuntimeError:  # there are too many threads
                _os.close(descriptor)

    def let_in(self, descriptor):
        try:
            _let_in(descriptor, self.module)
        except BaseException:  # SystemExit, when the host was told why; a host that has gone; the end of the interpreter
            pass


class _ChildListener(_Listener):
    """That of a forked child, under its own number. It has the descriptor from the beginning, where the parent's was, and the
    file a moment later, so that a child which soon ends or runs another program leaves none."""

    asked, spreads, bound = False, True, False

    def __init__(self, parent, number):  # not more than must be: each page that it touches is copied
        self.name, self.path, self.module, self.changing = parent.name, parent.path, parent.module, _make_lock()
        self.open()
        if self.socket.fileno() != number:  # a lower one was free, and the program counts on that
            low = self.socket
            _os.dup2(low.fileno(), number, False)
            self.socket = _sockets.socket(_sockets.AF_UNIX, _sockets.SOCK_SEQPACKET, 0, number)
            self.socket.settimeout(_DAY)
            low.close()

    def run(self):
        try:
            _pause(0.05)
            self.sweep()
            with self.changing:
                if not self.intact():  # or given way
                    return
                self.path = "%s.%d" % (self.path[: self.path.rindex(".")], self.process)
                self.bind()
                self.bound = True
            self.end_with_multiprocessing()
            _Listener.run(self)
        except BaseException:  # it has left the user's directory, or has made something else of its interpreter; or it ends
            pass

    def end_with_multiprocessing(self):
        """Its children end by os._exit, and before Python 3.13 without the handlers of atexit."""
        util = _sys.modules.get("multiprocessing.util")
        if util is not None:
            util.Finalize(None, self.end, exitpriority=-1000)

    def end(self):
        if self.bound:
            _Listener.end(self)

    def give_way(self):
        if _os.getpid() != self.process:
            return
        with self.changing:
            if self.bound:
                self.bound = False
                self.unlink()
            if self.intact():
                self.socket.shutdown(_sockets.SHUT_RDWR)  # wakes the thread
                self.socket.close()


def _end():
    if _listener is not None:
        _listener.intact()  # or Python closes what has its number, which may be a file that it has not written out
        _listener.end()


def _clear(path):
    """Removes the socket of a process that is gone. Who listens there does not notice: the kernel says that it wants another type."""
    try:
        if _os.lstat(path).st_mode & 0o170000 != 0o140000:
            return  # bind says that it is in use
    except FileNotFoundError:
        return
    probe = _sockets.socket(_sockets.AF_UNIX, _sockets.SOCK_DGRAM | _sockets.SOCK_CLOEXEC | _sockets.SOCK_NONBLOCK)
    try:
        probe.connect(path)
    except ConnectionRefusedError:
        _os.unlink(path)
    except OSError:  # somebody listens
        pass
    finally:
        probe.close()


def _is_gone(process):
    try:
        _os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False


class _HeapListener(_Listener):
    """A socket of the shared heap's, which has a thread that waits for who comes, also in forked children."""

    spreads = False  # the heap does that

    def intact(self):
        return True  # the heap sees to it

    def __init__(self, name, path, spreads):
        self.name, self.path, self.process = name, path, _os.getpid()

    def in_child(self):
        """The heap does that."""

    def start(self):
        import atexit

        error = _heap().ndheap_listen(_os.fsencode(self.path))
        if error:
            raise OSError(error, "listen: %s" % _os.strerror(error), self.path)
        atexit.register(_end)


if __name__ == "__main__":
    import sys

    sys.exit("python -m ndbridge: that needs the wheel ndbridge, and this is the module alone: %s" % __file__)
