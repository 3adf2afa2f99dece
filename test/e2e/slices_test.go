package e2e

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

const slicesScript = `
import random
import numpy as np
import remote

memory = np.arange(1 << 16, dtype="i4")

def number(n):
    return "" if random.random() < 0.3 else str(random.randint(-n - 3, n + 3) if random.random() < 0.9 else random.choice((-10**30, 10**30)))

def subscript(n):
    kind = random.random()
    if kind < 0.3:
        return str(random.randint(-n - (kind < 0.03), max(n - 1, 0) + (kind < 0.03)))
    if kind < 0.45:
        return "None"
    step = random.choice(("", "", ":", ":1", ":2", ":3", ":-1", ":-2", ":-5", ":" + str(10**20)))
    return number(n) + ":" + number(n) + step

def index(shape):
    used = random.randint(0, len(shape) + (random.random() < 0.05))
    parts = [subscript(shape[min(i, len(shape) - 1)] if shape else 1) for i in range(used)]
    if not parts or random.random() < 0.3:
        parts.insert(random.randint(0, len(parts)), "...")
    return "[" + ", ".join(parts) + random.choice(("", "", ",")) + "]"

def cases(seed, many):
    random.seed(seed)
    made = []
    for i in range(many):
        shape = [random.randint(0 if random.random() < 0.1 else 1, 6) for _ in range(random.randint(0, 4))]
        begin = random.randint(0, 1 << 15)
        a = memory[begin:begin + int(np.prod(shape))].reshape(shape)
        if random.random() < 0.3:
            a = a.T
        if a.ndim and random.random() < 0.3:
            a = a[::-1]
        globals()["a%d" % i] = a
        text = index(a.shape) + (index(()) if random.random() < 0.1 else "")
        try:
            part = eval("a" + text, {"a": a})
            made.append({"name": "a%d%s" % (i, text), "shape": list(np.shape(part)), "elements": np.ravel(part).tolist(), "error": ""})
        except IndexError as e:
            made.append({"name": "a%d%s" % (i, text), "shape": [], "elements": [], "error": str(e)})
    return made

remote.serve()
`

// TestSlicesAreNumPys compares parts of arrays, named by random indices, with what NumPy makes of the same index.
func TestSlicesAreNumPys(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, slicesScript, harness.Options{})
	type one struct {
		Name     string
		Shape    []int
		Elements []int32
		Error    string
	}
	failed := 0
	for _, c := range harness.Eval[[]one](t, run.Remote, "cases(20, 600)") {
		v, err := run.Session.View(t.Context(), c.Name, hostplugin.NoWait())
		if c.Error != "" {
			failed++
			if !errors.Is(err, core.ErrNotFound) && !errors.Is(err, core.ErrLayout) {
				t.Errorf("%s: %v, and NumPy says %s", c.Name, err, c.Error)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		elements := make([]int32, v.Len())
		if _, err := core.Copy(t.Context(), elements, v); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if !slices.Equal(v.Shape(), c.Shape) || !slices.Equal(elements, c.Elements) {
			t.Errorf("%s: %v %v, want %v %v", c.Name, v.Shape(), elements, c.Shape, c.Elements)
		}
		if v.Copied() {
			t.Errorf("%s is a copy: %s", c.Name, v.Reason())
		}
		closed(t, v)
	}
	if failed == 0 {
		t.Error("no index was outside of its array")
	}
	run.NoLeases(t)
}

// TestSlicesAreLive: a part of an array is the program's memory, for reading and for writing, and a look at it notices what
// a look at the whole array does.
func TestSlicesAreLive(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]struct{ python, text string }{
		"numpy": {harness.Python(t), "import numpy as np; new = lambda x: np.full((512, 512), x, 'f4')"},
		"torch": {harness.PythonAll(t), "import torch; new = lambda x: torch.full((512, 512), float(x))"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, setup.text+"\nx, d = new(1), {'x': [new(2)]}\nimport ndbridge, remote\nndbridge.publish('p', new(7))\nremote.serve()\n",
				harness.Options{Python: setup.python})
			harness.Eval[int](t, run.Remote, "1") // everything is there
			src := source(t, run, "x[::-2, 10:20]")
			v := viewOf(t, src)
			if v.Copied() || !slices.Equal(v.Shape(), []int{256, 10}) || v.Stride(0) != -2*512*4 {
				t.Fatalf("%v %v, copied: %v", v.Shape(), v.Strides(), v.Reason())
			}
			for _, step := range []followed{
				{"x[511, 10] = 2", false, 2},
				{"x[0, 0] = 9", false, 2},
				{"x = new(3)", true, 3},
				{"x[511, 10] = 4", false, 4},
				{"x = x.T", true, 3},
			} {
				v = step.look(t, run, src, v)
			}
			closed(t, v)
			w := run.View(t, `d["x"][0][5, ..., ::100]`, hostplugin.Writable())
			if _, err := core.Put(t.Context(), w, []float32{8, 8, 8, 8, 8, 8}); err != nil {
				t.Fatal(err)
			}
			if got := harness.Eval[float64](t, run.Remote, "float(d['x'][0][5].sum() + d['x'][0][6].sum())"); got != 6*8+506*2+512*2 {
				t.Errorf("the program sees %v of what was written", got)
			}
			closed(t, w)
			if p := run.View(t, "p[1:, 0]"); p.Version() != 1 || first(t, p) != 7 {
				t.Errorf("the part of what was published is of version %d, and begins with %v", p.Version(), first(t, p))
			} else {
				closed(t, p)
			}
			run.NoLeases(t)
		})
	}
}

// TestSlicesOfValues: what is no array is cut by Python.
func TestSlicesOfValues(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import numpy as np, remote
losses, pairs, x = [1, 2, 3, 4], {(1, 2): 5}, np.arange(5)
ring = bytearray(range(200))
def total(a): return int(a.sum())
remote.serve()
`, harness.Options{})
	for name, want := range map[string]any{"losses[-2:]": []any{int64(3), int64(4)}, "losses[::-2][0]": int64(4), "pairs[1, 2]": int64(5), "x[3]": int64(3)} {
		r, err := run.Value(t.Context(), name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := r.Value(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %v, %v; want %v", name, got, err, want)
		}
		r.Close()
	}
	if err := run.Set(t.Context(), "x[1:3]", 9); err != nil || harness.Eval[int](t, run.Remote, "int(x.sum())") != 25 {
		t.Errorf("a part was not set: %v", err)
	}
	if x, err := core.At[uint8](run.View(t, "ring[10::50]"), 3); err != nil || x != 160 {
		t.Errorf("the part of a bytearray has %d, %v", x, err)
	}
	total, err := run.Func(t.Context(), "total")
	if err != nil {
		t.Fatal(err)
	}
	defer total.Close()
	var sum int
	if result, err := total.Call(t.Context(), run.View(t, "x[::2]")); err != nil {
		t.Error(err)
	} else if err := result.Decode(&sum); err != nil || sum != 0+9+4 {
		t.Errorf("a function that was given a part found %d, %v", sum, err)
	}
}
