package core_test

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"weak"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// fill opens v on memory of a row of numbers.
func fill[T core.Element](tb testing.TB, v *core.View, name string, data ...T) *coretest.Memory {
	tb.Helper()
	m := coretest.NewMemory(data)
	l := layout(tb, core.LayoutSpec{DType: core.DTypeOf[T](), Shape: []int{len(data)}})
	if err := v.Open(l, m, &core.ViewOptions{Name: name, Quirks: []core.QuirkID{core.QuirkID(name)}}); err != nil {
		tb.Fatal(err)
	}
	return m
}

func TestZeroViewIsClosed(t *testing.T) {
	t.Parallel()
	var v core.View
	for name, use := range uses() {
		if err := use(&v); !errors.Is(err, core.ErrClosed) {
			t.Errorf("%s of a zero View: %v", name, err)
		}
	}
	if !v.Closed() || v.Name() != "" || v.Framework() != "" || v.Quirks() != nil || v.Copied() || v.Writable() ||
		v.Addr() != 0 || v.Fence() != (core.Ready{}) || v.Reason() != core.ReasonNone {
		t.Error("a zero View is of something")
	}
	shut(t, &v)
	if err := v.Ref().Close(); err != nil {
		t.Error(err)
	}
}

func TestOpenAgain(t *testing.T) {
	t.Parallel()
	var v core.View
	for range 3 {
		m := fill(t, &v, "first", 1.5, 2.5)
		if x, err := core.At[float64](&v, 1); err != nil || x != 2.5 || v.Closed() {
			t.Errorf("the first is %v, %v", x, err)
		}
		shut(t, &v)
		n := fill[uint8](t, &v, "second", 3)
		if b, err := v.Bytes(); err != nil || !slices.Equal(b, []byte{3}) || v.Len() != 1 || v.DType() != core.Uint8 {
			t.Errorf("the second is %v, %v", b, err)
		}
		shut(t, &v)
		if m.Closed() != 1 || n.Closed() != 1 || v.Name() != "second" || !slices.Equal(v.Quirks(), []core.QuirkID{"second"}) {
			t.Errorf("closed %d and %d times; the View is %q with %v", m.Closed(), n.Closed(), v.Name(), v.Quirks())
		}
	}
}

// TestOpenFails: the View stays what it was, open or closed.
func TestOpenFails(t *testing.T) {
	t.Parallel()
	var v core.View
	flat := layout(t, core.LayoutSpec{DType: core.Uint8, Shape: []int{2}})
	refused := func(m core.Memory, kind error) {
		t.Helper()
		err := v.Open(flat, m, &core.ViewOptions{Name: "other"})
		if e, ok := errors.AsType[*core.Error](err); !ok || !errors.Is(err, kind) || e.Array != "other" {
			t.Errorf("Open = %v, want %v", err, kind)
		}
	}
	refused(nil, core.ErrPointer)
	m := fill[uint8](t, &v, "frame", 7)
	other := coretest.NewMemory([]byte{1, 2})
	refused(other, core.ErrConfig)
	if b, err := v.Bytes(); err != nil || b[0] != 7 || v.Name() != "frame" {
		t.Errorf("the open View is %q with %v, %v", v.Name(), b, err)
	}
	shut(t, &v)
	refused(coretest.NewMemory([]byte{1}), core.ErrPointer)
	if !v.Closed() || v.Name() != "frame" || v.Len() != 1 {
		t.Errorf("the closed View is %q of %d", v.Name(), v.Len())
	}
	if m.Closed() != 1 || other.Closed() != 0 {
		t.Errorf("closed %d and %d times", m.Closed(), other.Closed())
	}
}

