"""Runs the steps of the model, and says after them what the program's arrays are.

The host drives it by JSON lines over a Unix socket whose path is the first argument. A step is an operation
and a seed: what it does follows from these and from the steps before, so the same steps do the same in every
process. Each step is a statement of Python, which is run in the program's own globals. Arguments:
SOCKET FRAMEWORKS. With no host around, the module ndbridge is a stub that just holds what is published.
"""

import gc
import json
import os
import random
import re
import socket
import sys
import types
import warnings

import helpers
import numpy_steps
import system_steps
from places import PUBLISHED, Places, memory, published_memory
from watches import Watches, forget_files


TRACE = "MODEL_TRACE" in os.environ  # say each statement before it is run, to find one that ends the process


def stub():
    """What ndbridge does to a program that runs by itself: it holds what is published."""
    held = {}
    module = types.ModuleType("ndbridge")

    def publish(name, o=None):
        arrays = name if isinstance(name, dict) else {name: o}
        if any(published_memory(o) is None for o in arrays.values()):
            raise TypeError
        held.update(arrays)

    def unpublish(name):
        if held.pop(name, None) is None:
            raise KeyError("nothing is published as " + json.dumps(name))

    module.publish, module.unpublish = publish, unpublish
    sys.modules["ndbridge"] = module


class Model:
    """The program, its steps, and what it says of itself."""

    def __init__(self, scope, frameworks):
        self.scope = scope
        scope.update(helpers.exported())
        helpers.model = self
        modules = [numpy_steps, system_steps]
        slots, derived = [], []
        for name in frameworks:
            if name != "numpy":
                modules.append(__import__(name + "_steps"))
                slots += modules[-1].SLOTS
                derived += modules[-1].DERIVED
                scope.update(modules[-1].exported())
        self.places = Places(scope, slots, derived)
        self.watches = Watches(self.places)
        self.steps = {f.__name__: f for m in modules for f in m.STEPS}
        self.weights = {name: f.weight for name, f in self.steps.items()}
        self.frameworks = frameworks
        self.modules = modules
        self.said = {}
        self.versions = {}  # of each name that is published: its version, and how often anything had been published by then
        self.highest = 0  # how often any name was published that was unpublished then, at most
        self.serial = 0
        self.alone = False  # no host looks at the views that are watched
        self.reset()
        gc.freeze()  # what was imported, so that collecting the rest is quick

    def reset(self):
        """Begin anew, with no array."""
        for name in list(self.places.published):
            helpers.unpublish(name)
        self.watches.clear()
        for path in self.places.paths:
            self.scope.pop(path, None)
        for m in self.modules:
            m.reset(self.scope)
        forget_files()
        gc.collect()
        self.said = {}

    def published(self, name, o):
        """Note what is published; None: nothing any more."""
        if o is None:
            del self.places.published[name]
            self.highest = max(self.highest, self.versions.pop(name)[0])
        else:
            self.serial += 1
            self.places.published[name] = o
            self.versions[name] = self.versions.get(name, (self.highest, 0))[0] + 1, self.serial
        self.watches.publish(name)

    def run(self, name, seed=None):
        """Run one step, or the statement of one; gives the statement and what came of it."""
        statement, writes = name, True
        if seed is not None:
            statement, writes = self.steps[name](random.Random(seed), self.places), self.steps[name].writes
            if statement is None:
                return None
        if TRACE:
            print(statement, file=sys.stderr, flush=True)
        try:
            exec(compile(statement, "<step>", "exec"), self.scope)
            if "jax" in sys.modules:  # which computes beside the program, from arrays that the next step may change
                for a in sys.modules["jax"].live_arrays():
                    a.block_until_ready()
            outcome = ""
        except Exception as e:
            outcome = "%s: %s" % (type(e).__name__, re.sub("0x[0-9a-f]+", "0x", str(e)))
        self.watches.refresh(writes and not self.alone)
        return [statement, outcome]

    def answer(self, request):
        for number, path, route in request.get("watch", ()):
            self.watches.add(number, path, route)
        self.alone = request["alone"]
        for number, offset, value in request.get("poke", ()):
            if self.alone and number in self.watches.all:
                self.watches.all[number].poke(offset, value)
        for number in request.get("drop", ()):
            self.watches.all.pop(number, None)
        self.watches.refresh(not self.alone)
        if request.get("reset"):
            self.reset()
        log = [self.run(*step) for step in request.get("steps", ())]
        watch = {} if self.alone else {n: w.say() for n, w in self.watches.all.items()}
        return {"log": log, "state": self.changes(), "watch": watch}

    def changes(self):
        """What is different from what was said before, by name."""
        changed = {}
        self.watches.refresh_published()
        for path in self.places.paths:
            if path in self.places.published:
                now = self.places.say(self.places.get(path), published_memory)
                now["then"] = self.watches.say_published(path)
                now["version"], now["serial"] = self.versions[path]
                now["rebound"] = self.watches.rebound[path]
                now["uncounted"] = path in self.watches.uncounted
            else:
                now = self.places.say(self.places.get(path), memory)
                whole = self.places.published_whole(path)
                if whole:  # a part of a version
                    now["version"], now["rebound"] = self.versions[whole][0], self.watches.rebound[whole]
                    now["uncounted"] = whole in self.watches.uncounted
                    if "is" in now and self.watches.renamed(whole):
                        now["is"][2] = "*"  # its fields have the names of then, or of now
                    if "is" in now and self.watches.was_writable(whole):
                        now["is"][4] = False  # that is of then, or of now
            if self.said.get(path) != now:
                self.said[path] = changed[path] = now
        return changed


def serve(model, path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        with connection.makefile("rw") as lines:
            hello = {"weights": model.weights, "paths": model.places.paths, "published": PUBLISHED, "derived": model.places.derived}
            lines.write(json.dumps(hello) + "\n")
            lines.flush()
            for line in lines:
                lines.write(json.dumps(model.answer(json.loads(line)), separators=(",", ":")) + "\n")
                lines.flush()


def main(scope):
    warnings.filterwarnings("ignore")
    warnings.simplefilter = lambda *a, **k: None  # frameworks switch some on again
    path, frameworks = sys.argv[1], sys.argv[2].split(",")
    try:
        import ndbridge  # noqa: F401
    except ImportError:
        stub()
    serve(Model(scope, frameworks), path)
