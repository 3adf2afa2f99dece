# Has the plugin serve a host: attach.py compiles this once the plugin is loaded.


def load_copy(library):
    """Loads a copy of the plugin, which the loader takes for another library: in a forked child, where Go does not run in that of the
    parent."""
    copy = os.memfd_create("ndbridge")
    try:
        size, at = os.fstat(library).st_size, 0
        while at < size:
            at += os.sendfile(copy, library, at, size - at)
        return load("/proc/%d/fd/%d" % (os.getpid(), copy), check_room)
    finally:
        os.close(copy)


def make_live():
    """Stands for what make_module makes, and makes it when it is first used: few programs do."""

    class Live(object):
        def __getattr__(self, name):
            exec(compile(MODULE, "<ndbridge>", "exec"), globals())
            self.__dict__.update(vars(make_module(module._plugin[1], "")))
            return getattr(self, name)

    return Live()


def enter(library, stream):
    if module._plugin[1].nd_forked():
        module._plugin = load_copy(library)
    with_gil = module._plugin[1]
    send("loaded")
    if module._ending:  # nobody might call nd_close any more
        give_up("unavailable", "the program is ending", "start it again")
    # With the GIL: who lets go of that of a busy program has it again after 5 ms.
    if with_gil.nd_open(side.fileno()):
        return  # which has said why
    if module._live is None:
        module._go_live(make_live(), with_gil.nd_hosts)
    os.close(library)
    del files[:]
    with_gil.nd_attach(side.detach(), stream)
