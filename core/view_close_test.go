package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// ledger counts what a view gives back, in which order.
type ledger struct {
	*coretest.Memory
	events []string
	err    error
}

func (l *ledger) Close() error {
	l.events = append(l.events, "memory")
	return l.err
}

func (l *ledger) Live() bool { return true }

func (l *ledger) Release() error {
	l.events = append(l.events, "lease")
	return l.err
}

func TestCloseGivesBackOnce(t *testing.T) {
	t.Parallel()
	m := &ledger{Memory: coretest.NewMemory(make([]byte, 8))}
	v, err := core.NewView(layout(t, core.LayoutSpec{DType: core.Int8, Shape: []int{2, 4}}), m,
		&core.ViewOptions{Lender: m})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := v.Sub(0, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	row, err := rows.Select(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []*core.View{v, v, rows, rows} {
		shut(t, w)
		if len(m.events) > 0 {
			t.Fatalf("%v given back while a view is open", m.events)
		}
	}
	if b, err := row.Bytes(); err != nil || len(b) != 4 {
		t.Errorf("%d bytes of a view whose parents are closed, %v", len(b), err)
	}
	shut(t, row)
	shut(t, row)
	if !slices.Equal(m.events, []string{"lease", "memory"}) {
		t.Errorf("given back: %v", m.events)
	}
}

func TestCloseErrors(t *testing.T) {
	t.Parallel()
	plain := errors.New("munmap: bad address")
	lost := &core.Error{Op: "release", Kind: core.ErrUnavailable, Err: plain}
	for _, tc := range []struct {
		err      error
		category string
	}{
		{plain, "unavailable"},
		{lost, "unavailable"},
		{&core.Error{Op: "release", Kind: core.ErrProtocol}, "protocol violation"},
		{fmt.Errorf("unmap: %w", core.ErrPointer), "invalid pointer"},
		{context.Canceled, "canceled"},
	} {
		m := &ledger{Memory: coretest.NewMemory(make([]byte, 8)), err: tc.err}
		v, err := core.NewView(layout(t, core.LayoutSpec{DType: core.Int8}), m,
			&core.ViewOptions{Name: "frame", Lender: m})
		if err != nil {
			t.Fatal(err)
		}
		err = v.Close()
		if !errors.Is(err, tc.err) || core.Category(err) != tc.category {
			t.Errorf("%v became %v of category %q, want %q", tc.err, err, core.Category(err), tc.category)
		}
		if len(m.events) != 2 {
			t.Errorf("only %v given back", m.events)
		}
		if err := v.Close(); err != nil {
			t.Errorf("the second Close: %v", err)
		}
	}
}

// uses is every way to use a view that can say no.
func uses() map[string]func(*core.View) error {
	return map[string]func(*core.View) error{
		"sub":       func(v *core.View) error { _, err := v.Sub(0, 0, 1); return err },
		"select":    func(v *core.View) error { _, err := v.Select(0, 0); return err },
		"step":      func(v *core.View) error { _, err := v.Step(0, -1); return err },
		"transpose": func(v *core.View) error { _, err := v.Transpose(); return err },
		"as":        func(v *core.View) error { _, err := v.As(core.Int32); return err },
		"bytes":     func(v *core.View) error { _, err := v.Bytes(); return err },
		"slice":     func(v *core.View) error { _, err := core.Slice[float32](v); return err },
		"values":    func(v *core.View) error { _, err := core.Values[float32](v); return err },
		"rows":      func(v *core.View) error { _, err := core.Rows[float32](v); return err },
		"at":        func(v *core.View) error { _, err := core.At[float32](v, 0); return err },
		"set":       func(v *core.View) error { return core.Set[float32](v, 1, 0) },
		"copy":      func(v *core.View) error { _, err := core.Copy(context.Background(), make([]float32, 2), v); return err },
		"put":       func(v *core.View) error { _, err := core.Put(context.Background(), v, make([]float32, 2)); return err },
		"copybytes": func(v *core.View) error {
			_, err := core.CopyBytes(context.Background(), make([]byte, 8), v)
			return err
		},
		"strided": func(v *core.View) error { _, _, _, err := core.Strided[float32](v); return err },
		"acquire": func(v *core.View) error { _, _, release, err := v.Acquire(); release(); return err },
		"wait":    func(v *core.View) error { return v.Wait(context.Background()) },
	}
}

func TestUseAfterClose(t *testing.T) {
	t.Parallel()
	for _, data := range [][]float32{{1, 2}, {}} {
		v := coretest.NewView(t, data)
		shut(t, v)
		for name, use := range uses() {
			err := use(v)
			if !errors.Is(err, core.ErrClosed) {
				t.Errorf("%s of %d elements after Close: %v", name, len(data), err)
			}
			if e, ok := errors.AsType[*core.Error](err); !ok || e.Object != t.Name() {
				t.Errorf("%s after Close does not name the array: %v", name, err)
			}
		}
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	v := coretest.NewView(t, []float32{1})
	defer shut(t, v)
	if err := v.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	cause := errors.New("the user went home")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	err := v.Wait(ctx)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) || core.Category(err) != "canceled" {
		t.Errorf("with a canceled context: %v", err)
	}
}

// TestDerivedViewsCloseIndependently closes parents and children in every order.
func TestDerivedViewsCloseIndependently(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 0, 3, 2}, {2, 3, 0, 1}} {
		data := []float32{1, 2, 3, 4}
		m := coretest.NewMemory(data)
		v, err := core.NewView(layout(t, core.LayoutSpec{DType: core.Float32, Shape: []int{2, 2}}), m, nil)
		if err != nil {
			t.Fatal(err)
		}
		flipped, err1 := v.Step(1, -1)
		turned, err2 := flipped.Transpose()
		words, err3 := turned.As(core.Uint32)
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		views := []*core.View{v, flipped, turned, words}
		for i, which := range order {
			if m.Closed() != 0 {
				t.Fatalf("%v: memory closed after %d of 4", order, i)
			}
			shut(t, views[which])
			for _, later := range order[i+1:] {
				if b := make([]byte, 16); views[later] != nil {
					if _, err := core.CopyBytes(t.Context(), b, views[later]); err != nil {
						t.Errorf("%v: view %d after the end of %d: %v", order, later, which, err)
					}
				}
			}
		}
		if m.Closed() != 1 {
			t.Errorf("%v: memory closed %d times", order, m.Closed())
		}
	}
}

