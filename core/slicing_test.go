package core_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

func TestSlicing(t *testing.T) {
	t.Parallel()
	image := core.LayoutSpec{DType: core.Uint8, Shape: []int{4, 6, 3}, Offset: 100}
	for _, tc := range []struct {
		name    string
		f       func(core.Layout) (core.Layout, error)
		shape   []int
		strides []int
		offset  int
	}{
		{"rows", func(l core.Layout) (core.Layout, error) { return l.Sub(0, 1, 3) }, []int{2, 6, 3}, []int{18, 3, 1}, 118},
		{"columns", func(l core.Layout) (core.Layout, error) { return l.Sub(1, 2, 6) }, []int{4, 4, 3}, []int{18, 3, 1}, 106},
		{"all", func(l core.Layout) (core.Layout, error) { return l.Sub(2, 0, 3) }, []int{4, 6, 3}, []int{18, 3, 1}, 100},
		{"nothing", func(l core.Layout) (core.Layout, error) { return l.Sub(0, 4, 4) }, []int{0, 6, 3}, []int{18, 3, 1}, 100},
		{"a row", func(l core.Layout) (core.Layout, error) { return l.Select(0, 3) }, []int{6, 3}, []int{3, 1}, 154},
		{"a channel", func(l core.Layout) (core.Layout, error) { return l.Select(2, 1) }, []int{4, 6}, []int{18, 3}, 101},
		{"every second row", func(l core.Layout) (core.Layout, error) { return l.Step(0, 2) }, []int{2, 6, 3}, []int{36, 3, 1}, 100},
		{"every fourth column", func(l core.Layout) (core.Layout, error) { return l.Step(1, 4) }, []int{4, 2, 3}, []int{18, 12, 1}, 100},
		{"mirrored", func(l core.Layout) (core.Layout, error) { return l.Step(1, -1) }, []int{4, 6, 3}, []int{18, -3, 1}, 115},
		{"mirrored by twos", func(l core.Layout) (core.Layout, error) { return l.Step(1, -2) }, []int{4, 3, 3}, []int{18, -6, 1}, 115},
		{"a long step", func(l core.Layout) (core.Layout, error) { return l.Step(0, math.MaxInt) }, []int{1, 6, 3}, []int{18, 3, 1}, 100},
		{"a long step back", func(l core.Layout) (core.Layout, error) { return l.Step(0, math.MinInt) }, []int{1, 6, 3}, []int{18, 3, 1}, 154},
		{"transposed", func(l core.Layout) (core.Layout, error) { return l.Transpose() }, []int{3, 6, 4}, []int{1, 3, 18}, 100},
		{"channels first", func(l core.Layout) (core.Layout, error) { return l.Transpose(2, 0, 1) }, []int{3, 4, 6}, []int{1, 18, 3}, 100},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := layout(t, image)
			before := l.Spec()
			got, err := tc.f(l)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Shape(), tc.shape) || !slices.Equal(got.Strides(), tc.strides) || got.Offset() != tc.offset {
				t.Errorf("shape %v, strides %v, offset %d; want %v, %v, %d",
					got.Shape(), got.Strides(), got.Offset(), tc.shape, tc.strides, tc.offset)
			}
			if got.DType() != core.Uint8 || !layout(t, before).Equal(l) {
				t.Errorf("%v of %v", got, l)
			}
		})
	}
}

