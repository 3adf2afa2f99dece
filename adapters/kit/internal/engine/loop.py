# Awaits what coroutine functions return: on the event loop that the program runs, or else on one of its own. It runs in a
# namespace of its own, when the first coroutine was returned.
import asyncio
import concurrent.futures
import threading

lock = threading.Lock()
own = None


def program_loop():
    """Gives the loop that runs the program's tasks, or None. Tasks know their loops; loops are known to their threads only."""
    tasks = getattr(asyncio.tasks, "_scheduled_tasks", None) or getattr(asyncio.tasks, "_all_tasks", ())
    for task in list(tasks):
        try:
            loop = task.get_loop() if hasattr(task, "get_loop") else task._loop
        except Exception:
            continue
        if loop is not own and loop.is_running():
            return loop
    return None


def serve(loop):
    """Runs a loop, also after a coroutine has raised what ends it; whoever awaits that coroutine gets the exception."""
    while not loop.is_closed():
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt):
            pass


def own_loop():
    global own
    with lock:
        if own is None or own.is_closed():
            own = asyncio.new_event_loop()
            threading.Thread(target=serve, args=(own,), name="ndbridge-loop", daemon=True).start()
        return own


class Awaited(concurrent.futures.Future):
    """What a task gives. It is over when the task is: a task may go on when it was cancelled."""

    def __init__(self, awaitable, loop):
        super().__init__()
        self.awaitable, self.loop, self.task = awaitable, loop, None
        loop.call_soon_threadsafe(self.start)

    def start(self):
        try:
            self.task = asyncio.ensure_future(self.awaitable, loop=self.loop)
        except BaseException as e:
            self.set_exception(e)
            return
        self.task.add_done_callback(self.done)

    def done(self, task):
        if self.cancelled():
            return
        try:
            self.set_result(task.result())
        except BaseException as e:
            self.set_exception(e)

    def cancel(self):
        try:
            if self.loop.is_running():
                self.loop.call_soon_threadsafe(self.stop)
                return
        except RuntimeError:  # it is closed
            pass
        super().cancel()  # nobody runs the task

    def stop(self):
        if self.task is not None:
            self.task.cancel()


def begin(awaitable):
    """Begins to await, and gives an Awaited."""
    return Awaited(awaitable, program_loop() or own_loop())
