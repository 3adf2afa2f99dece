package e2e

import (
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// follow is a program that gives a name to other arrays.
type follow struct {
	python      string
	setup, name string
	steps       []followed
}

// followed is one change, and what a look finds after it. The first element tells.
type followed struct {
	code    string
	changed bool
	value   float64
}

func follows(t *testing.T) map[string]follow {
	t.Helper()
	base, all, more := harness.Python(t), harness.PythonAll(t), harness.PythonMore(t)
	return map[string]follow{
		"numpy": {base, "import numpy as np\nx = np.full(1 << 17, 1.0)", "x", []followed{
			{"x[:] = 2", false, 2},
			{"x = np.full(1 << 17, 3.0)", true, 3},
			{"x = x[:1 << 16]", true, 3},
			{"y = x.copy(); x = y", true, 3},
			{"x = x.view('i8'); x[:] = 4; x = x.view('f8'); x[:] = 5", false, 5}, // another object on the same memory
			{"x = x.reshape(-1)", false, 5},
			{"x.flags.writeable = False", true, 5},
		}},
		"numpy attribute": {base, "import numpy as np\nclass C: pass\nmodel = C(); model.weight = np.full(1 << 17, 1.0)", "model.weight", []followed{
			{"model.weight += 1", false, 2},
			{"model.weight = np.full(1 << 17, 3.0)", true, 3},
			{"old = model; model = C(); model.weight = old.weight", false, 3},
			{"model = C(); model.weight = np.full(1 << 17, 4.0)", true, 4},
		}},
		"numpy item": {base, "import numpy as np\nstate = {'w': np.full(1 << 17, 1.0)}", `state["w"]`, []followed{
			{"state['w'][0] = 2", false, 2},
			{"state['v'] = 1", false, 2},
			{"state['w'] = np.full(1 << 17, 3.0)", true, 3},
		}},
		"torch": {all, "import torch\nmodel = torch.nn.Linear(512, 512)\nmodel.weight.data.fill_(1)", "model.weight", []followed{
			{"model.weight.data.fill_(2)", false, 2},
			{"model.weight.data = torch.full((512, 512), 3.0)", true, 3},
			{"model.weight = torch.nn.Parameter(torch.full((512, 512), 4.0))", true, 4},
			{"model.load_state_dict({'weight': torch.full((512, 512), 5.0), 'bias': torch.zeros(512)})", false, 5},
		}},
		"jax": {all, "import jax.numpy as jnp\nx = jnp.ones(1 << 18)", "x", []followed{
			{"y = x", false, 1},
			{"x = x + 1", true, 2},
			{"x = x.at[0].set(3)", true, 3},
			{"x = y", true, 1},
		}},
		"tensorflow": {more, "import tensorflow as tf\nx = tf.fill((1 << 18,), 1.0)", "x", []followed{
			{"pass", false, 1},
			{"x = x + 1", true, 2},
		}},
	}
}

// TestRefreshFollowsTheName: a look gives the same view as long as the name leads to the same memory, and leases
// nothing; else it gives another, and the lease of the one before ends with the views that were derived from it.
func TestRefreshFollowsTheName(t *testing.T) {
	t.Parallel()
	for name, f := range follows(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, f.setup+"\nimport remote\nremote.serve()\n", harness.Options{Python: f.python})
			harness.Eval[int](t, run.Remote, "1") // everything is there
			src := source(t, run, f.name)
			v := viewOf(t, src)
			if v.Copied() {
				t.Fatalf("%s is a copy: %v", f.name, v.Reason())
			}
			for _, step := range f.steps {
				v = step.look(t, run, src, v)
			}
			closed(t, v)
			run.NoLeases(t)
		})
	}
}

