package e2e

import (
	"reflect"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestCallsWriteResults: a result is written into an array of the host's, whosever array it is, or nothing is.
func TestCallsWriteResults(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import numpy as np, torch, jax, jax.numpy as jnp, remote
table = np.arange(6, dtype=np.float32).reshape(2, 3)
def double(x): return x * 2
def turned(x): return (x * 2).T
def itself(x):
    x += 1
    return x
def tensor(x: torch.Tensor): return (x * 3).requires_grad_()
def traced(x: jax.Array): return jnp.asarray(x) * 4
def view(x): return memoryview(x * 5)
async def later(x): return x * 6
def turn(x): return x.T
def turn_tensor(x: torch.Tensor): return x.t()
def windows(x: torch.Tensor): return x.as_strided((3, 3), (1, 1))
def turn_traced(x: jax.Array): return x.T
def wide(x): return x.astype(np.float64)
def short(x): return x[:1] * 2
def tree(x): return {"a": x}
def nothing(x): x[...] = 9
def raises(x, by=1): raise ValueError(by)
def count(x): yield x
remote.serve()
`, harness.Options{Python: harness.PythonAll(t)})
	x, y := array(t, run, core.Float32, 2, 3), array(t, run, core.Float32, 2, 3)
	in, out := slice[float32](t, x), slice[float32](t, y)
	reset := func() {
		copy(in, []float32{1, 2, 3, 4, 5, 6})
		copy(out, []float32{-1, -1, -1, -1, -1, -1})
	}
	for name, by := range map[string]float32{"double": 2, "tensor": 3, "traced": 4, "view": 5, "later": 6} {
		reset()
		r := call(t, fn(t, run, name), x, hostplugin.Out(y))
		if v, err := r.Value(); v != nil || err != nil || r.Retained() != 0 {
			t.Errorf("%s returned %v, %v, and kept %d arrays", name, v, err, r.Retained())
		}
		if want := []float32{by, 2 * by, 3 * by, 4 * by, 5 * by, 6 * by}; !reflect.DeepEqual(out, want) {
			t.Errorf("%s wrote %v, want %v", name, out, want)
		}
	}
	reset()
	call(t, fn(t, run, "itself"), x, hostplugin.Out(x))
	if in[0] != 2 || in[5] != 7 {
		t.Errorf("a function that returns the array for its result leaves %v there", in)
	}
	square := array(t, run, core.Float32, 3, 3)
	for name, want := range map[string][]float32{
		"turn": {0, 3, 6, 1, 4, 7, 2, 5, 8}, "turn_tensor": {0, 3, 6, 1, 4, 7, 2, 5, 8}, "turn_traced": {0, 3, 6, 1, 4, 7, 2, 5, 8}, "windows": {0, 1, 2, 1, 2, 3, 2, 3, 4},
	} {
		copy(slice[float32](t, square), []float32{0, 1, 2, 3, 4, 5, 6, 7, 8})
		call(t, fn(t, run, name), square, hostplugin.Out(square))
		if got := slice[float32](t, square); !reflect.DeepEqual(got, want) {
			t.Errorf("%s, whose result lies in the array for it, wrote %v, want %v", name, got, want)
		}
	}
	reset()
	turned, err := y.Transpose()
	if err != nil {
		t.Fatal(err)
	}
	defer turned.Close()
	call(t, fn(t, run, "turned"), x, hostplugin.Out(turned))
	if want := []float32{2, 4, 6, 8, 10, 12}; !reflect.DeepEqual(out, want) {
		t.Errorf("through a transposed view it wrote %v, want %v", out, want)
	}
	reset()
	if r, err := fn(t, run, "double").Go(t.Context(), x, hostplugin.Out(y)).Wait(t.Context()); err != nil || out[5] != 12 || r.View() != nil {
		t.Errorf("without waiting it wrote %v, %v", out, err)
	}
	reset()
	writeRefused(t, run, x, y)
	if want := []float32{-1, -1, -1, -1, -1, -1}; !reflect.DeepEqual(out, want) {
		t.Errorf("calls that fail wrote %v", out)
	}
	run.NoLeases(t)
}

// writeRefused makes calls that write nothing.
func writeRefused(t *testing.T, run *harness.Run, x, y *core.View) {
	t.Helper()
	fails(t, fn(t, run, "wide"), core.ErrDType, "the result is float64, the array for it float32", x, hostplugin.Out(y))
	fails(t, fn(t, run, "short"), core.ErrLayout, "the result has the shape [1 3], the array for it [2 3]", x, hostplugin.Out(y))
	fails(t, fn(t, run, "tree"), core.ErrUnsupported, "returned dict", x, hostplugin.Out(y))
	fails(t, fn(t, run, "nothing"), core.ErrUnsupported, "returned NoneType", x, hostplugin.Out(y))
	fails(t, fn(t, run, "raises"), core.ErrPython, "ValueError: 2", x, hostplugin.Out(y), hostplugin.Kw{"by": 2})
	fails(t, fn(t, run, "double"), core.ErrReadOnly, "cannot be written to", x, hostplugin.Out(readOnly(t, y)))
	fails(t, fn(t, run, "double"), core.ErrConfig, "is nil", x, hostplugin.Out(nil))
	fails(t, fn(t, run, "double"), core.ErrConfig, "comes behind all others", hostplugin.Out(y), x)
	table := run.View(t, "table")
	defer table.Close()
	fails(t, fn(t, run, "double"), core.ErrReadOnly, "Session.New", x, hostplugin.Out(table))
	for r, err := range fn(t, run, "count").Stream(t.Context(), x, hostplugin.Out(y)) {
		if r != (hostplugin.Result{}) {
			t.Error("a stream with one array for all results")
		}
		wantCategory(t, err, core.ErrUnsupported)
	}
}

// readOnly gives a view of the same memory that is not writable, and is closed when the test ends.
func readOnly(t *testing.T, v *core.View) *core.View {
	t.Helper()
	fixed, err := v.AsReadOnly()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fixed.Close(); err != nil {
			t.Error(err)
		}
	})
	return fixed
}
