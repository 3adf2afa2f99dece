package e2e

import (
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestCallsLeaveArraysBehind: a program ends well whose objects still use the host's memory when the session is closed.
func TestCallsLeaveArraysBehind(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import atexit, remote
kept = []
def keep(x): kept.append(x)
@atexit.register
def last():
    kept[0][:] = 5
    kept.clear()
    print("ended well", flush=True)
remote.serve()
`, harness.Options{})
	v, err := run.New(core.Float64, 1000)
	if err != nil {
		t.Fatal(err)
	}
	m, _, release, err := v.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	call(t, fn(t, run, "keep"), v)
	if err := run.Close(); err != nil {
		t.Error(err)
	}
	if _, err := core.At[float64](v, 0); !errors.Is(err, core.ErrClosed) {
		t.Errorf("an array of a closed session: %v, want ErrClosed", err)
	}
	if status, signal, err := run.ExitStatus(t.Context()); err != nil || status != 0 || signal != 0 {
		t.Errorf("the program ended with status %d, signal %v, %v", status, signal, err)
	}
	if m.Bytes()[7] == 0 {
		t.Error("what the program wrote last did not come")
	}
}
