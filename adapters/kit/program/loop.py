# Awaits what coroutine functions return: on the event loop that the program runs, or else on one of its own. It runs in a
# namespace of its own, when the first coroutine was returned.
import asyncio
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


async def result_of(awaitable):
    return await awaitable


def begin(awaitable):
    """Begins to await, and gives a concurrent.futures.Future."""
    coroutine = awaitable if asyncio.iscoroutine(awaitable) else result_of(awaitable)
    return asyncio.run_coroutine_threadsafe(coroutine, program_loop() or own_loop())
