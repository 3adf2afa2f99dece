package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// raising has functions that raise exceptions with notes and with others behind them. PEP 678 is of Python 3.11; before, a program gives an
// exception notes as it gives it any attribute.
const raising = `
import threading
done = threading.Event()
def first():
    e = KeyError("first")
    e.__notes__ = ["one", "two"]
    raise e
def caused():
    try: first()
    except KeyError as e: raise ValueError("second") from e
def handled():
    try: caused()
    except ValueError: raise OSError("third")
def exhausted():
    try: raise MemoryError()
    except MemoryError: first()
def hidden():
    try: first()
    except KeyError: raise ValueError("second") from None
def grouped(): raise ExceptionGroup("some", [TypeError("a"), ExceptionGroup("more", [OSError("b")])])
def long():
    e = None
    for i in range(10000):
        next = ValueError(i)
        next.__cause__, e = e, next
    raise e
def circle():
    a, b = KeyError("a"), KeyError("b")
    a.__context__, b.__context__ = b, a
    raise a
class Hostile(Exception):
    __notes__ = __cause__ = __context__ = __dict__ = property(lambda self: 1 / 0)
    def __getattribute__(self, name): raise KeyError(name)
def hostile(): raise Hostile("h")
def noted():
    e = ValueError("n")
    e.__notes__ = [1, "x" * (1 << 22), None, "\udc80"] + ["note"] * 100000
    raise e
done.wait()
handled()
`

// outOfMemory is the example of docs/calling.md.
func outOfMemory(err error) bool {
	if e, ok := errors.AsType[*core.PythonError](err); ok {
		for each := range e.All() {
			if each.Type == "MemoryError" {
				return true
			}
		}
	}
	return false
}

// raisedBy calls a function that raises.
func raisedBy(t *testing.T, run *harness.Run, name string) *core.PythonError {
	t.Helper()
	_, err := fn(t, run, name).Call(t.Context())
	e, ok := errors.AsType[*core.PythonError](err)
	if !ok || !errors.Is(err, core.ErrPython) {
		t.Fatalf("%s: %v", name, err)
	}
	return e
}

// TestExceptionsBehind: an exception of a called function, and one that ends the script, arrives with its notes and with those behind it.
func TestExceptionsBehind(t *testing.T) {
	for _, python := range harness.Pythons(t) {
		if !strings.Contains(python, "-new/") {
			continue
		}
		run := harness.Start(t, raising, harness.Options{Python: python})
		whole := func(how string, e *core.PythonError) {
			t.Helper()
			var all []string
			for each := range e.All() {
				all = append(all, fmt.Sprintf("%v%v", each, each.Notes))
				if !strings.Contains(each.Traceback, each.Error()+"\n") || !strings.HasPrefix(each.Traceback, "Traceback") {
					t.Errorf("%s, %s: the traceback of %v:\n%s", python, how, each, each.Traceback)
				}
			}
			want := []string{"OSError: third[]", "ValueError: second[]", "KeyError: 'first'[one two]"}
			if !slices.Equal(all, want) || e.Context == nil || e.Context.Cause == nil {
				t.Errorf("%s, %s: %q", python, how, all)
			}
		}
		whole("a call", raisedBy(t, run, "handled"))
		if !outOfMemory(raisedBy(t, run, "exhausted")) || outOfMemory(raisedBy(t, run, "handled")) {
			t.Errorf("%s: no MemoryError is found, or one that is not there", python)
		}
		if e := raisedBy(t, run, "hidden"); e.Cause != nil || e.Context != nil {
			t.Errorf("%s: hidden: %+v", python, e)
		}
		if e := raisedBy(t, run, "circle"); e.Context == nil || e.Context.Context != nil {
			t.Errorf("%s: circle: %+v", python, e)
		}
		if e := raisedBy(t, run, "hostile"); e.Message != "h" || e.Notes != nil || e.Cause != nil || e.Context != nil {
			t.Errorf("%s: hostile: %+v", python, e)
		}
		if e := raisedBy(t, run, "noted"); len(e.Notes) < 50 || !strings.HasPrefix(e.Notes[0], "xxx") || len(e.Notes[0]) > 1<<15 || e.Notes[2] != "note" {
			t.Errorf("%s: noted: %d notes", python, len(e.Notes))
		}
		e, n := raisedBy(t, run, "long"), 0
		for range e.All() {
			n++
		}
		if e.Message != "9999" || e.Cause.Cause.Message != "9997" || n != 64 {
			t.Errorf("%s: of 10,000, %d", python, n)
		}
		if e := raisedBy(t, run, "grouped"); e.Type == "ExceptionGroup" {
			if len(e.Group) != 2 || e.Group[0].Error() != "TypeError: a" || len(e.Group[1].Group) != 1 || e.Group[1].Group[0].Error() != "OSError: b" {
				t.Errorf("%s: grouped: %+v", python, e)
			}
		} else if e.Type != "NameError" { // of Python 3.11
			t.Errorf("%s: grouped: %v", python, e)
		}
		value(t, fn(t, run, "done.set"))
		ctx, cancel := context.WithTimeout(t.Context(), harness.StartBound)
		err := run.Wait(ctx)
		cancel()
		if e, ok := errors.AsType[*core.PythonError](err); ok {
			whole("the script", e)
		} else {
			t.Errorf("%s: the script: %v", python, err)
		}
	}
}
