//go:build cuda

package export_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/cuda/export"
	"github.com/ndbridge/ndbridge/cuda/internal/driver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestMarks proves that a mark is one of its stream and its moment: a queue that waits for it waits for
// no work of other streams, and for no later work; and that a mark of the context is one of all streams.
func TestMarks(t *testing.T) {
	t.Parallel()
	check(t, cuda.Available())
	ctx, err := driver.PrimaryCtxRetain(0)
	check(t, err)
	defer func() { check(t, driver.PrimaryCtxRelease(0)) }()
	ptx, err := os.ReadFile("../../test/gpu/testdata/kernels.ptx")
	check(t, err)
	const soon, late = 50e6, 2e9 // nanoseconds that work takes
	var x export.Exporter
	var addr uintptr
	var fast, slow driver.Stream
	var wait driver.Function
	work := func(s driver.Stream, time uint64) {
		one := driver.Dim{X: 1, Y: 1, Z: 1}
		check(t, driver.With(ctx, func() error { return driver.LaunchKernel(wait, one, one, 0, s, []uint64{time}) }))
	}
	idle := func(s driver.Stream) (done bool) {
		check(t, driver.With(ctx, func() (err error) { done, err = driver.StreamQuery(s); return err }))
		return done
	}
	check(t, driver.With(ctx, func() (err error) {
		module, err := driver.ModuleLoadData(string(ptx))
		check(t, err)
		wait, err = driver.ModuleGetFunction(module, "wait")
		check(t, err)
		fast, err = driver.StreamCreate()
		check(t, err)
		slow, err = driver.StreamCreate()
		check(t, err)
		addr, err = driver.MemAlloc(1 << 20)
		return err
	}))
	p, err := cuda.Inspect(addr, 1<<20)
	check(t, err)
	work(fast, soon)
	work(slow, late)
	one, err := x.Mark(p, uintptr(fast))
	check(t, err)
	every, err := x.MarkAll(p)
	check(t, err)
	work(fast, late)
	for _, c := range []struct {
		name string
		mark *export.Mark
		all  bool
	}{{"one stream", one, false}, {"the context", every, true}} {
		q, err := x.Queue(p)
		check(t, err)
		check(t, q.AfterMark(c.mark))
		word, ok, err := q.Fence()
		if err != nil || !ok || word == nil {
			t.Fatalf("%s: a fence of %v, %v (%v)", c.name, word, ok, err)
		}
		check(t, q.Wait(t.Context()))
		if idle(slow) != c.all {
			t.Errorf("%s: the other stream is idle: %v", c.name, !c.all)
		}
		if !c.all && idle(fast) {
			t.Errorf("%s: later work was waited for", c.name)
		}
		word.Release()
		q.Close()
		c.mark.Close()
	}
	check(t, x.Close())
	check(t, driver.With(ctx, func() error {
		check(t, driver.StreamDestroy(fast))
		check(t, driver.StreamDestroy(slow))
		return driver.MemFree(addr)
	}))
}
