# Lets functions that a host calls fork, as multiprocessing does. In Python 3.9 to 3.11 a child that is forked on a thread which is none
# of threading's, as those are that run such functions, fails when it waits for its threads at its end, if threading has made an entry
# for the thread. Without the entry, the child's threading takes the thread for its main thread, which it is.
import os
import sys

import _thread


def before_fork():
    threading = sys.modules.get("threading")
    active, ident = getattr(threading, "_active", None), _thread.get_ident()
    if active and type(active.get(ident)) is threading._DummyThread:
        active.pop(ident, None)


module = sys.modules.get("ndbridge")
if (3, 9) <= sys.version_info < (3, 12) and module and not hasattr(module, "_before_fork"):
    module._before_fork = before_fork  # once in a process, whatever hosts come
    os.register_at_fork(before=before_fork)
