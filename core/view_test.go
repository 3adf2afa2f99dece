package core_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
)

func TestMain(m *testing.M) { coretest.Main(m) }

func open(tb testing.TB, s core.LayoutSpec, m core.Memory, opts *core.ViewOptions) *core.View {
	tb.Helper()
	v, err := core.NewView(layout(tb, s), m, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { shut(tb, v) })
	return v
}

func shut(tb testing.TB, v *core.View) {
	tb.Helper()
	if err := v.Close(); err != nil {
		tb.Error(err)
	}
}

func TestViewDescribesItself(t *testing.T) {
	t.Parallel()
	quirks := []core.QuirkID{"numpy.a", "numpy.b"}
	data := []int16{1, 2, 3, 4, 5, 6}
	m := coretest.NewMemory(data)
	v := open(t, core.LayoutSpec{DType: core.Int16, Shape: []int{2}, Offset: 4}, m, &core.ViewOptions{
		Name: "frame", Framework: "numpy", Route: contract.RouteStaged, Reason: contract.ReasonHeapOff, Quirks: quirks,
	})
	quirks[0] = "changed"
	v.Quirks()[1] = "changed"
	if v.Name() != "frame" || v.Framework() != "numpy" || v.Route() != contract.RouteStaged ||
		v.Reason() != contract.ReasonHeapOff || !v.Copied() || v.Writable() {
		t.Errorf("%q of %q by %v for %v, copied %v, writable %v",
			v.Name(), v.Framework(), v.Route(), v.Reason(), v.Copied(), v.Writable())
	}
	if got := v.Quirks(); !slices.Equal(got, []core.QuirkID{"numpy.a", "numpy.b"}) {
		t.Errorf("quirks %v", got)
	}
	if v.Addr() != m.Addr()+4 {
		t.Errorf("element 0 at %#x of memory at %#x", v.Addr(), m.Addr())
	}
	if l := v.Layout(); l.Len() != 2 || v.Len() != 2 || v.DType() != core.Int16 || !v.Contiguous() {
		t.Errorf("layout %v", l)
	}
	shut(t, v)
	if v.Name() != "frame" || v.Len() != 2 || v.Route() != contract.RouteStaged {
		t.Error("a closed view no longer says what it was")
	}
	if v.Addr() != 0 {
		t.Errorf("a closed view has the address %#x", v.Addr())
	}
}

func TestNewViewRefuses(t *testing.T) {
	t.Parallel()
	cuda := core.Device{Kind: core.CUDA}
	for _, tc := range []struct {
		name   string
		spec   core.LayoutSpec
		memory core.Memory
		opts   *core.ViewOptions
		kind   error
	}{
		{"no memory", core.LayoutSpec{DType: core.Int8}, nil, nil, core.ErrPointer},
		{"empty memory", core.LayoutSpec{DType: core.Int8}, &coretest.Memory{}, nil, core.ErrPointer},
		{
			"one byte too many",
			core.LayoutSpec{DType: core.Int8, Shape: []int{9}},
			coretest.NewMemory(make([]byte, 8)), nil,
			core.ErrPointer,
		},
		{"offset", core.LayoutSpec{DType: core.Int64, Offset: 1}, coretest.NewMemory(make([]byte, 8)), nil, core.ErrPointer},
		{
			"before the memory",
			core.LayoutSpec{DType: core.Int8, Shape: []int{2}, Strides: []int{-1}},
			coretest.NewMemory(make([]byte, 8)), nil, core.ErrPointer,
		},
		{
			"far away",
			core.LayoutSpec{DType: core.Int8, Offset: math.MaxInt - 1},
			coretest.NewMemory(make([]byte, 8)), nil,
			core.ErrPointer,
		},
		{
			"far before",
			core.LayoutSpec{DType: core.Int8, Offset: math.MinInt},
			coretest.NewMemory(make([]byte, 8)), nil,
			core.ErrPointer,
		},
		{
			"packed",
			core.LayoutSpec{DType: core.Int4, Shape: []int{3}},
			coretest.NewMemory(make([]byte, 1)), nil,
			core.ErrPointer,
		},
		{
			"lying size",
			core.LayoutSpec{DType: core.Int8, Shape: []int{8}},
			sized{coretest.NewMemory(make([]byte, 4)), 8},
			nil,
			core.ErrPointer,
		},
		{
			"device memory too small",
			core.LayoutSpec{DType: core.Int8, Shape: []int{9}, Device: cuda},
			sized{nil, 8},
			nil,
			core.ErrPointer,
		},
		{
			"writable read-only",
			core.LayoutSpec{DType: core.Int8, ReadOnly: true},
			coretest.NewMemory(make([]byte, 8)),
			&core.ViewOptions{Writable: true}, core.ErrReadOnly,
		},
		{
			"writable broadcast",
			core.LayoutSpec{DType: core.Int8, Shape: []int{4}, Strides: []int{0}},
			coretest.NewMemory(make([]byte, 8)), &core.ViewOptions{Writable: true}, core.ErrReadOnly,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			released := false
			opts := core.ViewOptions{Name: "frame"}
			if tc.opts != nil {
				opts.Writable = tc.opts.Writable
			}
			opts.Lender = coretest.Lender(func() error { released = true; return nil })
			v, err := core.NewView(layout(t, tc.spec), tc.memory, &opts)
			if v != nil || !errors.Is(err, tc.kind) || !strings.HasPrefix(err.Error(), "view frame: ") {
				t.Errorf("%v, %v", v, err)
			}
			if m, ok := tc.memory.(*coretest.Memory); released || ok && m.Closed() > 0 {
				t.Error("NewView failed and gave back what it did not take")
			}
		})
	}
	if _, err := core.NewView(core.Layout{}, nil, nil); !errors.Is(err, core.ErrLayout) {
		t.Errorf("the zero Layout: %v", err)
	}
}

