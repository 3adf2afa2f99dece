package e2e

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestValueAndSet reads and writes names of a program's.
func TestValueAndSet(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import numpy as np, remote
class M: pass
lr, m, d = 0.5, M(), {"a": [1, 2, np.arange(4)]}
m.training, fixed = True, (1, 2)
s = {"a": [1, remote]}
remote.serve()
`, harness.Options{})
	get := func(name string) any {
		t.Helper()
		r, err := run.Value(t.Context(), name)
		if err != nil {
			t.Fatalf("value %s: %v", name, err)
		}
		t.Cleanup(func() { r.Close() })
		v, err := r.Value()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if get("lr") != 0.5 || get("m.training") != true || get(`d["a"][1]`) != int64(2) {
		t.Errorf("lr %v, training %v, item %v", get("lr"), get("m.training"), get(`d["a"][1]`))
	}
	if v, ok := get("d").(map[string]any)["a"].([]any)[2].(*core.View); !ok || v.Len() != 4 {
		t.Errorf("the array in the dict is %v", v)
	}
	host := array(t, run, core.Float32, 3)
	for name, v := range map[string]any{"lr": 0.1, "fresh": []any{int64(1), "x"}, "m.training": false, `d["b"]`: nil, `d["a"][0]`: int64(9), "m.w": host} {
		if err := run.Set(t.Context(), name, v); err != nil {
			t.Fatalf("set %s: %v", name, err)
		}
		if got := get(name); name != "m.w" && !reflect.DeepEqual(got, v) {
			t.Errorf("%s is %v, want %v", name, got, v)
		}
	}
	if err := run.Set(t.Context(), "M.rate", 5); err != nil || harness.Eval[int](t, run.Remote, "M.rate") != 5 {
		t.Errorf("set an attribute of a class: %v", err)
	}
	if err := run.Set(t.Context(), "fixed[0]", 5); err == nil || !strings.Contains(err.Error(), "TypeError: 'tuple' object does not support item assignment") {
		t.Errorf("set an item of a tuple: %v", err)
	}
	harness.Eval[any](t, run.Remote, "m.w.fill(2)")
	if slice[float32](t, host)[2] != 2 {
		t.Error("the view does not show what the program wrote through its name")
	}
	if err := run.Set(t.Context(), "m.w", host, hostplugin.As("python")); err != nil || harness.Eval[string](t, run.Remote, "type(m.w).__name__") != "memoryview" {
		t.Errorf("as Python's own, the array was not set as a memoryview: %v", err)
	}
	wantCategory(t, run.Set(t.Context(), "m.w", host, hostplugin.As("cobol")), core.ErrPython)
	wantCategory(t, run.Set(t.Context(), "gone.x", 1), core.ErrNotFound)
	wantCategory(t, run.Set(t.Context(), "lr", make(chan int)), core.ErrUnsupported)
	_, err := run.Value(t.Context(), "m")
	wantCategory(t, err, core.ErrUnsupported)
	if _, err := run.Value(t.Context(), "s"); err == nil || !strings.Contains(err.Error(), `["a"][1]`) {
		t.Errorf("a value with a module in it = %v, want where it is", err)
	}
	run.Remote.Exec(t, "del m.w")
}

// TestScalarsOfNumPyStayNumbers: whatever else was done with scalars of NumPy, which a view shows as arrays without axes.
func TestScalarsOfNumPyStayNumbers(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import numpy as np, remote
scalar = np.float64(2.5)
def number(): return np.float64(1.5)
remote.serve()
`, harness.Options{})
	y, err := run.New(core.Float64)
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	number := fn(t, run, "number")
	if _, err := number.Call(t.Context(), hostplugin.Out(y)); err != nil {
		t.Fatal(err)
	}
	if err := run.View(t, "scalar").Close(); err != nil {
		t.Fatal(err)
	}
	result, err := number.Call(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if v, err := result.Value(); v != 1.5 || err != nil {
		t.Errorf("a scalar of NumPy's is %v (%v)", v, err)
	}
	if err := result.Close(); err != nil {
		t.Fatal(err)
	}
}
