package core_test

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// layout makes a Layout that the test takes for granted.
func layout(tb testing.TB, s core.LayoutSpec) core.Layout {
	tb.Helper()
	l, err := core.NewLayout(s)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func TestNewLayout(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		spec       core.LayoutSpec
		strides    []int
		n          int
		lo, hi     int
		contiguous bool
		readOnly   bool
		text       string
	}{
		{"scalar", core.LayoutSpec{DType: core.Float64}, []int{}, 1, 0, 8, true, false, "float64[]"},
		{
			"row-major",
			core.LayoutSpec{DType: core.Float32, Shape: []int{2, 3, 4}},
			[]int{48, 16, 4},
			24, 0, 96, true, false, "float32[2 3 4]",
		},
		{
			"offset",
			core.LayoutSpec{DType: core.Uint8, Shape: []int{5}, Offset: 7},
			[]int{1},
			5, 7, 12, true, false, "uint8[5]",
		},
		{
			"offset before the memory",
			core.LayoutSpec{DType: core.Uint8, Shape: []int{5}, Offset: -3},
			[]int{1},
			5, -3, 2, true, false, "uint8[5]",
		},
		{
			"fortran",
			core.LayoutSpec{DType: core.Float64, Shape: []int{3, 4}, Strides: []int{8, 24}},
			[]int{8, 24},
			12, 0, 96, false, false, "float64[3 4]",
		},
		{
			"reversed",
			core.LayoutSpec{DType: core.Int16, Shape: []int{4}, Strides: []int{-2}, Offset: 6},
			[]int{-2},
			4, 0, 8, false, false, "int16[4]",
		},
		{
			"reversed below 0",
			core.LayoutSpec{DType: core.Int16, Shape: []int{4}, Strides: []int{-2}},
			[]int{-2},
			4, -6, 2, false, false, "int16[4]",
		},
		{
			"both signs",
			core.LayoutSpec{DType: core.Int32, Shape: []int{3, 5}, Strides: []int{-20, 4}, Offset: 40},
			[]int{-20, 4},
			15, 0, 60, false, false, "int32[3 5]",
		},
		{
			"column",
			core.LayoutSpec{DType: core.Float32, Shape: []int{10}, Strides: []int{40}, Offset: 4},
			[]int{40},
			10, 4, 368, false, false, "float32[10]",
		},
		{
			"broadcast",
			core.LayoutSpec{DType: core.Float32, Shape: []int{4, 3}, Strides: []int{0, 4}},
			[]int{0, 4},
			12, 0, 12, false, true, "float32[4 3]",
		},
		{
			"broadcast inside",
			core.LayoutSpec{DType: core.Float32, Shape: []int{3, 4}, Strides: []int{4, 0}},
			[]int{4, 0},
			12, 0, 12, false, true, "float32[3 4]",
		},
		{
			"broadcast of extent 1",
			core.LayoutSpec{DType: core.Float32, Shape: []int{1, 3}, Strides: []int{0, 4}},
			[]int{0, 4},
			3, 0, 12, true, false, "float32[1 3]",
		},
		{
			"sliding window",
			core.LayoutSpec{DType: core.Float32, Shape: []int{6, 3}, Strides: []int{4, 4}},
			[]int{4, 4},
			18, 0, 32, false, true, "float32[6 3]",
		},
		{
			"elements that overlap by a byte",
			core.LayoutSpec{DType: core.Int32, Shape: []int{3}, Strides: []int{3}},
			[]int{3},
			3, 0, 10, false, true, "int32[3]",
		},
		{
			"extent 1 with any stride",
			core.LayoutSpec{DType: core.Int8, Shape: []int{1, 2}, Strides: []int{math.MinInt, 1}},
			[]int{math.MinInt, 1},
			2, 0, 2, true, false, "int8[1 2]",
		},
		{
			"field of a structure",
			core.LayoutSpec{DType: core.Float64, Shape: []int{3}, Strides: []int{13}, Offset: 5},
			[]int{13},
			3, 5, 39, false, false, "float64[3]",
		},
		{"empty", core.LayoutSpec{DType: core.Float32, Shape: []int{0}}, []int{4}, 0, 0, 0, true, false, "float32[0]"},
		{
			"empty inside",
			core.LayoutSpec{DType: core.Float32, Shape: []int{2, 0, 3}, Offset: 9},
			[]int{12, 12, 4},
			0, 9, 9, true, false, "float32[2 0 3]",
		},
		{
			"empty with odd strides",
			core.LayoutSpec{DType: core.Float32, Shape: []int{0, 3}, Strides: []int{math.MaxInt, -1}},
			[]int{math.MaxInt, -1},
			0, 0, 0, true, false, "float32[0 3]",
		},
		{
			"read-only",
			core.LayoutSpec{DType: core.Bool, Shape: []int{2}, ReadOnly: true},
			[]int{1},
			2, 0, 2, true, true, "bool[2]",
		},
		{"packed", core.LayoutSpec{DType: core.Int4, Shape: []int{3, 3}, Offset: 2}, nil, 9, 2, 7, true, false, "int4[3 3]"},
		{"packed scalar", core.LayoutSpec{DType: core.Int4, Strides: []int{}}, nil, 1, 0, 1, true, false, "int4[]"},
		{
			"packed, whole bytes",
			core.LayoutSpec{DType: coretest.DType("float6_e2m3fn"), Shape: []int{4}},
			nil, 4, 0, 3, true, false,
			"float6_e2m3fn[4]",
		},
		{"lanes", core.LayoutSpec{DType: core.Float32 + 3, Shape: []int{2}}, []int{16}, 2, 0, 32, true, false, "float32x4[2]"},
		{
			"tag",
			core.LayoutSpec{DType: 3<<24 | 8<<16 | 8, Shape: []int{2}, Tag: "datetime64[ns]"},
			[]int{8},
			2, 0, 16, true, false, "datetime64[ns][2]",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := layout(t, tc.spec)
			lo, hi := l.Span()
			if l.Len() != tc.n || lo != tc.lo || hi != tc.hi {
				t.Errorf("%d elements in [%d, %d), want %d in [%d, %d)", l.Len(), lo, hi, tc.n, tc.lo, tc.hi)
			}
			if !reflect.DeepEqual(l.Strides(), tc.strides) {
				t.Errorf("strides %v, want %v", l.Strides(), tc.strides)
			}
			if l.Contiguous() != tc.contiguous || l.ReadOnly() != tc.readOnly {
				t.Errorf("contiguous %v, read-only %v", l.Contiguous(), l.ReadOnly())
			}
			if l.String() != tc.text {
				t.Errorf("text %q", l)
			}
			if l.DType() != tc.spec.DType || l.Offset() != tc.spec.Offset || l.Tag() != tc.spec.Tag ||
				l.Device() != tc.spec.Device || !slices.Equal(l.Shape(), tc.spec.Shape) || l.Rank() != len(tc.spec.Shape) {
				t.Errorf("%+v became %+v", tc.spec, l.Spec())
			}
			again := layout(t, l.Spec())
			if !again.Equal(l) || !reflect.DeepEqual(again.Spec(), l.Spec()) {
				t.Errorf("%+v became %+v", l.Spec(), again.Spec())
			}
		})
	}
}

func TestNewLayoutRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		spec core.LayoutSpec
		kind error
		text string
	}{
		{"no dtype", core.LayoutSpec{Shape: []int{1}}, core.ErrDType, "invalid"},
		{"unknown dtype", core.LayoutSpec{DType: 99<<24 | 8<<16 | 1}, core.ErrDType, "0x63080001"},
		{"no lanes", core.LayoutSpec{DType: 2<<24 | 32<<16}, core.ErrDType, "invalid"},
		{"unknown device", core.LayoutSpec{DType: core.Int8, Device: core.Device{Kind: 200}}, core.ErrDevice, "200"},
		{
			"negative device",
			core.LayoutSpec{DType: core.Int8, Device: core.Device{Kind: core.CUDA, Index: -1}},
			core.ErrDevice, "-1",
		},
		{"rank", core.LayoutSpec{DType: core.Int8, Shape: make([]int, 65)}, core.ErrLayout, "65 axes"},
		{"negative extent", core.LayoutSpec{DType: core.Int8, Shape: []int{2, -1}}, core.ErrLayout, "extent -1 of axis 1"},
		{
			"too few strides",
			core.LayoutSpec{DType: core.Int8, Shape: []int{2, 2}, Strides: []int{1}},
			core.ErrLayout, "1 strides for 2",
		},
		{"no strides", core.LayoutSpec{DType: core.Int8, Shape: []int{2}, Strides: []int{}}, core.ErrLayout, "0 strides"},
		{"too many strides", core.LayoutSpec{DType: core.Int8, Strides: []int{1}}, core.ErrLayout, "1 strides for 0"},
		{
			"packed strides",
			core.LayoutSpec{DType: core.Int4, Shape: []int{2}, Strides: []int{1}},
			core.ErrLayout, "share bytes",
		},
		{"size", core.LayoutSpec{DType: core.Int8, Shape: []int{1 << 40, 1 << 40}}, core.ErrLayout, "larger"},
		{"size to zero", core.LayoutSpec{DType: core.Int8, Shape: []int{1 << 32, 1 << 32}}, core.ErrLayout, "larger"},
		{"size by bytes", core.LayoutSpec{DType: core.Int64, Shape: []int{1 << 60}}, core.ErrLayout, "larger"},
		{"size of packed", core.LayoutSpec{DType: core.Int4, Shape: []int{1 << 61}}, core.ErrLayout, "larger"},
		{
			"size behind an empty axis",
			core.LayoutSpec{DType: core.Int8, Shape: []int{0, 1 << 40, 1 << 40}},
			core.ErrLayout, "larger",
		},
		{"stride", core.LayoutSpec{DType: core.Int8, Shape: []int{3}, Strides: []int{math.MaxInt}}, core.ErrLayout, "reach"},
		{
			"lowest stride",
			core.LayoutSpec{DType: core.Int8, Shape: []int{2}, Strides: []int{math.MinInt}},
			core.ErrLayout, "reach",
		},
		{
			"strides up",
			core.LayoutSpec{DType: core.Int8, Shape: []int{2, 2}, Strides: []int{math.MaxInt - 1, math.MaxInt - 1}},
			core.ErrLayout, "reach",
		},
		{"strides down", core.LayoutSpec{
			DType: core.Int8, Shape: []int{2, 2}, Strides: []int{-math.MaxInt, -math.MaxInt}, Offset: math.MaxInt,
		}, core.ErrLayout, "reach"},
		{"strides apart", core.LayoutSpec{
			DType: core.Int8, Shape: []int{2, 2}, Strides: []int{-math.MaxInt / 2, math.MaxInt/2 + 2},
		}, core.ErrLayout, "reach"},
		{
			"element size",
			core.LayoutSpec{DType: core.Int64, Shape: []int{2}, Strides: []int{math.MaxInt - 4}},
			core.ErrLayout, "reach",
		},
		{"offset", core.LayoutSpec{DType: core.Int8, Shape: []int{2}, Offset: math.MaxInt}, core.ErrLayout, "reach"},
		{
			"low offset",
			core.LayoutSpec{DType: core.Int8, Shape: []int{2}, Strides: []int{-1}, Offset: math.MinInt},
			core.ErrLayout, "reach",
		},
		{
			"packed offset",
			core.LayoutSpec{DType: core.Int4, Shape: []int{4}, Offset: math.MaxInt - 1},
			core.ErrLayout, "reach",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l, err := core.NewLayout(tc.spec)
			if !errors.Is(err, tc.kind) || err != nil && !strings.Contains(err.Error(), tc.text) {
				t.Errorf("want %q with %q, have %v", tc.kind, tc.text, err)
			}
			if l.Len() != 0 || l.DType() != core.Invalid {
				t.Errorf("a layout was made: %v", l)
			}
		})
	}
}