// look makes the change and looks at the name again.
func (f followed) look(t *testing.T, run *harness.Run, src *hostplugin.Source, v *core.View) *core.View {
	t.Helper()
	if !v.Live() {
		t.Errorf("before %q the view is not live", f.code)
	}
	whole, err := v.Sub(0, 0, v.Shape()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, whole)
	before := first(t, v)
	run.Remote.Exec(t, f.code)
	harness.Eventually(t, harness.StartBound, "Live says what became of it after "+f.code, func() bool { return v.Live() != f.changed })
	next, changed, err := src.Refresh(t.Context(), v)
	if err != nil || changed != f.changed || (next == v) == changed {
		t.Fatalf("after %q: Refresh = %v, %v; want changed %v", f.code, changed, err, f.changed)
	}
	if x := first(t, next); x != f.value || !next.Live() {
		t.Errorf("after %q: it shows %v, want %v; live: %v", f.code, x, f.value, next.Live())
	}
	leases := 1
	if changed {
		leases = 2
		if _, err := v.Bytes(); !errors.Is(err, core.ErrClosed) {
			t.Errorf("after %q: the view before says %v", f.code, err)
		}
		if x := first(t, whole); x != before && x != f.value {
			t.Errorf("after %q: what was derived from the view before shows %v", f.code, x)
		}
	}
	if n := run.Leases(t); n != leases {
		t.Errorf("after %q: %d leases stand, want %d", f.code, n, leases)
	}
	return next
}

// first gives the first element of a view of floating point numbers.
func first(t *testing.T, v *core.View) float64 {
	t.Helper()
	index := make([]int, v.Rank())
	if v.DType() == core.Float32 {
		x, err := core.At[float32](v, index...)
		if err != nil {
			t.Error(err)
		}
		return float64(x)
	}
	x, err := core.At[float64](v, index...)
	if err != nil {
		t.Error(err)
	}
	return x
}

// TestRefreshOfACopy: the values of now come into the same memory, so that derived views have them, too.
func TestRefreshOfACopy(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]follow{
		"numpy": {harness.Python(t), "import numpy as np\nx = np.full(16, 1.0)", "x", nil},
		"torch": {harness.PythonAll(t), "import torch\nx = torch.full((16,), 1.0)", "x", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, f.setup+"\nimport remote\nremote.serve()\n", harness.Options{Python: f.python})
			src := source(t, run, f.name)
			v := viewOf(t, src)
			if !v.Copied() || v.Live() {
				t.Fatalf("copied: %v, live: %v", v.Copied(), v.Live())
			}
			part, err := v.Sub(0, 0, 4)
			if err != nil {
				t.Fatal(err)
			}
			defer closed(t, part)
			for i := 2.0; i < 10; i++ {
				run.Remote.Exec(t, "x[:] = "+itoa(int(i)))
				if x := first(t, v); x != i-1 {
					t.Errorf("a copy shows %v before the look, want %v", x, i-1)
				}
				next, changed, err := src.Refresh(t.Context(), v)
				if err != nil || changed || next != v || first(t, v) != i || first(t, part) != i {
					t.Fatalf("Refresh = %v, %v; it shows %v, a part of it %v, want %v", changed, err, first(t, v), first(t, part), i)
				}
			}
			run.Remote.Exec(t, "x = x + 1")
			next, _, err := src.Refresh(t.Context(), v)
			if err != nil || first(t, next) != 10 {
				t.Errorf("of another array: %v, %v", first(t, next), err)
			}
			closed(t, next)
		})
	}
}

// TestRefreshSeesLazyNegatives: a tensor that stands for the negatives of what is in its memory is not what it was,
// though it is the same object with the same memory.
func TestRefreshSeesLazyNegatives(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, "import torch\nsmall, large = torch.ones(16), torch.ones(1 << 18)\nimport remote\nremote.serve()\n",
		harness.Options{Python: harness.PythonAll(t)})
	for _, name := range []string{"small", "large"} {
		src := source(t, run, name)
		v := viewOf(t, src)
		if _, changed, err := src.Refresh(t.Context(), v); changed || err != nil {
			t.Fatalf("%s: Refresh = %v, %v", name, changed, err)
		}
		run.Remote.Exec(t, name+".data = torch._neg_view("+name+".data)")
		if next, changed, err := src.Refresh(t.Context(), v); !errors.Is(err, core.ErrUnsupported) || changed || next != v {
			t.Errorf("%s: Refresh of negatives = %v, %v", name, changed, err)
		}
		run.Remote.Exec(t, name+".data = "+name+".data.resolve_neg()")
		next, _, err := src.Refresh(t.Context(), v)
		if err != nil || first(t, next) != -1 {
			t.Errorf("%s: Refresh of what they stand for: %v, %v", name, first(t, next), err)
		}
		closed(t, next)
	}
}