func TestSlicingRefuses(t *testing.T) {
	t.Parallel()
	l := layout(t, core.LayoutSpec{DType: core.Uint8, Shape: []int{4, 6}})
	packed := layout(t, core.LayoutSpec{DType: core.Int4, Shape: []int{4, 3}})
	for _, tc := range []struct {
		text string
		f    func() (core.Layout, error)
	}{
		{"no axis 2", func() (core.Layout, error) { return l.Sub(2, 0, 1) }},
		{"no axis -1", func() (core.Layout, error) { return l.Sub(-1, 0, 1) }},
		{"slice -1:1", func() (core.Layout, error) { return l.Sub(0, -1, 1) }},
		{"slice 2:1", func() (core.Layout, error) { return l.Sub(0, 2, 1) }},
		{"slice 0:5", func() (core.Layout, error) { return l.Sub(0, 0, 5) }},
		{"slice 5:5", func() (core.Layout, error) { return l.Sub(0, 5, 5) }},
		{"no axis 2", func() (core.Layout, error) { return l.Select(2, 0) }},
		{"index -1", func() (core.Layout, error) { return l.Select(0, -1) }},
		{"index 4", func() (core.Layout, error) { return l.Select(0, 4) }},
		{"no axis 2", func() (core.Layout, error) { return l.Step(2, 1) }},
		{"step 0", func() (core.Layout, error) { return l.Step(0, 0) }},
		{"[0] of 2 axes", func() (core.Layout, error) { return l.Transpose(0) }},
		{"[0 0] is no", func() (core.Layout, error) { return l.Transpose(0, 0) }},
		{"[0 2] is no", func() (core.Layout, error) { return l.Transpose(0, 2) }},
		{"[-1 0] is no", func() (core.Layout, error) { return l.Transpose(-1, 0) }},
		{"share bytes", func() (core.Layout, error) { return packed.Sub(1, 0, 2) }},
		{"share bytes", func() (core.Layout, error) { return packed.Sub(0, 1, 2) }},
		{"share bytes", func() (core.Layout, error) { return packed.Select(0, 1) }},
		{"share bytes", func() (core.Layout, error) { return packed.Step(0, 2) }},
		{"share bytes", func() (core.Layout, error) { return packed.Transpose() }},
	} {
		got, err := tc.f()
		if !errors.Is(err, core.ErrLayout) || err != nil && !strings.Contains(err.Error(), tc.text) {
			t.Errorf("want an error with %q, have %v", tc.text, err)
		}
		if got.Rank() != 0 || got.DType().Valid() {
			t.Errorf("%s: a layout was made: %v", tc.text, got)
		}
	}
}