// TestLayoutLimits has what is just possible.
func TestLayoutLimits(t *testing.T) {
	t.Parallel()
	shape := slices.Repeat([]int{1}, core.MaxRank)
	if l := layout(t, core.LayoutSpec{DType: core.Int8, Shape: shape}); l.Rank() != 64 || l.Len() != 1 {
		t.Errorf("rank %d with %d elements", l.Rank(), l.Len())
	}
	l := layout(t, core.LayoutSpec{DType: core.Int8, Shape: []int{math.MaxInt}})
	if _, hi := l.Span(); hi != math.MaxInt || l.NBytes() != math.MaxInt64 {
		t.Errorf("span to %d, %d bytes", hi, l.NBytes())
	}
	l = layout(t, core.LayoutSpec{
		DType: core.Int8, Shape: []int{2}, Strides: []int{-(math.MaxInt - 1)}, Offset: math.MaxInt - 1,
	})
	if lo, hi := l.Span(); lo != 0 || hi != math.MaxInt {
		t.Errorf("span [%d, %d)", lo, hi)
	}
	l = layout(t, core.LayoutSpec{DType: core.Int4, Shape: []int{math.MaxInt / 4}})
	if want := int64((uint64(math.MaxInt/4)*4 + 7) / 8); l.NBytes() != want {
		t.Errorf("%d bytes, want %d", l.NBytes(), want)
	}
}

