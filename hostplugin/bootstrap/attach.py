# Lets a host into a program that runs: this follows shared.py.

# How many threads, descriptors and mappings the plugin makes, and some more. Go ends the process that has none left.
THREADS, DESCRIPTORS, MAPPINGS = 12, 16, 256

# How many addresses, and how much private memory of them, it takes besides its threads' stacks: when it is loaded, and for each further host.
# Go ends the process that has none left of these, too.
LOADED, FURTHER = (2 << 30, 128 << 20), (64 << 20, 32 << 20)


def transmit(message):
    side.send(message, 0x4000)  # MSG_NOSIGNAL: the host may be gone


def check_room(ctypes, libc, sizes=LOADED):
    """Gives up if the process may not have as much more as the plugin takes."""
    check_descriptors(libc)
    check_memory(ctypes, libc, *sizes)
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


def check_memory(ctypes, libc, addresses, private):
    """Asks the kernel for all of it at once, touches nothing, and gives it back."""
    page, stack, attributes = os.sysconf("SC_PAGESIZE"), ctypes.c_size_t(), ctypes.create_string_buffer(256)
    libc.pthread_attr_init(attributes)
    libc.pthread_attr_getstacksize(attributes, ctypes.byref(stack))
    addresses, private = addresses + THREADS * stack.value, private + THREADS * stack.value
    libc.mmap.restype = ctypes.c_void_p

    def there(size, rights, parts=0):
        # MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        at = libc.mmap(None, ctypes.c_size_t(size), rights, 0x4022, -1, ctypes.c_long(0))
        if at == ctypes.c_void_p(-1).value:
            return False
        failed = [n for n in range(parts) if libc.mprotect(ctypes.c_void_p(at + 2 * n * page), ctypes.c_size_t(page), 1)]
        libc.munmap(ctypes.c_void_p(at), ctypes.c_size_t(size))
        return not failed

    for enough, what, limit in (
        (there(addresses, 0), "%d MiB of addresses" % (addresses >> 20), "RLIMIT_AS, ulimit -v"),
        (there(private, 3), "%d MiB of private memory" % (private >> 20), "RLIMIT_DATA, ulimit -d"),
        (there(MAPPINGS * page, 0, MAPPINGS // 2), "%d mappings" % MAPPINGS, "vm.max_map_count"),
    ):
        if not enough:
            give_up("unavailable", "the program may not have %s more, and a host needs up to that" % what,
                    "raise its limit (%s)" % limit)


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

        # Once: each has a class of its own, which only a collection would end.
        libc = module._libc = module.__dict__.get("_libc") or ctypes.PyDLL(None)
        quietly(ctypes, libc, lambda: check_room(ctypes, libc, FURTHER))
    exec(compile(ENTER, "<ndbridge>", "exec"), globals())  # while Go begins, in a thread of its own
    enter(library, stream)
