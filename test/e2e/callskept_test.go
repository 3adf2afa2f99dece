package e2e

import (
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// callKept: what the program keeps is not used again before the program drops it.
func callKept(t *testing.T, run *harness.Run) {
	keep, drop := fn(t, run, "keep"), fn(t, run, "drop")
	pool, err := run.Pool(core.Float32, 1000)
	if err != nil {
		t.Fatal(err)
	}
	get := func() (*core.View, uintptr) {
		t.Helper()
		v, err := pool.Get()
		if err != nil {
			t.Fatal(err)
		}
		return v, v.Addr()
	}
	first, kept := get()
	if n := call(t, fn(t, run, "delete"), first).Retained(); n != 0 {
		t.Errorf("%d arrays retained by a function that deletes its own", n)
	}
	if n := call(t, keep, first).Retained(); n != 1 {
		t.Errorf("%d arrays retained, want 1", n)
	}
	slice[float32](t, first)[0] = 42
	first.Close()
	second, other := get()
	if other == kept {
		t.Fatal("the pool gave memory that the program still uses")
	}
	slice[float32](t, second)[0] = 7
	second.Close()
	if x := harness.Eval[float64](t, run.Remote, "float(kept[0][0])"); x != 42 {
		t.Errorf("what the program has kept holds %v, want 42", x)
	}
	call(t, drop)
	third, again := get()
	fourth, more := get()
	if again != kept && more != kept {
		t.Error("the pool did not give memory again that the program has dropped")
	}
	third.Close()
	fourth.Close()
	fifth, shown := get()
	slice[float32](t, fifth)[0] = 3
	result := call(t, fn(t, run, "itself"), fifth)
	fifth.Close()
	sixth, other := get()
	if other == shown || slice[float32](t, result.View())[0] != 3 {
		t.Error("the pool gave memory that a result shows")
	}
	sixth.Close()
	result.Close()
	lone, err := run.New(core.Float32, 1000)
	if err != nil {
		t.Fatal(err)
	}
	call(t, keep, lone)
	slice[float32](t, lone)[999] = 8
	lone.Close()
	if x := harness.Eval[float64](t, run.Remote, "float(kept[0][999])"); x != 8 {
		t.Errorf("what the program has kept of a closed array holds %v, want 8", x)
	}
	call(t, drop)
}
