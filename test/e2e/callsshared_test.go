package e2e

import (
	"errors"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestArraysOfAllPrograms passes arrays of the host, and of a pool of the host, to functions of two programs: both have the same
// memory, and it is not used again before both have dropped it.
func TestArraysOfAllPrograms(t *testing.T) {
	t.Parallel()
	const script = `
import time
import numpy as np
kept = []
def add(x, n):
    x += n
def keep(x): kept.append(x)
def drop(): kept.clear()
def seen(): return kept[0].tolist()
while True:
    time.sleep(1)
`
	first := harness.Start(t, script, harness.Options{})
	second := &harness.Run{Host: first.Host}
	var err error
	if second.Session, err = first.Host.Start(t.Context(), "program"); err != nil {
		t.Fatal(err)
	}
	x, err := first.Host.New(core.Float32, 3)
	if err != nil {
		t.Fatal(err)
	}
	call(t, fn(t, first, "add"), x, 1)
	call(t, fn(t, second, "add"), x, 2)
	if got := slice[float32](t, x); !slices.Equal(got, []float32{3, 3, 3}) {
		t.Errorf("two programs have made %v of it, want threes", got)
	}

	pool, err := first.Host.Pool(core.Float32, 3)
	if err != nil {
		t.Fatal(err)
	}
	get := func() *core.View {
		t.Helper()
		v, err := pool.Get()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	a := get()
	kept := a.Addr()
	copy(slice[float32](t, a), []float32{1, 2, 3})
	for _, run := range []*harness.Run{first, second} {
		if n := call(t, fn(t, run, "keep"), a).Retained(); n != 1 {
			t.Errorf("%d arrays retained, want 1", n)
		}
	}
	a.Close()
	call(t, fn(t, first, "drop"))
	b := get()
	if b.Addr() == kept {
		t.Fatal("the pool gave memory that the second program still uses")
	}
	clear(slice[float32](t, b))
	var got []float64
	if err := call(t, fn(t, second, "seen")).Decode(&got); err != nil || !slices.Equal(got, []float64{1, 2, 3}) {
		t.Errorf("what the second program has kept holds %v, %v, want 1, 2, 3", got, err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if c := get(); c.Addr() != kept {
		t.Error("the pool did not give memory again that was the closed program's")
	}
	if err := first.Host.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Get(); !errors.Is(err, core.ErrClosed) {
		t.Errorf("an array of a pool of a closed host: %v, want ErrClosed", err)
	}
	if _, err := first.Host.New(core.Float32, 1); !errors.Is(err, core.ErrClosed) {
		t.Errorf("an array of a closed host: %v, want ErrClosed", err)
	}
}