// sized is memory that says another size than it has; without memory, that of a device.
type sized struct {
	*coretest.Memory
	size int64
}

func (s sized) Size() int64 { return s.size }

func (s sized) Addr() uintptr {
	if s.Memory == nil {
		return 0x7f0000000000
	}
	return s.Memory.Addr()
}

func (s sized) Bytes() []byte {
	if s.Memory == nil {
		return nil
	}
	return s.Memory.Bytes()
}

func (s sized) Close() error { return nil }

// TestViewsThatEndWithTheMemory take it to its last byte, and not further.
func TestViewsThatEndWithTheMemory(t *testing.T) {
	t.Parallel()
	memory := func() core.Memory { return coretest.NewMemory(make([]byte, 24)) }
	for _, s := range []core.LayoutSpec{
		{DType: core.Int8, Shape: []int{24}},
		{DType: core.Int64, Shape: []int{2}, Strides: []int{-16}, Offset: 16},
		{DType: core.Int4, Shape: []int{48}},
		{DType: core.Int4, Shape: []int{3}, Offset: 22},
		{DType: core.Int16, Shape: []int{12, 2}, Strides: []int{0, 22}},
		{DType: core.Int8, Shape: []int{0}, Offset: 1000},
	} {
		open(t, s, memory(), nil)
	}
}

func TestDerivedViewErrors(t *testing.T) {
	t.Parallel()
	v := coretest.NewView(t, []float32{1, 2})
	defer shut(t, v)
	for op, f := range map[string]func() (*core.View, error){
		"sub":       func() (*core.View, error) { return v.Sub(0, 0, 3) },
		"select":    func() (*core.View, error) { return v.Select(1, 0) },
		"step":      func() (*core.View, error) { return v.Step(0, 0) },
		"transpose": func() (*core.View, error) { return v.Transpose(1) },
		"as":        func() (*core.View, error) { return v.As(core.Int4) },
	} {
		w, err := f()
		if w != nil || err == nil || !strings.HasPrefix(err.Error(), op+" "+t.Name()+": ") {
			t.Errorf("%s: %v, %v", op, w, err)
		}
	}
}

// TestAsReadOnly: through a read-only view, and what is derived from it, nothing is written.
func TestAsReadOnly(t *testing.T) {
	t.Parallel()
	data := []float32{1, 2, 3}
	v := matrix(data, 3)
	safe, err := v.AsReadOnly()
	if err != nil {
		t.Fatal(err)
	}
	part, err := safe.Sub(0, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	for _, d := range []*core.View{safe, part} {
		l := d.Layout()
		err := core.Set(d, float32(9), 0)
		_, put := core.Put(t.Context(), d, make([]float32, d.Len()))
		if d.Writable() || !l.ReadOnly() || !errors.Is(err, core.ErrReadOnly) || !errors.Is(put, core.ErrReadOnly) || !strings.Contains(err.Error(), "AsReadOnly") {
			t.Errorf("a read-only view of %d: writable %v, Set = %v, Put = %v", d.Len(), d.Writable(), err, put)
		}
	}
	data[1] = 7
	if x, err := core.At[float32](part, 0); err != nil || x != 7 {
		t.Errorf("the part shows %v, %v", x, err)
	}
	if err := errors.Join(safe.Close(), part.Close()); err != nil {
		t.Error(err)
	}
	if _, err := safe.AsReadOnly(); !errors.Is(err, core.ErrClosed) {
		t.Errorf("of a closed view: %v", err)
	}
}