// TestHammer opens, derives, reads and closes at once; the memory must be closed once, and never be
// read afterwards. The race detector watches.
func TestHammer(t *testing.T) {
	t.Parallel()
	const goroutines, rounds = 8, 200
	for range 10 {
		data := make([]int64, 64)
		m := &fragile{Memory: coretest.NewMemory(data)}
		v, err := core.NewView(layout(t, core.LayoutSpec{DType: core.Int64, Shape: []int{8, 8}}), m,
			&core.ViewOptions{Writable: true})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				dst := make([]int64, 64)
				for range rounds {
					w, err := v.Transpose()
					if err != nil {
						if !errors.Is(err, core.ErrClosed) {
							t.Error(err)
						}
						return
					}
					if _, err := core.Copy(t.Context(), dst, w); err != nil {
						t.Error(err)
					}
					if _, err := core.At[int64](w, g, g); err != nil {
						t.Error(err)
					}
					shut(t, w)
				}
			})
		}
		wg.Go(func() { shut(t, v) })
		wg.Go(func() { shut(t, v) })
		wg.Wait()
		if n := m.closes.Load(); n != 1 {
			t.Fatalf("the memory was closed %d times", n)
		}
	}
}

// fragile is memory that the race detector sees written when it is closed.
type fragile struct {
	*coretest.Memory
	closes atomic.Int32
}

func (f *fragile) Close() error {
	f.closes.Add(1)
	clear(f.Bytes())
	return nil
}

// TestCloseWaitsForCopies closes a view beside a running copy, which must not see cleared memory.
func TestCloseWaitsForCopies(t *testing.T) {
	t.Parallel()
	for range 50 {
		data := slices.Repeat([]byte{1}, 1<<16)
		m := &fragile{Memory: coretest.NewMemory(data)}
		v, err := core.NewView(layout(t, core.LayoutSpec{DType: core.Uint8, Shape: []int{1 << 16}}), m, nil)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			dst := make([]uint8, 1<<16)
			if _, err := core.Copy(t.Context(), dst, v); err == nil && slices.Contains(dst, 0) {
				t.Error("a copy saw memory that was given back")
			} else if err != nil && !errors.Is(err, core.ErrClosed) {
				t.Error(err)
			}
		})
		wg.Go(func() { shut(t, v) })
		wg.Wait()
	}
}
