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
