package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestLateRefresh: a look that the program gets to only when its caller has gone, and its view is closed, copies into
// nothing that has become another view's memory.
func TestLateRefresh(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, publishing+`
a, b = np.full(100, 1.0), np.full(100, 2.0)
stop = False
nap = ctypes.PyDLL(None).usleep  # keeps Python's lock
remote.start()
while not stop:
    nap(300000)
    import time; time.sleep(0.02)
remote.serve()
`, harness.Options{})
	ofA, ofB := source(t, run, "a"), source(t, run, "b")
	late := 0
	for range 8 {
		first := viewOf(t, ofA)
		time.Sleep(30 * time.Millisecond) // until the program has its lock again
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		first, _, err := ofA.Refresh(ctx, first)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			late++
		}
		closed(t, first)
		time.Sleep(30 * time.Millisecond) // until the lease is given back, by gRPC
		second := viewOf(t, ofB)
		for range 10 {
			if x, err := core.At[float64](second, 0); err != nil || x != 2 {
				t.Fatalf("the view of b shows %v, %v; want 2", x, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		closed(t, second)
	}
	if late == 0 {
		t.Error("no look was late")
	}
	run.Remote.Exec(t, "stop = True")
	run.NoLeases(t)
}