// TestSlicingPacked has the slices of packed elements that there are: dense, from a byte on.
func TestSlicingPacked(t *testing.T) {
	t.Parallel()
	l := layout(t, core.LayoutSpec{DType: core.Int4, Shape: []int{4, 3}, Offset: 1})
	rows, err := l.Sub(0, 2, 4)
	if err != nil {
		t.Fatal(err)
	}
	lo, hi := rows.Span()
	if lo != 4 || hi != 7 || rows.Offset() != 4 || rows.Strides() != nil || !rows.Contiguous() || rows.Len() != 6 {
		t.Errorf("%+v spans [%d, %d)", rows.Spec(), lo, hi)
	}
	for name, f := range map[string]func() (core.Layout, error){
		"all":      func() (core.Layout, error) { return l.Sub(1, 0, 3) },
		"nothing":  func() (core.Layout, error) { return l.Sub(1, 1, 1) },
		"step":     func() (core.Layout, error) { return l.Step(1, 1) },
		"identity": func() (core.Layout, error) { return l.Transpose(0, 1) },
		"a row":    func() (core.Layout, error) { return rows.Select(0, 0) },
	} {
		if _, err := f(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSlicingKeepsReadOnly: a part of an array that overlaps itself is not writable for its being
// small.
func TestSlicingKeepsReadOnly(t *testing.T) {
	t.Parallel()
	l := layout(t, core.LayoutSpec{DType: core.Int8, Shape: []int{4, 3}, Strides: []int{0, 1}})
	row, err := l.Select(0, 0)
	if err != nil || !row.ReadOnly() || !row.Contiguous() {
		t.Errorf("read-only %v, contiguous %v, %v", row.ReadOnly(), row.Contiguous(), err)
	}
}

func TestIndex(t *testing.T) {
	t.Parallel()
	l := layout(t, core.LayoutSpec{DType: core.Float64, Shape: []int{3, 4}, Strides: []int{-32, 8}, Offset: 64})
	for _, tc := range []struct {
		index []int
		want  int
	}{{[]int{0, 0}, 64}, {[]int{2, 3}, 24}, {[]int{1, 0}, 32}} {
		if got, err := l.Index(tc.index...); err != nil || got != tc.want {
			t.Errorf("element %v at %d, %v; want %d", tc.index, got, err, tc.want)
		}
	}
	for _, index := range [][]int{{}, {1}, {1, 1, 1}, {3, 0}, {0, 4}, {-1, 0}, {0, math.MinInt}, {math.MaxInt, 0}} {
		if got, err := l.Index(index...); !errors.Is(err, core.ErrLayout) {
			t.Errorf("element %v at %d, %v", index, got, err)
		}
	}
	packed := layout(t, core.LayoutSpec{DType: core.Int4, Shape: []int{2, 3}, Offset: 10})
	for flat, want := range []int{10, 10, 11, 11, 12, 12} {
		if got, err := packed.Index(flat/3, flat%3); err != nil || got != want {
			t.Errorf("packed element %d at %d, %v; want %d", flat, got, err, want)
		}
	}
	if got, err := layout(t, core.LayoutSpec{DType: core.Int8, Offset: 5}).Index(); err != nil || got != 5 {
		t.Errorf("the element of an array of rank 0 at %d, %v", got, err)
	}
}

func TestOffsetsBreak(t *testing.T) {
	t.Parallel()
	for _, d := range []core.DType{core.Int4, core.Int16} {
		seen := 0
		for range layout(t, core.LayoutSpec{DType: d, Shape: []int{3, 3}}).Offsets() {
			if seen++; seen == 4 {
				break
			}
		}
		if seen != 4 {
			t.Errorf("%v: the loop ended after %d", d, seen)
		}
	}
}

func TestLayoutAs(t *testing.T) {
	t.Parallel()
	opaque16, err := core.Opaque(16)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		spec    core.LayoutSpec
		to      core.DType
		shape   []int
		strides []int
	}{
		{"same", core.LayoutSpec{DType: core.Int4, Shape: []int{3}}, core.Int4, []int{3}, nil},
		{
			"same size",
			core.LayoutSpec{DType: core.Float64, Shape: []int{2, 2}, Strides: []int{8, 16}},
			core.Uint64,
			[]int{2, 2},
			[]int{8, 16},
		},
		{"tag", core.LayoutSpec{DType: 3<<24 | 8<<16 | 8, Shape: []int{3}, Tag: ">f8"}, core.Int64, []int{3}, []int{8}},
		{
			"smaller",
			core.LayoutSpec{DType: opaque16, Shape: []int{2, 3}, Strides: []int{96, 16}},
			core.Float32,
			[]int{2, 12},
			[]int{96, 4},
		},
		{
			"larger",
			core.LayoutSpec{DType: core.Uint8, Shape: []int{2, 8}, Strides: []int{-8, 1}, Offset: 8},
			core.Uint32,
			[]int{2, 2},
			[]int{-8, 4},
		},
		{"lanes", core.LayoutSpec{DType: core.Float32 + 3, Shape: []int{5}}, core.Float32, []int{20}, []int{4}},
		{
			"one element",
			core.LayoutSpec{DType: core.Complex128, Shape: []int{1}, Strides: []int{-5}},
			core.Float64,
			[]int{2},
			[]int{8},
		},
		{"empty", core.LayoutSpec{DType: core.Uint8, Shape: []int{3, 0}}, core.Int64, []int{3, 0}, []int{1, 8}},
		{"scalar", core.LayoutSpec{DType: core.Float32}, core.Int32, []int{}, []int{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := layout(t, tc.spec)
			got, err := l.As(tc.to)
			if err != nil {
				t.Fatal(err)
			}
			if got.DType() != tc.to || !slices.Equal(got.Shape(), tc.shape) || !slices.Equal(got.Strides(), tc.strides) {
				t.Errorf("%v, strides %v", got, got.Strides())
			}
			lo, hi := l.Span()
			if a, b := got.Span(); a != lo || b != hi || got.NBytes() != l.NBytes() {
				t.Errorf("span [%d, %d) became [%d, %d)", lo, hi, a, b)
			}
			if got.DType() != l.DType() && got.Tag() != "" {
				t.Errorf("tag %q", got.Tag())
			}
			if again := layout(t, got.Spec()); !again.Equal(got) {
				t.Errorf("%+v", got.Spec())
			}
		})
	}
	for name, tc := range map[string]struct {
		spec core.LayoutSpec
		to   core.DType
	}{
		"invalid":     {core.LayoutSpec{DType: core.Int8}, core.Invalid},
		"unknown":     {core.LayoutSpec{DType: core.Int8, Shape: []int{4}}, 99<<24 | 8<<16 | 1},
		"from packed": {core.LayoutSpec{DType: core.Int4, Shape: []int{4}}, core.Uint8},
		"to packed":   {core.LayoutSpec{DType: core.Uint8, Shape: []int{4}}, core.Int4},
		"scalar":      {core.LayoutSpec{DType: core.Float64}, core.Float32},
		"odd":         {core.LayoutSpec{DType: core.Uint8, Shape: []int{7}}, core.Uint16},
		"not dense":   {core.LayoutSpec{DType: core.Uint8, Shape: []int{8}, Strides: []int{2}}, core.Uint16},
		"broadcast":   {core.LayoutSpec{DType: core.Uint8, Shape: []int{8}, Strides: []int{0}}, core.Uint16},
		"transposed":  {core.LayoutSpec{DType: core.Uint8, Shape: []int{8, 4}, Strides: []int{1, 8}}, core.Uint16},
	} {
		if got, err := layout(t, tc.spec).As(tc.to); !errors.Is(err, core.ErrDType) || got.DType().Valid() {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
