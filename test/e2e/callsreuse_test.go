package e2e

import (
	"testing"

	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestCallsFindTheLastResultsMemory: the memory of a result that was closed is free when the next call begins, and has its
// pages: a function that returns a new array each time is as fast as one that only makes it.
func TestCallsFindTheLastResultsMemory(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import resource, numpy as np, remote
def faults(): return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
def make(x):
    before = faults()
    y = np.empty(8 << 20)
    y[:] = x
    return {"faults": faults() - before, "addr": y.ctypes.data, "y": y}
remote.serve()
`, harness.Options{})
	f := fn(t, run, "make", hostplugin.As("numpy"))
	const pages = 64 << 20 / 4096
	var first int64
	for i := range 10 {
		r, err := f.Call(t.Context(), float64(i))
		if err != nil {
			t.Fatal(err)
		}
		var out struct {
			Faults int64 `python:"faults"`
			Addr   int64 `python:"addr"`
		}
		if err := r.Decode(&out); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = out.Addr
		} else if out.Addr != first || out.Faults > pages/100 {
			t.Errorf("call %d made its result at %#x with %d page faults, want %#x, where the last one was", i, out.Addr, out.Faults, first)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCallsFindTheLastResultGone: what a closed result has held in Python is gone when the next function begins. It is not another
// thread that lets go of it sooner or later.
func TestCallsFindTheLastResultGone(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import weakref, numpy as np, remote
class Array:
    def __init__(self):
        self.memory = np.zeros(1 << 20)
    @property
    def __array_interface__(self):
        return self.memory.__array_interface__
last = lambda: None
def make():
    global last
    gone = last() is None
    array = Array()
    last = weakref.ref(array)
    return {"gone": gone, "array": array}
remote.serve()
`, harness.Options{})
	f := fn(t, run, "make")
	for i := range 200 {
		r, err := f.Call(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var out struct {
			Gone bool `python:"gone"`
		}
		if err := r.Decode(&out); err != nil {
			t.Fatal(err)
		}
		if !out.Gone {
			t.Fatalf("call %d has found the result of the one before, which was closed", i)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
