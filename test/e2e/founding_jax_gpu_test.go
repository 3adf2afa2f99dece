//go:build gpu

package e2e

import (
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestJAXStreamMinusOneAndUnversionedCapsuleOnGPU is TestJAXStreamMinusOneAndUnversionedCapsule where -1 is
// taken for a stream. The view is of an array that is still being computed.
func TestJAXStreamMinusOneAndUnversionedCapsuleOnGPU(t *testing.T) {
	t.Parallel()
	const script = raised + `
import os
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
import jax
import jax.numpy as jnp

x = jnp.arange(100000, dtype="float32")
work = jax.jit(lambda m: jax.lax.fori_loop(0, 300, lambda _, m: m @ m / 4096, m)[0, 0] + 1)
large = jnp.ones((4096, 4096))
work(large).block_until_ready()  # compiled


class Late:
    @property
    def now(self):
        return work(large) * jnp.ones(3)


late = Late()
`
	python := programtest.GPU(t)
	run := startTaken(t, python, "jax", script)
	if got := harness.Eval[string](t, run.Remote, "raised(lambda: x.__dlpack__(stream=-1))"); !strings.Contains(got, "CUDA_ERROR_INVALID_HANDLE") {
		t.Errorf("upstream: stream -1 raises %s", got)
	}
	if got := harness.Eval[string](t, run.Remote, "repr(x.__dlpack__(max_version=(1, 3)))"); !strings.Contains(got, `"dltensor"`) {
		t.Errorf("upstream: max_version (1, 3) gives %s", got)
	}
	v := run.View(t, "x")
	if x := numbers(t, v); !v.ReadOnly() || x[0] != 0 || x[99999] != 99999 {
		t.Errorf("x, read-only %v, is %v ... %v", v.ReadOnly(), x[0], x[99999])
	}
	if x := numbers(t, run.View(t, "late.now")); x[0] != 2 || x[2] != 2 {
		t.Errorf("the view of an array that is being computed shows %v, want 2", x)
	}
	bare := startTaken(t, python, "jax", script, "jax.stream-minus-one")
	if _, err := bare.Session.View(t.Context(), "x"); !errors.Is(err, core.ErrPython) ||
		!strings.Contains(err.Error(), "CUDA_ERROR_INVALID_HANDLE") {
		t.Errorf("with stream -1: %v", err)
	}
}