// TestDerivedViewsOutliveOpen: what was derived from a View has its own memory and description, whoever
// is opened again, in every order.
func TestDerivedViewsOutliveOpen(t *testing.T) {
	t.Parallel()
	var v core.View
	m := fill(t, &v, "first", int32(1), 2, 3)
	part, err := v.Sub(0, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	shut(t, &v)
	n := fill[uint8](t, &v, "second", 9)
	if x, err := core.At[int32](part, 1); err != nil || x != 3 || part.Name() != "first" || m.Closed() != 0 {
		t.Errorf("the part of %q is %v, %v", part.Name(), x, err)
	}
	shut(t, part)
	if m.Closed() != 1 || n.Closed() != 0 || part.Name() != "first" {
		t.Errorf("closed %d and %d times; the part is of %q", m.Closed(), n.Closed(), part.Name())
	}
	o := fill(t, part, "third", 0.5)
	if b, err := v.Bytes(); err != nil || b[0] != 9 || v.Name() != "second" {
		t.Errorf("the View of %q is %v, %v", v.Name(), b, err)
	}
	shut(t, &v)
	shut(t, part)
	if n.Closed() != 1 || o.Closed() != 1 {
		t.Errorf("closed %d and %d times", n.Closed(), o.Closed())
	}
}

// TestLoopsOutliveOpen: a loop goes on over what it began with, and one over what is closed does not
// begin.
func TestLoopsOutliveOpen(t *testing.T) {
	t.Parallel()
	var v core.View
	m := fill(t, &v, "first", int64(1), 2, 3)
	values, err1 := core.Values[int64](&v)
	rows, err2 := core.Rows[int64](&v)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	var got []int64
	for x := range values {
		if got = append(got, x); len(got) == 1 {
			shut(t, &v)
			fill[uint8](t, &v, "second", 9)
		}
		if m.Closed() != 0 {
			t.Fatal("the memory went in the middle of the loop")
		}
	}
	if !slices.Equal(got, []int64{1, 2, 3}) || m.Closed() != 1 {
		t.Errorf("the loop saw %v; the memory was closed %d times", got, m.Closed())
	}
	for name, loop := range map[string]func(){
		"Values": func() { values(func(int64) bool { return true }) },
		"Rows":   func() { rows(func(int, []int64) bool { return true }) },
	} {
		func() {
			defer func() {
				if err, ok := recover().(error); !ok || !errors.Is(err, core.ErrClosed) {
					t.Errorf("%s of what is closed: %v", name, err)
				}
			}()
			loop()
		}()
	}
	shut(t, &v)
}

func TestRefClosesWhatItRefersTo(t *testing.T) {
	t.Parallel()
	var v core.View
	first := fill[uint8](t, &v, "first", 1)
	ref := v.Ref()
	shut(t, &v)
	second := fill[uint8](t, &v, "second", 2)
	if err := ref.Close(); err != nil || v.Closed() {
		t.Errorf("an old Ref closed what came later, or %v", err)
	}
	if err := v.Ref().Close(); err != nil || !v.Closed() || first.Closed() != 1 || second.Closed() != 1 {
		t.Errorf("closed %d and %d times, %v", first.Closed(), second.Closed(), err)
	}
	if err := errors.Join(new(core.Ref).Close(), v.Ref().Close()); err != nil {
		t.Error(err)
	}
}

// TestRefIsWeak: those who ask for a Ref at once get the same one, and it does not keep the View.
func TestRefIsWeak(t *testing.T) {
	t.Parallel()
	v := new(core.View)
	fill[uint8](t, v, "forgotten", 1)
	var refs [4]core.Ref
	var all sync.WaitGroup
	for i := range refs {
		all.Go(func() { refs[i] = v.Ref() })
	}
	all.Wait()
	for _, ref := range refs {
		if ref != v.Ref() {
			t.Errorf("%v and %v refer to the same", ref, v.Ref())
		}
	}
	shut(t, v)
	gone := weak.Make(v)
	v = nil
	for range 10 {
		if runtime.GC(); gone.Value() == nil {
			if err := refs[0].Close(); err != nil {
				t.Error(err)
			}
			return
		}
	}
	t.Error("the View was kept")
}

// TestOpenHammer opens and closes one View while others close it by their references: each memory is
// closed once, and only by those who may. The race detector watches.
func TestOpenHammer(t *testing.T) {
	t.Parallel()
	var v core.View
	var closers sync.WaitGroup
	for range 500 {
		m := &fragile{Memory: coretest.NewMemory([]byte{1})}
		if err := v.Open(layout(t, core.LayoutSpec{DType: core.Uint8, Shape: []int{1}}), m, nil); err != nil {
			t.Fatal(err)
		}
		ref := v.Ref()
		for range 2 {
			closers.Go(func() {
				if err := ref.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		if x, err := core.At[uint8](&v, 0); err != nil && !errors.Is(err, core.ErrClosed) || err == nil && x != 1 {
			t.Errorf("At = %v, %v", x, err)
		}
		shut(t, &v)
	}
	closers.Wait()
}

func TestOpenMakesNoGarbage(t *testing.T) { //nolint:paralleltest // it counts allocations
	var v core.View
	l := layout(t, core.LayoutSpec{DType: core.Uint8, Shape: []int{1}})
	m := coretest.NewMemory([]byte{1})
	opts := core.ViewOptions{Name: "frame", Quirks: []core.QuirkID{"one", "two"}, Fence: core.Ready{}}
	if n := testing.AllocsPerRun(100, func() {
		if err := v.Open(l, m, &opts); err != nil {
			t.Fatal(err)
		}
		_ = v.Ref()
		shut(t, &v)
	}); n != 0 {
		t.Errorf("%v allocations to open and close", n)
	}
}
