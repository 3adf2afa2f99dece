package e2e

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// together holds an array of each framework, alone and on each other's memory. JAX's arrays are
// immutable: put writes to their memory by address, as nobody should.
const together = `
import ctypes
import numpy as np, torch
import jax, jax.numpy as jnp
import remote

jax.config.update("jax_enable_x64", True)
numbers = np.arange(100000.0)
tensor = torch.arange(100000, dtype=torch.float64)
table = jnp.arange(100000.0)
batch = {"x": [numbers[::2], tensor.view(1000, 100).t()], "y": {"z": table}}
tensor_over_numbers = torch.from_numpy(numbers)
tensor_over_table = torch.from_dlpack(table)

def put(i, value):
    numbers[i] = tensor[i] = value
    ctypes.c_double.from_address(table.unsafe_buffer_pointer() + 8 * i).value = value

remote.serve()
`

// TestFrameworksTogether serves numpy, torch and jax to one host in one session, without a copy.
func TestFrameworksTogether(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, together, harness.Options{Python: harness.PythonAll(t)})
	views := map[string]*core.View{}
	for name, framework := range map[string]string{
		"numbers": "numpy", "tensor": "torch", "table": "jax",
		`batch["x"][0]`: "numpy", `batch["x"][1]`: "torch", `batch["y"]["z"]`: "jax",
		"tensor_over_numbers": "torch", "tensor_over_table": "torch",
	} {
		view := run.View(t, name, hostplugin.NoCopy())
		if view.Framework() != framework || view.Route() != contract.RouteSharedHeap {
			t.Errorf("%s is of %s, by %v", name, view.Framework(), view.Route())
		}
		views[name] = view
	}
	info, err := run.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, f := range info.Frameworks {
		versions[f.Name] = f.Version
	}
	for name, module := range map[string]string{"numpy": "np", "torch": "torch", "jax": "jax"} {
		if want := harness.Eval[string](t, run.Remote, module+".__version__"); versions[name] != want {
			t.Errorf("%s is said to be of version %q and is %q", name, versions[name], want)
		}
	}

	run.Remote.Exec(t, "put(0, 7.5); put(99999, -7.5)")
	for name, view := range views {
		if got, err := atZero(view); err != nil || got != 7.5 {
			t.Errorf("Python wrote 7.5, the host sees %v in %s (%v)", got, name, err)
		}
	}
	for i, name := range []string{"numbers", "tensor"} {
		view := run.View(t, name, hostplugin.Writable())
		if err := core.Set(view, float64(-i-1), 42); err != nil {
			t.Fatal(err)
		}
		if got := harness.Eval[float64](t, run.Remote, "float("+name+"[42])"); got != float64(-i-1) {
			t.Errorf("the host wrote %v, %s holds %v", -i-1, name, got)
		}
	}
	if _, err := run.Session.View(t.Context(), "table", hostplugin.Writable()); !errors.Is(err, core.ErrReadOnly) {
		t.Errorf("a writable view of JAX's array: %v", err)
	}
	everyoneAtOnce(t, run)
	for _, view := range views {
		view.Close()
	}
}

// atZero gives the element with index [0, ..., 0].
func atZero(view *core.View) (float64, error) {
	return core.At[float64](view, make([]int, view.Rank())...)
}

// everyoneAtOnce views the arrays of all frameworks from several goroutines.
func everyoneAtOnce(t *testing.T, run *harness.Run) {
	t.Helper()
	var wait sync.WaitGroup
	failures := make(chan error, 12)
	for i := range 12 {
		name := []string{"numbers", "tensor", "table"}[i%3]
		wait.Go(func() {
			for range 40 {
				view, err := run.Session.View(t.Context(), name)
				if err == nil {
					var x float64
					if x, err = core.At[float64](view, 1234); err == nil && x != 1234 {
						err = fmt.Errorf("%s[1234] is %v", name, x)
					}
					view.Close()
				}
				if err != nil {
					failures <- err
					return
				}
			}
		})
	}
	wait.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
}

// TestTensorsCountTheirOwnReferences: a view holds the storage of a tensor over foreign memory, and not the tensor, whose
// references PyTorch counts before it swaps two.
func TestTensorsCountTheirOwnReferences(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import numpy as np, torch, remote
a = torch.from_numpy(np.full(1 << 17, 7.0))
b = torch.ones(3)
remote.serve()
`, harness.Options{Python: harness.PythonAll(t)})
	view := run.View(t, "a")
	if n := harness.Eval[int](t, run.Remote, "a._use_count()"); n != 1 {
		t.Errorf("a view adds %d references to a tensor", n-1)
	}
	run.Remote.Exec(t, "torch.utils.swap_tensors(a, b); del a, b; others = [np.full(1 << 17, 9.0) for _ in range(40)]")
	if data := slice[float64](t, view); slices.Min(data) != 7 || slices.Max(data) != 7 || view.Copied() {
		t.Errorf("the view shows %v to %v, want 7", slices.Min(data), slices.Max(data))
	}
}
