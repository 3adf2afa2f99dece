package e2e

import (
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestHeapSwitchedOffByALimit: a program that limits its data gets copies from then on, and is told why. A fork could
// not make private again what is shared.
func TestHeapSwitchedOffByALimit(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, "import numpy as np, resource\nshared = np.ones(1 << 17)\nimport remote\nremote.serve()\n",
		harness.Options{Python: harness.Python(t)})
	run.Remote.Exec(t, "resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, resource.RLIM_INFINITY)); late = np.ones(1 << 17)")
	for name, want := range map[string]core.Reason{"shared": contract.ReasonOutsideHeap, "late": contract.ReasonHeapOff} {
		v := viewOf(t, source(t, run, name))
		if v.Reason() != want {
			t.Errorf("%s: %v", name, v)
		}
		closed(t, v)
	}
	info, err := run.Info(t.Context())
	if err != nil || !strings.Contains(info.SharedHeap, "off: a limit on address space or data") {
		t.Errorf("%q, %v", info.SharedHeap, err)
	}
	run.NoLeases(t)
}

// TestCopiesAgainWithoutFiles: a program that may write no more files is neither ended by what is copied or published,
// nor does a view of a small array stay behind, whether it was copied before or not. What cannot be copied any more says so, and what to do.
func TestCopiesAgainWithoutFiles(t *testing.T) { startedAndAttached(t, copiesAgainWithoutFiles) }

func copiesAgainWithoutFiles(t *testing.T, attached bool) {
	run := harness.Start(t, "import numpy as np, ndbridge, resource, signal\nx, y = np.full(64, 1.0), np.ones(64)\nlarge = np.frombuffer(bytes(1 << 20), np.uint8)\nimport remote\nremote.serve()\n",
		harness.Options{Attached: attached})
	src := source(t, run, "x")
	v := viewOf(t, src)
	run.Remote.Exec(t, "signal.signal(signal.SIGXFSZ, signal.SIG_DFL); resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); x[:] = 2")
	v, changed, err := src.Refresh(t.Context(), v)
	if err != nil || changed {
		t.Fatalf("changed: %v, %v", changed, err)
	}
	if x, err := core.At[float64](v, 63); err != nil || x != 2 {
		t.Errorf("it shows %v (%v)", x, err)
	}
	other, err := source(t, run, "y").View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if x, err := core.At[float64](other, 63); err != nil || x != 1 {
		t.Errorf("another copy shows %v (%v)", x, err)
	}
	const remedy = "check the limits on memory, file size and open files"
	if _, err := source(t, run, "large").View(t.Context()); !errors.Is(err, core.ErrUnavailable) || !strings.HasSuffix(err.Error(), remedy) {
		t.Errorf("a large copy: %v", err)
	}
	run.Remote.Exec(t, "ndbridge.publish('number', 3)")
	closed(t, other)
	closed(t, v)
	run.NoLeases(t)
}
