package engine_test

import (
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// eachPython runs a test under all Pythons.
func eachPython(t *testing.T, f func(t *testing.T, python string)) {
	t.Helper()
	for _, python := range programtest.Pythons(t) {
		t.Run(programtest.Environment(python), func(t *testing.T) {
			t.Parallel()
			f(t, python)
		})
	}
}

// triggers has an object of which any attribute that is asked for sets the event of that name.
const triggers = `
import collections, gc, sys, threading, time, weakref
import numpy as np

class Events(dict):
    def __missing__(self, name): return self.setdefault(name, threading.Event()) # one for all threads
events = Events()
class Trigger:
    def __getattr__(self, name):
        events[name].set()
        raise AttributeError(name)
trigger = Trigger()
def number(x, n=4):
    return np.full(n, float(x))
def said(text):
    print(text, flush=True)
`

// trigger sets an event of the program's.
func trigger(t *testing.T, p *programtest.Program, name string) {
	t.Helper()
	_, err := p.Lease(t.Context(), "trigger."+name, contract.Request{NoWait: true})
	wants(t, name, err, core.ErrNotFound)
}

const localsScript = triggers + `
import functools
ready = threading.Semaphore(0)
def stop():
    ready.release()
    events["end"].wait()

def plain(argument, *args, keyword=None, **kw):
    local, deleted = number(2), number(99)
    del deleted
    stop()
    never = 1
def recursive(depth):
    value = number(depth)
    stop() if depth == 0 else recursive(depth - 1)
def outer(captured_argument):
    captured, later = number(21), None
    def inner():
        own = captured + captured_argument
        stop()
        return
        later
    del later
    inner()
def wraps(f):
    @functools.wraps(f)
    def wrapper(*args):
        return f(*args)
    return wrapper
class Trainer:
    def fit(self):
        batch = {"x": number(31)}
        stop()
    @staticmethod
    def static():
        x = number(32)
        stop()
    @classmethod
    def made(cls):
        x = number(33)
        stop()
    @property
    def prop(self):
        x = number(34)
        stop()
    @wraps
    def wrapped(self):
        x = number(35)
        stop()
    class Inner:
        def fit(self):
            batch = {"x": number(36)}
            stop()
class Other:
    def fit(self):
        batch = {"x": number(41)}
        stop()
def generator():
    yielded = number(51)
    yield
    stop()
def run_generator():
    g = generator()
    next(g), next(g, None)
async def coroutine():
    awaited = number(52)
    stop()
def run_coroutine():
    try:
        coroutine().send(None)
    except StopIteration:
        pass
def with_lambda():
    (lambda given: stop())(number(53))
def comprehension():
    return [stop() for item in [number(54)]]
def body():
    class Body:
        attribute = number(55)
        stop()
def on_two(x):
    y = x
    stop()

calls = [
    ("plain", lambda: plain(number(1), number(3), keyword=number(4), other=number(5))),
    ("recursive", lambda: recursive(3)), ("outer", lambda: outer(number(22))), ("fit", Trainer().fit),
    ("static", Trainer.static), ("made", Trainer.made), ("prop", lambda: Trainer().prop), ("wrapped", Trainer().wrapped),
    ("inner fit", Trainer.Inner().fit), ("other fit", Other().fit), ("generator", run_generator),
    ("coroutine", run_coroutine), ("lambda", with_lambda), ("comprehension", comprehension),
    ("body", body), ("first", lambda: on_two(number(61))), ("the \"second\"", lambda: on_two(number(62))),
]
def main():
    mine = number(71)
    for name, call in calls:
        threading.Thread(target=call, name=name, daemon=True).start()
        ready.acquire()
    said("ready")
    events["end"].wait()
    said("ended")
main()
`

func TestLocals(t *testing.T) {
	t.Parallel()
	eachPython(t, func(t *testing.T, python string) {
		p := programtest.Start(t, localsScript, programtest.Options{Python: python})
		p.Said(t, "ready")
		for name, want := range map[string]float64{
			"plain().argument": 1, "plain().local": 2, "plain().args[0]": 3, "plain().keyword": 4, "plain().kw['other']": 5,
			"__main__.plain().local": 2, "__main__:plain().local": 2,
			"recursive().value": 0, "outer().captured": 21, "outer().captured_argument": 22,
			"outer.<locals>.inner().own": 43, "inner().captured": 21, "outer.inner().captured_argument": 22,
			"Trainer.fit().batch['x']": 31,
			"static().x":               32, "Trainer.static().x": 32, "Trainer.made().x": 33, "Trainer.prop().x": 34, "Trainer.wrapped().x": 35,
			"Trainer.Inner.fit().batch['x']": 36, "Other.fit().batch['x']": 41, "fit(thread='other fit').batch['x']": 41,
			"generator().yielded": 51, "coroutine().awaited": 52, "<lambda>(thread='lambda').given": 53,
			"Body().attribute": 55, "on_two().x": 61, `on_two(thread='the "second"').y`: 62, "main().mine": 71, "main(thread='MainThread').mine": 71,
		} {
			if got := first(t, p, name); got != want {
				t.Errorf("%s begins with %v, want %v", name, got, want)
			}
		}
		_, err1 := p.View(t, "comprehension().item", contract.Request{NoWait: true}) // from Python 3.12 on
		_, err2 := p.View(t, "<listcomp>().item", contract.Request{NoWait: true})
		if (err1 == nil) == (err2 == nil) {
			t.Errorf("what a comprehension has: %v, %v", err1, err2)
		}
		for name, texts := range map[string][]string{
			"plain().deleted":            {"plain() is running, and its variable deleted has no value now"},
			"plain().never":              {"has no value now"},
			"plain().locla":              {"plain() is running, and has no local variable locla", `did you mean "local"?`},
			"outer.inner().later":        {"has no value now"},
			"plian().local":              {"plian() is not running", `did you mean "plain"?`},
			"plain(thread='fit').local":  {`plain(thread="fit") is not running`},
			"plain(thread='plane').x":    {`the program has no thread "plane"`, `did you mean "plain"?`},
			"Other.plain().local":        {"Other.plain() is not running"},
			"Fit.fit().batch":            {"is not running"},
			"other:plain().local":        {"is not running"},
			"__main__:fit().batch":       {"is not running"},
			"<module>().main":            {"is not running"},
			"Body().missing":             {"Body() is running, and has no local variable missing"},
			"Trainer.fit().batch['y']":   {`Trainer.fit().batch has no key ["y"]`},
			"plain().local.missing":      {"plain().local, which is numpy.ndarray, has no attribute missing"},
			"stop().x":                   {"has no local variable x"},
			"run_generator().g.gi_x":     {"has no attribute gi_x"},
			"main(thread='lambda').mine": {"is not running"},
		} {
			_, err := p.View(t, name, contract.Request{NoWait: true})
			wants(t, name, err, core.ErrNotFound, texts...)
			if e, ok := errors.AsType[*core.Error](err); ok && e.Object != name {
				t.Errorf("the error for %s names %q", name, e.Object)
			}
		}
		trigger(t, p, "end")
		p.Finish(t)
		_, err := p.View(t, "main().mine", contract.Request{})
		wants(t, "after the end", err, core.ErrNotFound, "main() is not running")
	})
}

func TestLocalsAreNotPublished(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, `
import numpy as np, ndbridge
def main():
    try:
        ndbridge.publish("main().x", np.zeros(3))
    except ValueError as e:
        print(e)
main()
`, programtest.Options{})
	p.Said(t, "publish under a name without brackets of a call")
	p.Finish(t)
}
