package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestCallsAllocateLittle: a call uses again what the one before has used. What is left: the result (2), what watches
// a context that can end (5), and what keeps the memory of each array (3). Under the race detector, a sync.Pool loses things.
func TestCallsAllocateLittle(t *testing.T) {
	run := harness.Start(t, `
import remote
def nothing(*x, **kw): pass
def one(x): return 1
remote.serve()
`, harness.Options{Configs: []func(*hostplugin.Config){
		func(c *hostplugin.Config) { c.Programs[0].Handoff.Spin = 10 * time.Millisecond },
	}})
	x := array(t, run, core.Float32, 4, 4)
	forever := context.WithoutCancel(t.Context())
	for name, c := range map[string]struct {
		f    *hostplugin.Func
		ctx  context.Context //nolint:containedctx // a test's
		args []any
		most float64
	}{
		"nothing":                {fn(t, run, "nothing"), forever, nil, 4},
		"a number":               {fn(t, run, "one"), forever, []any{1}, 4},
		"an array":               {fn(t, run, "one"), forever, []any{x}, 9},
		"a keyword":              {fn(t, run, "one"), forever, []any{hostplugin.Kw{"x": x}}, 9},
		"two arrays":             {fn(t, run, "nothing"), forever, []any{x, x}, 14},
		"a context that can end": {fn(t, run, "one"), t.Context(), []any{1}, 10},
		"both":                   {fn(t, run, "one"), t.Context(), []any{x}, 14},
	} {
		var n float64
		harness.Eventually(t, harness.StartBound, "calls that allocate little: "+name, func() bool {
			n = testing.AllocsPerRun(200, func() {
				r, err := c.f.Call(c.ctx, c.args...)
				if err != nil {
					t.Fatal(err)
				}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
			})
			return n <= c.most
		})
		t.Logf("%s: %v allocations", name, n)
	}
}
