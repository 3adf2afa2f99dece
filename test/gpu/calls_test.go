//go:build cuda

package gpu

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/gpu/report"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

var gpu0 = core.Device{Kind: core.CUDA}

// importing are the frameworks that make arrays of the host's memory; what a function gets of "python" speaks the protocols.
var importing = map[string]string{"driver": "python", "torch": "torch", "cupy": "cupy", "jax": "jax"}

// TestCalls calls functions with arrays of the host's on a GPU. Each side's work is queued late, and neither side orders it:
// the call does.
func TestCalls(t *testing.T) {
	for _, f := range frameworks(t) {
		as := importing[f.name]
		if as == "" || f.env != nil {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			run := start(t, f.name, nil)
			row := &report.Row{Table: "Functions called with arrays of the host's on the GPU"}
			row.Set("framework", f.name)
			c := &called{run: run, as: as}
			test := func(name string, run func(*testing.T)) { row.Set(name, resultText(t.Run(name, run))) }
			test("in order", func(t *testing.T) { orderedCalls(t, c) })
			test("kept", func(t *testing.T) { keptArguments(t, c) })
			test("pools", func(t *testing.T) { pooledArguments(t, c) })
			test("two programs", func(t *testing.T) { sharedArguments(t, c) })
			test("lent", func(t *testing.T) { lentArguments(t, c, f) })
			test("refused", func(t *testing.T) { refusedArguments(t, c) })
			test("the program's own", func(t *testing.T) { leasedArguments(t, c, f) })
			if f.name != "driver" {
				test("results", func(t *testing.T) { resultsOnGPU(t, c, !f.made) })
			}
			test("the GPU fails", func(t *testing.T) { brokenResult(t, f, as) })
			test("the program dies", func(t *testing.T) { survivingArrays(t, c) })
			write(t, row)
		})
	}
}

// called is a program whose functions are called.
type called struct {
	run *harness.Run
	as  string
}

