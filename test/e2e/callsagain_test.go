package e2e

import (
	"context"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestCallsRefuseWhatViewsDoNotShow: a view arrives as the object that it shows, and not as another one that has its name now; what
// cannot arrive is an error that says which argument it is.
func TestCallsRefuseWhatViewsDoNotShow(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import numpy as np, remote
large, small = np.zeros(1 << 18), np.zeros(4)
def first(*x, **kw): return float(x[0][0])
remote.serve()
`, harness.Options{})
	first := fn(t, run, "first")
	for _, name := range []string{"large", "small"} {
		v := run.View(t, name)
		run.Remote.Exec(t, name+"[0] = 1")
		if got := value(t, first, v); got != 1.0 {
			t.Errorf("%s arrived with %v", name, got)
		}
		run.Remote.Exec(t, "kept = "+name+"; "+name+" = np.full_like("+name+", 2)")
		fails(t, first, core.ErrUnsupported, "arguments[0]: "+name+" leads to another array now", v)
		fails(t, first, core.ErrUnsupported, `arguments["k"]: `+name+" leads to another array now", 1, hostplugin.Kw{"k": v})
		if got := value(t, first, run.View(t, name)); got != 2.0 {
			t.Errorf("%s arrived anew with %v", name, got)
		}
		v.Close()
		fails(t, first, core.ErrClosed, "arguments[1][2]", 1, []any{0, 0, v})
	}
}

// TestHandlersReturnTheirArguments: the program gets an array over the same memory.
func TestHandlersReturnTheirArguments(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import numpy as np, ndbridge, remote
def there_and_back(n):
    a = np.arange(float(n))
    b, = ndbridge.host.wrap(a)
    a[1] = 7
    return [float(b[1]), float(b[-1]), len(b)]
remote.serve()
`, harness.Options{})
	if err := run.Handle("wrap", func(_ context.Context, args hostplugin.Args) (any, error) {
		var v *core.View
		err := args.Decode(&v)
		return []any{v}, err
	}); err != nil {
		t.Fatal(err)
	}
	const n = 1 << 18
	got, _ := value(t, fn(t, run, "there_and_back"), n).([]any)
	if len(got) != 3 || got[0] != 7.0 || got[1] != float64(n-1) || got[2] != int64(n) {
		t.Errorf("the array came back as %v", got)
	}
}

// TestSessionsEndBatchesThatWait: when the session is closed, a batch does not wait for more rows.
func TestSessionsEndBatchesThatWait(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, batchModel, harness.Options{})
	b := batch(t, fn(t, run, "look"), hostplugin.BatchOptions{Wait: long})
	waiting, release := stuck(t.Context(), b, 5, nil)
	release()
	if err := run.Close(); err != nil {
		t.Error(err)
	}
	waiting.fails(t, core.ErrClosed, "look")
}
