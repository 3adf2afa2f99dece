# Lets a host into a program that runs: this follows shared.py.

# How many threads and descriptors the plugin makes, and some more. Go ends the process that has none left.
THREADS, DESCRIPTORS = 12, 16


def transmit(message):
    side.send(message, 0x4000)  # MSG_NOSIGNAL: the host may be gone


def check_room(ctypes, libc):
    """Gives up if the process may not have as many descriptors and threads more as the plugin makes."""
    check_descriptors(libc)
    check_threads(ctypes, libc)


def check_descriptors(libc):
    spare = [libc.dup(files[0])]
    while spare[-1] >= 0 and len(spare) < DESCRIPTORS:
        spare.append(libc.dup(files[0]))
    enough = spare[-1] >= 0
    for descriptor in spare:
        libc.close(descriptor)
    if not enough:
        give_up("unavailable", "the program has too few descriptors left for a host, which needs up to %d" % DESCRIPTORS,
                "raise its limit of open files (RLIMIT_NOFILE, ulimit -n)")


def check_threads(ctypes, libc):
    """Is called with all signals blocked."""
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


def attach(plugin):
    """Lets a host in that has come to this running program. Whoever has accepted it gives module, the program's module
    ndbridge; side, the side socket; and files, the descriptors of the plugin's file and of the connection."""
    try:
        let_in(plugin)
    except Exception as error:  # by what the program has made of its interpreter; the host may be gone
        give_up("unavailable", "%s: %s" % (type(error).__name__, error), "see whether the program has replaced parts of Python")


def let_in(plugin):
    check_interpreter()
    library, stream = files
    if module._plugin is None:  # a path may lead elsewhere for the program than for the host
        try:
            same = os.path.samestat(os.stat(plugin), os.fstat(library))
        except OSError:
            same = False
        module._plugin = load(plugin if same else "/proc/self/fd/%d" % library, check_room)
        import atexit

        atexit.register(lambda: module._plugin[0].nd_close())
    else:  # each host takes some of both
        import ctypes

        libc = ctypes.PyDLL(None)
        quietly(ctypes, libc, lambda: check_room(ctypes, libc))
    exec(compile(ENTER, "<ndbridge>", "exec"), globals())  # while Go begins, in a thread of its own
    enter(library, stream)
