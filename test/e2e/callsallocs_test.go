package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestCallsAllocateNothing: a call uses again what the one before has used, whatever its context and its arguments are, and its result, too. Only
// an array of the program's that a result shows takes memory of its own.
func TestCallsAllocateNothing(t *testing.T) {
	run := harness.Start(t, `
import remote
def nothing(*x, **kw): pass
def one(x): return 1.5
def same(x): return x
remote.serve()
`, harness.Options{})
	x, y := array(t, run, core.Float32, 4, 4), array(t, run, core.Float32, 4, 4)
	nothing, one, same := fn(t, run, "nothing"), fn(t, run, "one"), fn(t, run, "same")
	later, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	kw, list := hostplugin.Kw{"y": 7, "x": x}, any([]any{1, "two", x})
	var number float64
	for name, c := range map[string]struct {
		call func(ctx context.Context) (hostplugin.Result, error)
		into any // what the result is read into; nil: it is not
	}{
		"nothing":       {call: func(ctx context.Context) (hostplugin.Result, error) { return nothing.Call(ctx) }},
		"a number":      {call: func(ctx context.Context) (hostplugin.Result, error) { return one.Call(ctx, 1) }, into: &number},
		"an array":      {call: func(ctx context.Context) (hostplugin.Result, error) { return one.Call(ctx, x) }, into: &number},
		"two arrays":    {call: func(ctx context.Context) (hostplugin.Result, error) { return nothing.Call(ctx, x, y) }},
		"a list":        {call: func(ctx context.Context) (hostplugin.Result, error) { return nothing.Call(ctx, list) }},
		"keywords":      {call: func(ctx context.Context) (hostplugin.Result, error) { return nothing.Call(ctx, x, kw) }},
		"an array back": {call: func(ctx context.Context) (hostplugin.Result, error) { return same.Call(ctx, x, hostplugin.Out(y)) }},
	} {
		for which, ctx := range map[string]context.Context{"endless": context.Background(), "cancellable": t.Context(), "timed": later} { //nolint:usetesting // one that cannot end
			once := func() {
				r, err := c.call(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if c.into != nil {
					if err := r.Decode(c.into); err != nil {
						t.Fatal(err)
					}
				}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
			}
			harness.Eventually(t, harness.StartBound, "calls without an allocation: "+name+", "+which, func() bool { // others allocate once in a while
				return testing.AllocsPerRun(100, once) == 0
			})
		}
	}
	if number != 1.5 {
		t.Errorf("one gave %v", number)
	}
}
