package e2e

import (
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestJAXStreamMinusOneAndUnversionedCapsule: a consumer that orders work on its own passes -1 and asks
// for the capsule of DLPack 1. JAX refuses the one and ignores the other, so that who trusts what it
// asked for reads a NULL pointer, or writes to an immutable array.
//
// On a GPU, -1 reaches the CUDA runtime as if it were a stream's handle.
func TestJAXStreamMinusOneAndUnversionedCapsule(t *testing.T) {
	t.Parallel()
	const script = raised + `
import jax.numpy as jnp
x = jnp.arange(100000, dtype="float32")
`
	python := harness.PythonAll(t)
	run := startTaken(t, python, "jax", script)
	if got := harness.Eval[string](t, run.Remote, "raised(lambda: x.__dlpack__(stream=-1))"); !strings.Contains(got, "WaitUntilBufferReadyOnStream") {
		t.Errorf("upstream: stream -1 raises %s", got)
	}
	if got := harness.Eval[string](t, run.Remote, "repr(x.__dlpack__(max_version=(1, 3)))"); !strings.Contains(got, `"dltensor"`) {
		t.Errorf("upstream: max_version (1, 3) gives %s", got)
	}
	countsUp(t, run.View(t, "x", hostplugin.NoCopy()), true)

	bare := startTaken(t, python, "jax", script, "jax.stream-minus-one")
	if _, err := bare.Session.View(t.Context(), "x"); !errors.Is(err, core.ErrPython) ||
		!strings.Contains(err.Error(), "WaitUntilBufferReadyOnStream") {
		t.Errorf("with stream -1: %v", err)
	}
	trusting := startTaken(t, python, "jax", script, "jax.legacy-capsule-only")
	countsUp(t, trusting.View(t, "x", hostplugin.NoCopy()), false)
}

// TestNumPyAcceptsOnlyStreamNone: the level above wants -1, or a stream, of every producer; NumPy takes
// none. Nothing of this needs a GPU.
func TestNumPyAcceptsOnlyStreamNone(t *testing.T) {
	t.Parallel()
	const script = raised + `
import numpy as np
x = np.arange(100000, dtype="f4")
x.flags.writeable = False
`
	run := startTaken(t, harness.Python(t), "numpy", script)
	for _, stream := range []string{"-1", "1", "2", "140000000000"} {
		got := harness.Eval[string](t, run.Remote, "raised(lambda: x.__dlpack__(stream="+stream+", max_version=(1, 3)))")
		if !strings.HasSuffix(got, "NumPy only supports stream=None.") {
			t.Errorf("upstream: stream %s raises %s", stream, got)
		}
	}
	countsUp(t, run.View(t, "x", hostplugin.NoCopy()), true)

	bare := startTaken(t, harness.Python(t), "numpy", script, "numpy.stream-none-only")
	if _, err := bare.Session.View(t.Context(), "x"); !errors.Is(err, core.ErrPython) ||
		!strings.Contains(err.Error(), "NumPy only supports stream=None") {
		t.Errorf("with stream -1: %v", err)
	}
}

// countsUp holds that a view shares the program's numbers 0 to 99999.
func countsUp(t *testing.T, v *core.View, readOnly bool) {
	t.Helper()
	x, err := core.Slice[float32](v)
	if err != nil {
		t.Fatal(err)
	}
	if v.Route() != contract.RouteSharedHeap || v.ReadOnly() != readOnly || len(x) != 100000 {
		t.Fatalf("%v by %v, read-only %v", v.Layout(), v.Route(), v.ReadOnly())
	}
	for i := range x {
		if x[i] != float32(i) {
			t.Fatalf("element %d is %v", i, x[i])
		}
	}
}