func TestLayoutIsImmutable(t *testing.T) {
	t.Parallel()
	spec := core.LayoutSpec{DType: core.Int8, Shape: []int{2, 3}, Strides: []int{3, 1}}
	l := layout(t, spec)
	want := l.Spec()
	spec.Shape[0], spec.Strides[0] = 100, 100
	l.Shape()[0], l.Strides()[0] = 100, 100
	s := l.Spec()
	s.Shape[0], s.Strides[0] = 100, 100
	if !reflect.DeepEqual(l.Spec(), want) || l.Dim(0) != 2 || l.Stride(0) != 3 {
		t.Errorf("%+v became %+v", want, l.Spec())
	}
}

func TestLayoutEqual(t *testing.T) {
	t.Parallel()
	base := core.LayoutSpec{DType: 3<<24 | 8<<16 | 4, Shape: []int{2, 2}, Strides: []int{8, 4}}
	l := layout(t, base)
	if !l.Equal(layout(t, base)) {
		t.Error("a layout does not equal itself")
	}
	for name, change := range map[string]func(*core.LayoutSpec){
		"dtype":   func(s *core.LayoutSpec) { s.DType = core.Int32 },
		"device":  func(s *core.LayoutSpec) { s.Device.Index = 1 },
		"shape":   func(s *core.LayoutSpec) { s.Shape = []int{2, 1} },
		"strides": func(s *core.LayoutSpec) { s.Strides = []int{4, 8} },
		"rank":    func(s *core.LayoutSpec) { s.Shape, s.Strides = []int{4}, []int{4} },
		"offset":  func(s *core.LayoutSpec) { s.Offset = 4 },
		"access":  func(s *core.LayoutSpec) { s.ReadOnly = true },
		"tag":     func(s *core.LayoutSpec) { s.Tag = "|V4" },
	} {
		other := base
		change(&other)
		if l.Equal(layout(t, other)) {
			t.Errorf("a layout equals one of another %s", name)
		}
	}
}

func TestAxisPanics(t *testing.T) {
	t.Parallel()
	packed := layout(t, core.LayoutSpec{DType: core.Int4, Shape: []int{2}})
	plain := layout(t, core.LayoutSpec{DType: core.Int8, Shape: []int{2}})
	for name, f := range map[string]func(){
		"dim":           func() { plain.Dim(1) },
		"stride":        func() { plain.Stride(-1) },
		"packed stride": func() { packed.Stride(1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s outside of the axes did not panic", name)
				}
			}()
			f()
		}()
	}
	if packed.Stride(0) != 0 {
		t.Errorf("packed elements have a stride of %d", packed.Stride(0))
	}
}

func TestZeroLayout(t *testing.T) {
	t.Parallel()
	var l core.Layout
	if l.Len() != 0 || l.Rank() != 0 || l.NBytes() != 0 || l.DType().Valid() {
		t.Errorf("the zero Layout is %v of %d elements", l, l.Len())
	}
	for range l.Offsets() {
		t.Error("the zero Layout has an element")
	}
	if _, err := core.NewLayout(l.Spec()); !errors.Is(err, core.ErrDType) {
		t.Errorf("its description is accepted: %v", err)
	}
	if _, err := l.As(core.Int8); !errors.Is(err, core.ErrDType) {
		t.Errorf("it has elements of another type: %v", err)
	}
}
