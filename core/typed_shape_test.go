package core_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

func TestEmptyViews(t *testing.T) {
	t.Parallel()
	for _, shape := range [][]int{{0}, {3, 0}, {0, 3}, {2, 0, 2}} {
		v := open(t, core.LayoutSpec{DType: core.Float32, Shape: shape}, nil, &core.ViewOptions{Writable: true})
		s, err := core.Slice[float32](v)
		if err != nil || s == nil || len(s) != 0 {
			t.Errorf("%v: Slice gives %v, %v", shape, s, err)
		}
		b, err := v.Bytes()
		if err != nil || b == nil || len(b) != 0 {
			t.Errorf("%v: Bytes gives %v, %v", shape, b, err)
		}
		values, err1 := core.Values[float32](v)
		rows, err2 := core.Rows[float32](v)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		for x := range values {
			t.Errorf("%v has the element %v", shape, x)
		}
		for i, row := range rows {
			t.Errorf("%v has the row %d %v", shape, i, row)
		}
		if n, err := core.Copy[float32](t.Context(), nil, v); n != 0 || err != nil {
			t.Errorf("%v: Copy gives %d, %v", shape, n, err)
		}
		if n, err := core.Put[float32](t.Context(), v, nil); n != 0 || err != nil {
			t.Errorf("%v: Put gives %d, %v", shape, n, err)
		}
		if n, err := core.CopyBytes(t.Context(), nil, v); n != 0 || err != nil {
			t.Errorf("%v: CopyBytes gives %d, %v", shape, n, err)
		}
		if _, err := core.At[float32](v, make([]int, len(shape))...); !errors.Is(err, core.ErrLayout) {
			t.Errorf("%v: At gives %v", shape, err)
		}
		if v.Addr() != 0 {
			t.Errorf("%v is at %#x", shape, v.Addr())
		}
	}
}

func TestScalarViews(t *testing.T) {
	t.Parallel()
	data := []int64{41}
	v := open(t, core.LayoutSpec{DType: core.Int64}, coretest.NewMemory(data), &core.ViewOptions{Writable: true})
	if err := core.Set[int64](v, 42); err != nil {
		t.Error(err)
	}
	if x, err := core.At[int64](v); x != 42 || err != nil {
		t.Errorf("At gives %d, %v", x, err)
	}
	rows, err := core.Rows[int64](v)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, row := range rows {
		if n++; i != 0 || !slices.Equal(row, []int64{42}) {
			t.Errorf("row %d is %v", i, row)
		}
	}
	if n != 1 {
		t.Errorf("%d rows", n)
	}
	if s, err := core.Slice[int64](v); err != nil || len(s) != 1 {
		t.Errorf("Slice gives %v, %v", s, err)
	}
}

func TestIndexErrors(t *testing.T) {
	t.Parallel()
	v := coretest.NewView(t, []float32{1, 2, 3, 4}, 2, 2)
	defer shut(t, v)
	for _, index := range [][]int{{}, {0}, {0, 2}, {-1, 0}, {0, 0, 0}} {
		if _, err := core.At[float32](v, index...); !errors.Is(err, core.ErrLayout) ||
			!strings.HasPrefix(err.Error(), "at "+t.Name()+": ") {
			t.Errorf("At %v: %v", index, err)
		}
		if err := core.Set[float32](v, 0, index...); !errors.Is(err, core.ErrLayout) ||
			!strings.HasPrefix(err.Error(), "set "+t.Name()+": ") {
			t.Errorf("Set %v: %v", index, err)
		}
	}
	for n := range 4 {
		dst := make([]float32, n)
		if m, err := core.Copy(t.Context(), dst, v); m != 0 || !errors.Is(err, core.ErrLayout) || slices.ContainsFunc(dst, isSet) {
			t.Errorf("Copy to %d elements: %d, %v, %v", n, m, err, dst)
		}
		if m, err := core.CopyBytes(t.Context(), make([]byte, 4*n+3), v); m != 0 || !errors.Is(err, core.ErrLayout) {
			t.Errorf("CopyBytes to %d bytes: %d, %v", 4*n+3, m, err)
		}
	}
	for _, n := range []int{0, 3, 5} {
		if m, err := core.Put(t.Context(), v, make([]float32, n)); m != 0 || !errors.Is(err, core.ErrLayout) {
			t.Errorf("Put of %d elements: %d, %v", n, m, err)
		}
	}
}

func isSet(x float32) bool { return x != 0 }
