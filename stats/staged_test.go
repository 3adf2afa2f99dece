package stats_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/stats"
)

// unread is memory that says it is a GPU's, and can only copy its elements.
type unread struct{ core.Memory }

func (unread) Bytes() []byte { return nil }

func (m unread) CopyOut(ctx context.Context, dst []byte, l core.Layout) error {
	spec := core.LayoutSpec{DType: l.DType(), Tag: l.Tag(), Shape: l.Shape(), Strides: l.Strides(), Offset: l.Offset()}
	host, err := core.NewLayout(spec)
	if err != nil {
		return err
	}
	v, err := core.NewView(host, m.Memory, nil)
	if err != nil {
		return err
	}
	_, err = core.CopyBytes(ctx, dst, v)
	return err
}

func (unread) CopyIn(context.Context, core.Layout, []byte) error { return core.ErrReadOnly }

// TestStaged sums up memory that neither the CPU can read nor a driver knows: with CUDA and without it, a copy is summed up.
func TestStaged(t *testing.T) {
	t.Parallel()
	data := make([]float32, 3*4000)
	for i := range data {
		data[i] = float32(i%100) - 3
	}
	cpu := coretest.NewView(t, data, 3, 4000)
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Float32, Shape: []int{3, 4000}, Device: core.Device{Kind: core.CUDA}})
	if err != nil {
		t.Fatal(err)
	}
	staged, err := core.NewView(l, unread{coretest.NewMemory(data)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer staged.Close()
	for _, o := range []stats.Options{{Bins: 10}, {Base: cpu}, {Bins: 1, Log: true}} {
		have, want := of(t, staged, &o), of(t, cpu, &o)
		if have.Mean != want.Mean || have.Std != want.Std || have.Zero != want.Zero || !have.Exact() || len(have.Histogram.Counts) != len(want.Histogram.Counts) {
			t.Errorf("%+v: %+v, want %+v", o, have, want)
		}
	}
	if s := of(t, staged, &stats.Options{Sample: 1000}); s.Seen != 3*334 || s.Runs != s.Seen || s.Sweep != 0 || s.Max != 93 {
		t.Errorf("a sample: %+v", s)
	}
	kept, err := stats.Keep(t.Context(), staged)
	if err != nil {
		t.Fatal(err)
	}
	if s := of(t, kept, &stats.Options{Base: cpu}); s.Zero != len(data) {
		t.Errorf("what was kept differs: %+v", s)
	}
	if err := kept.Close(); err != nil {
		t.Error(err)
	}
}

// TestNoCopy refuses to copy what only a copy can be summed up of, and says so.
func TestNoCopy(t *testing.T) {
	t.Parallel()
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Float32, Shape: []int{4}, Device: core.Device{Kind: core.CUDA}})
	if err != nil {
		t.Fatal(err)
	}
	there, err := core.NewView(l, unread{coretest.NewMemory(make([]float32, 4))}, &core.ViewOptions{Name: "there"})
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	here := coretest.NewView(t, make([]float32, 4))
	if s := of(t, here, &stats.Options{NoCopy: true}); s.Zero != 4 || s.OnGPU {
		t.Errorf("the host's own: %+v", s)
	}
	for _, c := range []struct{ v, base *core.View }{{there, nil}, {there, here}, {here, there}} {
		_, err := stats.Of(t.Context(), c.v, &stats.Options{NoCopy: true, Base: c.base})
		if e, ok := errors.AsType[*core.Error](err); !ok || !errors.Is(err, core.ErrUnsupported) || e.Object != "there" || e.Remedy == "" {
			t.Errorf("%v", err)
		}
	}
}
