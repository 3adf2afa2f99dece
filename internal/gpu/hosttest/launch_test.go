//go:build cuda

package hosttest

import (
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// hostView makes a view of n floats in host memory that can be shared, mapped writable or not.
func hostView(t *testing.T, n int, writable bool) *core.View {
	t.Helper()
	f, err := shm.Create("floats", int64(4*n))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := shm.Map(f, int64(4*n), writable)
	if err != nil {
		t.Fatal(err)
	}
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Float32, Shape: []int{n}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := core.NewView(l, m, &core.ViewOptions{Name: "host", Writable: writable})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

// TestLaunchOnHostMemory: pinned host memory is as good an argument as that of a GPU.
func TestLaunchOnHostMemory(t *testing.T) {
	t.Parallel()
	const n = 10_000
	r := start(t)
	handle := r.alloc(contract.RouteCUDAIPC, 4*n)
	from, _ := r.view(lease(t, handle, r.fill(handle, 3, true), core.Float32, false))
	to, source := hostView(t, n, true), hostView(t, n, false)
	s, f := stream(t), kernel(t, "copy")
	launch := func(to, from *core.View) error {
		return f.Launch(s, cuda.LaunchConfig{Grid: cuda.Dim3{4}, Block: cuda.Dim3{64}}, to, cuda.In(from), uint64(n), uint64(0))
	}
	if err := launch(to, from); !errors.Is(err, core.ErrDevice) ||
		!strings.Contains(err.Error(), `argument 0 (view "host")`) || !strings.Contains(err.Error(), "cuda.Pin") {
		t.Errorf("launch on memory that is not pinned: %v", err)
	}
	unpin, err := cuda.Pin(0, to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cuda.Pin(0, to); !errors.Is(err, core.ErrConfig) {
		t.Errorf("Pin twice = %v", err)
	}
	unpinSource, err := cuda.Pin(0, source)
	if err != nil {
		t.Fatal(err)
	}
	if err := launch(to, from); err != nil {
		t.Fatal(err)
	}
	r.open()
	if err := s.Synchronize(t.Context()); err != nil {
		t.Fatal(err)
	}
	raw, err := to.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	uniform(t, "what the kernel wrote to the host", raw, 3)
	part, err := to.Sub(0, 100, n)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Launch(s, once, part, cuda.In(source), uint64(n-100), uint64(0)); err != nil {
		t.Fatal(err)
	}
	if err := s.Synchronize(t.Context()); err != nil {
		t.Fatal(err)
	}
	uniform(t, "before the part", raw[:400], 3)
	uniform(t, "the part, from memory that is mapped for reading", raw[400:], 0)
	part.Close()
	for range 2 { // the second does nothing
		if err := errors.Join(unpin(), unpinSource()); err != nil {
			t.Error(err)
		}
	}
	letGo(t)
	if err := launch(to, from); !errors.Is(err, core.ErrDevice) {
		t.Errorf("launch on memory that is not pinned any more: %v", err)
	}
	if _, err := cuda.Pin(0, from); !errors.Is(err, core.ErrDevice) {
		t.Errorf("Pin of a GPU's memory = %v", err)
	}
}

// TestLaunchArguments: each argument that does not fit is named.
func TestLaunchArguments(t *testing.T) {
	t.Parallel()
	r := start(t)
	handle := r.alloc(contract.RouteCUDAIPC, 4096)
	v, _ := r.view(lease(t, handle, r.fill(handle, 1, false), core.Float32, true))
	closed, err := v.Sub(0, 0, 4)
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	s, f := stream(t), kernel(t, "add") // floats, count, amount, nanoseconds
	count, amount, time := uint64(1024), float32(2), uint64(0)
	for name, c := range map[string]struct {
		args []any
		want error
		says string
	}{
		"too few":          {[]any{v, count, amount}, core.ErrConfig, "3 arguments for 4 parameters"},
		"too many":         {[]any{v, count, amount, time, time}, core.ErrConfig, "5 arguments for 4 parameters"},
		"int":              {[]any{v, 1024, amount, time}, core.ErrConfig, "argument 1: int has no fixed size; write int32(n)"},
		"another size":     {[]any{v, count, 2.0, time}, core.ErrConfig, "argument 2: 8 bytes for a parameter of 4"},
		"a string":         {[]any{v, "x", amount, time}, core.ErrConfig, "argument 1: a string is neither"},
		"nil":              {[]any{nil, count, amount, time}, core.ErrConfig, "argument 0: a <nil> is neither"},
		"a nil view":       {[]any{(*core.View)(nil), count, amount, time}, core.ErrConfig, "argument 0: a nil view"},
		"a closed view":    {[]any{closed, count, amount, time}, core.ErrClosed, `argument 0 (view "frame")`},
		"a view as number": {[]any{v, count, v, time}, core.ErrConfig, "argument 2: 8 bytes for a parameter of 4"},
	} {
		err := f.Launch(s, once, c.args...)
		if !errors.Is(err, c.want) || core.Category(err) != core.Category(c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %v that says %q", name, err, c.want, c.says)
		}
	}
	one := cuda.Dim3{1}
	for what, c := range map[string]cuda.LaunchConfig{
		"nothing":              {},
		"no grid":              {Block: one},
		"no block":             {Grid: one},
		"a gap":                {Grid: cuda.Dim3{1, 0, 2}, Block: one},
		"nothing along x":      {Grid: one, Block: cuda.Dim3{0, 1}},
		"more than the device": {Grid: one, Block: cuda.Dim3{1 << 20}},
	} {
		err := f.Launch(s, c, v, count, amount, time)
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "block {") {
			t.Errorf("a config with %s: %v", what, err)
		}
	}
	if err := f.Launch(s, once, v, count, amount, time); err != nil {
		t.Fatal(err)
	}
	if err := s.Synchronize(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := make([]float32, v.Len())
	if _, err := core.Copy(t.Context(), got, v); err != nil {
		t.Fatal(err)
	}
	for _, x := range got {
		if x != float(1)+2 {
			t.Fatalf("the kernel has made %g", x)
		}
	}
}

// TestClosedStreamAndModule: what is closed says so.
func TestClosedStreamAndModule(t *testing.T) {
	t.Parallel()
	s, err := cuda.NewStream(0)
	if err != nil {
		t.Fatal(err)
	}
	f := kernel(t, "wait")
	if s.Handle() == 0 || s.Device() != 0 {
		t.Errorf("handle %#x, device %d", s.Handle(), s.Device())
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"Launch":      f.Launch(s, once, uint64(0)),
		"Synchronize": s.Synchronize(t.Context()),
	} {
		if !errors.Is(err, core.ErrClosed) {
			t.Errorf("%s of a closed stream = %v", what, err)
		}
	}
	m, err := cuda.LoadModule(t.Context(), 0, []byte(".version 6.0\n.target sm_50\n.address_size 64\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Function(t.Context(), "copy"); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("Function = %v", err)
	}
	if err := errors.Join(m.Close(), m.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Function(t.Context(), "copy"); !errors.Is(err, core.ErrClosed) {
		t.Errorf("Function of a closed module = %v", err)
	}
	if _, err := cuda.LoadModule(t.Context(), 0, []byte("no code")); !errors.Is(err, core.ErrConfig) {
		t.Errorf("LoadModule = %v", err)
	}
	for what, device := range map[string]int{"negative": -1, "not there": 99} {
		if _, err := cuda.NewStream(device); !errors.Is(err, core.ErrDevice) {
			t.Errorf("a stream of a device that is %s: %v", what, err)
		}
	}
}
