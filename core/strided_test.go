package core_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// gathered takes the elements out of what Strided gives, in row-major order.
func gathered[T core.Element](data []T, offset int, strides, shape []int) []T {
	n := 1
	for _, dim := range shape {
		n *= dim
	}
	out := make([]T, 0, n)
	for flat := range n {
		at, rest := offset, flat
		for axis, dim := range slices.Backward(shape) {
			at += rest % dim * strides[axis]
			rest /= dim
		}
		out = append(out, data[at])
	}
	return out
}

// cut derives a random part of v, which is closed when the test ends.
func cut(t *testing.T, r *rand.Rand, v *core.View) *core.View {
	t.Helper()
	var w *core.View
	var err error
	axis := r.IntN(v.Rank())
	switch r.IntN(3) {
	case 0:
		lo := r.IntN(v.Dim(axis))
		w, err = v.Sub(axis, lo, lo+1+r.IntN(v.Dim(axis)-lo))
	case 1:
		w, err = v.Step(axis, []int{-3, -2, -1, 2, 3}[r.IntN(5)])
	default:
		w, err = v.Transpose(r.Perm(v.Rank())...)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, w) })
	return w
}

// TestStridedAgreesWithCopy derives random parts of an array, one from the other: what Strided describes is what
// Copy copies, and its slice reaches from the first of these elements to the last.
func TestStridedAgreesWithCopy(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		numbers := make([]int32, 3*4*5)
		for i := range numbers {
			numbers[i] = int32(i)
		}
		whole := coretest.NewView(t, numbers, 3, 4, 5)
		t.Cleanup(func() { shut(t, whole) })
		v := whole
		for range 1 + r.IntN(4) {
			v = cut(t, r, v)
		}
		data, offset, strides, err := core.Strided[int32](v)
		if err != nil {
			t.Fatalf("%v, strides %v: %v", v, v.Strides(), err)
		}
		want := make([]int32, v.Len())
		if _, err := core.Copy(t.Context(), want, v); err != nil {
			t.Fatal(err)
		}
		if got := gathered(data, offset, strides, v.Shape()); !slices.Equal(got, want) {
			t.Errorf("%v, strides %v: %v, want %v", v, v.Strides(), got, want)
		}
		if first, last := slices.Min(want), slices.Max(want); data[0] != first || data[len(data)-1] != last {
			t.Errorf("%v, strides %v: the slice is from %d to %d, the elements from %d to %d",
				v, v.Strides(), data[0], data[len(data)-1], first, last)
		}
	}
}

func TestStridedWritesThrough(t *testing.T) {
	t.Parallel()
	numbers := []float64{0, 1, 2, 3, 4, 5}
	v := coretest.NewView(t, numbers, 2, 3)
	defer shut(t, v)
	column, err := v.Select(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, column)
	data, offset, strides, err := core.Strided[float64](column)
	if err != nil {
		t.Fatal(err)
	}
	data[offset+strides[0]] = 40
	if numbers[4] != 40 || len(data) != 4 || cap(data) != 4 {
		t.Errorf("%v by a slice of %d, capacity %d", numbers, len(data), cap(data))
	}
}

func TestStridedRefuses(t *testing.T) {
	t.Parallel()
	memory := func() core.Memory { return coretest.NewMemory(make([]float64, 8)) }
	for name, tc := range map[string]struct {
		spec core.LayoutSpec
		want error
	}{
		"another type":       {core.LayoutSpec{DType: core.Int32, Shape: []int{2}}, core.ErrDType},
		"between elements":   {core.LayoutSpec{DType: core.Complex128, Shape: []int{2}, Strides: []int{24}}, core.ErrLayout},
		"misaligned":         {core.LayoutSpec{DType: core.Complex128, Shape: []int{2}, Offset: 4}, core.ErrLayout},
		"memory of a device": {core.LayoutSpec{DType: core.Complex128, Shape: []int{2}, Device: core.Device{Kind: core.CUDA}}, core.ErrDevice},
		"packed":             {core.LayoutSpec{DType: core.Int4, Shape: []int{2}}, core.ErrDType},
		"one element":        {core.LayoutSpec{DType: core.Complex128, Shape: []int{1}, Strides: []int{24}}, nil},
		"no element":         {core.LayoutSpec{DType: core.Complex128, Shape: []int{0, 2}, Strides: []int{24, 7}}, nil},
	} {
		v := open(t, tc.spec, memory(), nil)
		data, _, _, err := core.Strided[complex128](v)
		if !errors.Is(err, tc.want) || tc.want != nil && core.Category(err) != core.Category(tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		if tc.want == nil && len(data) != v.Len() {
			t.Errorf("%s: %d elements", name, len(data))
		}
	}
	v := coretest.NewView(t, []complex128{1})
	shut(t, v)
	if _, _, _, err := core.Strided[complex128](v); !errors.Is(err, core.ErrClosed) {
		t.Errorf("a closed view: %v", err)
	}
}