// array makes an array of the host's until the test ends.
func (c *called) array(t *testing.T) *core.View {
	t.Helper()
	v, err := c.run.NewOn(gpu0, core.Float32, count)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

func (c *called) function(t *testing.T, name string) *hostplugin.Func {
	t.Helper()
	f, err := c.run.Func(t.Context(), "called."+name, hostplugin.As(c.as))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// call calls a function, and gives how many arguments it has kept.
func (c *called) call(t *testing.T, name string, into any, args ...any) (retained int) {
	t.Helper()
	result, err := c.function(t, name).Call(t.Context(), args...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if into != nil {
		if err := result.Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	retained = result.Retained()
	if err := result.Close(); err != nil {
		t.Fatal(err)
	}
	return retained
}

// late has a kernel of the host copy an array of the program's, of fives, into one of the host's, after a while.
func (c *called) late(t *testing.T, to *core.View) *kernels {
	t.Helper()
	c.run.Remote.Exec(t, fmt.Sprintf("import numpy; source = numpy.full(%d, 5, 'f4')", count))
	from := c.run.View(t, "source")
	pinned(t, from)
	k := newKernels(t)
	k.copyAfter(t, to, from, kernelTime)
	return k
}

func orderedCalls(t *testing.T, c *called) {
	x := c.array(t)
	all(t, "a new array", contents(t, x), 0)
	var seen []float32
	k := c.late(t, x)
	c.call(t, "sees", &seen, x)
	if k.finish(t); len(seen) != 2 || seen[0] != 5 || seen[1] != 5 {
		t.Errorf("the function saw %v, want what the host's kernel wrote before: 5", seen)
	}
	c.call(t, "late_fill", nil, x, 7.0)
	all(t, "behind a call", contents(t, x), 7)
	_, err := c.function(t, "late_raise").Call(t.Context(), x, 8.0)
	if !errors.Is(err, core.ErrPython) {
		t.Errorf("a function that raises: %v", err)
	}
	all(t, "behind a call that fails", contents(t, x), 8)
	want := float32(0)
	for result, err := range c.function(t, "late_values").Stream(t.Context(), x, 3) {
		if err != nil {
			t.Fatal(err)
		}
		all(t, "behind a value of a generator", contents(t, x), want)
		want++
		if err := result.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if want != 3 {
		t.Errorf("the generator gave %v values", want)
	}
	g := newKernels(t)
	g.launchAdd(t, x, 41) // of a stream that is not synchronized
	readOnly, err := x.AsReadOnly()
	if err != nil {
		t.Fatal(err)
	}
	c.call(t, "sees", &seen, readOnly)
	if err := readOnly.Close(); err != nil {
		t.Fatal(err)
	}
	if seen[0] != 43 || seen[1] != 43 {
		t.Errorf("a function saw %v of a read-only part, want 43", seen)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.late(t, x)
	if _, err := c.function(t, "sees").Call(ctx, x); !errors.Is(err, context.Canceled) {
		t.Errorf("a call whose context has ended: %v", err)
	}
}

func keptArguments(t *testing.T, c *called) {
	var before, after uint64
	c.call(t, "free", &before)
	x := c.array(t)
	c.call(t, "late_fill", nil, x, 3.0)
	if n := c.call(t, "keep", nil, x); n != 1 {
		t.Errorf("%d arguments were kept, want 1", n)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	y := c.array(t)
	c.call(t, "late_fill", nil, y, 4.0)
	var seen []float32
	c.call(t, "sees_kept", &seen)
	if seen[0] != 3 || seen[1] != 3 {
		t.Errorf("the argument that was kept has %v, want 3", seen)
	}
	c.call(t, "drop_late", nil)
	all(t, "another array", contents(t, y), 4)
	if err := y.Close(); err != nil {
		t.Fatal(err)
	}
	defer func() { t.Logf("free before %d bytes, at the end %d", before, after) }()
	harness.Eventually(t, bound, "the memory is given back", func() bool {
		c.call(t, "free", &after)
		return after+2*count >= before // either array has twice as much; the driver takes 2 MiB of its own when it likes
	})
}

// pooledArguments: memory of a pool is used again when the program has dropped it, and the GPU is done with it on both sides.
func pooledArguments(t *testing.T, c *called) {
	pool, err := c.run.PoolOn(gpu0, core.Float32, count)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	}()
	get := func() *core.View {
		t.Helper()
		v, err := pool.Get()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	free := func(v *core.View) {
		t.Helper()
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
	x := get()
	kept := x.Addr()
	c.call(t, "late_fill", nil, x, 3.0)
	if n := c.call(t, "keep", nil, x); n != 1 {
		t.Errorf("%d arguments were kept, want 1", n)
	}
	free(x)
	y := get()
	if y.Addr() == kept {
		t.Fatal("the pool gave memory that the program has kept")
	}
	c.call(t, "late_fill", nil, y, 4.0)
	c.call(t, "drop_late", nil)
	all(t, "another array of the pool", contents(t, y), 4)
	free(y)
	var views []*core.View // so that nothing is left that could be given in its place
	harness.Eventually(t, bound, "the memory that the program has dropped is given again", func() bool {
		<-time.After(100 * time.Millisecond)
		views = append(views, get())
		return views[len(views)-1].Addr() == kept
	})
	for _, v := range views {
		free(v)
	}
	x = get()
	working := x.Addr()
	k := c.late(t, x)
	free(x) // while the host's kernel is to write there
	y = get()
	if k.busy() && y.Addr() == working {
		t.Error("the pool gave memory that a kernel of the host is to write to")
	}
	k.finish(t)
	free(y)
}

// another starts a second program like the first one.
func (c *called) another(t *testing.T) *called {
	t.Helper()
	other, err := c.run.Host.Start(t.Context(), "program")
	if err != nil {
		t.Fatal(err)
	}
	second := &called{run: &harness.Run{Session: other, Host: c.run.Host}, as: c.as}
	if err := second.run.View(t, "ready").Close(); err != nil {
		t.Fatal(err)
	}
	return second
}

// sees is what a function sees of x: the least and the greatest element.
func (c *called) sees(t *testing.T, what string, x *core.View, want float32) {
	t.Helper()
	var seen []float32
	if c.call(t, "sees", &seen, x); len(seen) != 2 || seen[0] != want || seen[1] != want {
		t.Errorf("%s: the function saw %v, want %v", what, seen, want)
	}
}

// sharedArguments gives an array of the host's to functions of two programs.
func sharedArguments(t *testing.T, c *called) {
	second := c.another(t)
	x, err := c.run.Host.NewOn(gpu0, core.Float32, count)
	if err != nil {
		t.Fatal(err)
	}
	c.call(t, "late_fill", nil, x, 6.0)
	second.sees(t, "what the first program has written", x, 6)
	second.call(t, "late_fill", nil, x, 7.0)
	all(t, "behind the second program", contents(t, x), 7)
	if err := second.run.Close(); err != nil {
		t.Fatal(err)
	}
	c.sees(t, "what the second program has written before it was closed", x, 7)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
}

func refusedArguments(t *testing.T, c *called) {
	x := c.array(t)
	f, err := c.run.Func(t.Context(), "called.sees")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Call(t.Context(), x); !errors.Is(err, core.ErrConfig) {
		t.Errorf("an array on a GPU for numpy: %v, want ErrConfig", err)
	}
	devices, err := cuda.Devices()
	if err != nil {
		t.Fatal(err)
	}
	for want, device := range map[error]core.Device{
		core.ErrDevice:      {Kind: core.CUDA, Index: len(devices)},
		core.ErrUnavailable: gpu0,
	} {
		if _, err := c.run.NewOn(device, core.Uint8, 1<<50); !errors.Is(err, want) {
			t.Errorf("an array on %v: %v, want %v", device, err, want)
		}
	}
	if _, err := c.run.NewOn(core.Device{Kind: core.CUDAManaged}, core.Uint8, 1); !errors.Is(err, core.ErrDevice) {
		t.Errorf("an array in managed memory: %v, want ErrDevice", err)
	}
	host, err := c.run.NewOn(core.Device{}, core.Uint8, 1)
	if err != nil || host.Device() != (core.Device{}) {
		t.Errorf("an array in host memory: %v, %v", host, err)
	}
}

// leasedArguments passes a view of the program's own array, which a kernel of the host is to write.
func leasedArguments(t *testing.T, c *called, f framework) {
	c.run.Remote.Exec(t, fmt.Sprintf("make('a', %q, 1); called.kept.append(a)", f.kinds[0].name))
	var options []hostplugin.ViewOption
	if !f.made {
		options = append(options, writable)
	}
	view := c.run.View(t, "a", options...)
	var same bool
	if c.call(t, "same", &same, view); !same {
		t.Error("a view of a name is not the object that has the name")
	}
	if f.made {
		return
	}
	var seen []float32
	k := c.late(t, view)
	c.call(t, "sees", &seen, view)
	if k.finish(t); seen[0] != 5 || seen[1] != 5 {
		t.Errorf("the function saw %v, want what the host's kernel wrote before: 5", seen)
	}
	c.call(t, "late_fill", nil, view, 7.0)
	all(t, "behind a call", contents(t, view), 7)
	lateResult(t, c)
}

// survivingArrays: the host's memory stays when the program dies.
func survivingArrays(t *testing.T, c *called) {
	x := c.array(t)
	c.call(t, "late_fill", nil, x, 6.0)
	if err := syscall.Kill(c.run.PID(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-c.run.Done()
	all(t, "when the program has died", contents(t, x), 6)
	g := newKernels(t)
	g.launchAdd(t, x, 1)
	if err := g.Synchronize(t.Context()); err != nil {
		t.Error(err)
	}
	all(t, "and a kernel has written", contents(t, x), 7)
	if _, err := c.run.NewOn(gpu0, core.Float32, count); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("a new array: %v, want ErrUnavailable", err)
	}
}
