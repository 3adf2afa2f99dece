package names

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

// cut gives the part of an array that an index, written as in Python, means.
func cut(t *testing.T, l core.Layout, index string) (core.Layout, error) {
	t.Helper()
	p, err := Parse("x" + index)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Steps {
		if l, err = Cut(l, s.Index()); err != nil {
			return l, err
		}
	}
	return l, nil
}

func TestCut(t *testing.T) {
	t.Parallel()
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{4, 5, 6}})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		index          string
		shape, strides []int
		offset         int
	}{
		{"[1]", []int{5, 6}, []int{6, 1}, 30},
		{"[-1, -1, -1]", []int{}, []int{}, 119},
		{"[::2, 1:]", []int{2, 4, 6}, []int{60, 6, 1}, 6},
		{"[0, ..., 3:]", []int{5, 3}, []int{6, 1}, 3},
		{"[..., 0]", []int{4, 5}, []int{30, 6}, 0},
		{"[..., None]", []int{4, 5, 6, 1}, []int{30, 6, 1, 0}, 0},
		{"[None, 2, None, ::-1]", []int{1, 1, 5, 6}, []int{0, 0, -6, 1}, 60 + 24},
		{"[::-3, 4:0:-2]", []int{2, 2, 6}, []int{-90, -12, 1}, 90 + 24},
		{"[1:2][0][::2]", []int{3, 6}, []int{12, 1}, 30},
		{"[-100:100:1, 3:-1]", []int{4, 1, 6}, []int{30, 6, 1}, 18},
		{"[..., :99999999999999999999]", []int{4, 5, 6}, []int{30, 6, 1}, 0},
	}
	for _, tt := range tests {
		part, err := cut(t, l, tt.index)
		if err != nil || !slices.Equal(part.Shape(), tt.shape) || !slices.Equal(part.Strides(), tt.strides) || part.Offset() != tt.offset {
			t.Errorf("%s: %v %v at %d, %v", tt.index, part.Shape(), part.Strides(), part.Offset(), err)
		}
	}
	for index, shape := range map[string][]int{
		"[4:]": {0, 5, 6}, "[2:1]": {0, 5, 6}, "[:, 1:4:-1]": {4, 0, 6}, "[:0, None]": {0, 1, 5, 6},
	} {
		if part, err := cut(t, l, index); err != nil || !slices.Equal(part.Shape(), shape) || part.Len() != 0 {
			t.Errorf("%s: %v, %v", index, part.Shape(), err)
		}
	}
}

func TestCutErrors(t *testing.T) {
	t.Parallel()
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{4, 5}})
	if err != nil {
		t.Fatal(err)
	}
	packed, err := core.NewLayout(core.LayoutSpec{DType: core.Int4, Shape: []int{4, 4}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		of    core.Layout
		index string
		kind  error
		text  string
	}{
		{l, "[4]", core.ErrNotFound, "index 4 is out of bounds for axis 0 with size 4"},
		{l, "[None, 1:, -6]", core.ErrNotFound, "index -6 is out of bounds for axis 1 with size 5"},
		{l, "[..., 5]", core.ErrNotFound, "index 5 is out of bounds for axis 1 with size 5"},
		{l, "[0, 0, 0]", core.ErrLayout, "too many indices: the array has 2 axes, but 3 were indexed"},
		{l, "[" + strings.Repeat("None, ", core.MaxRank-1) + "]", core.ErrLayout, "at most 64"},
		{packed, "[:, ::2]", core.ErrLayout, "share bytes"},
	} {
		if _, err := cut(t, tt.of, tt.index); !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%.40s: %v", tt.index, err)
		}
	}
	if part, err := cut(t, packed, "[1:3, None]"); err != nil || part.Offset() != 2 || !slices.Equal(part.Shape(), []int{2, 1, 4}) {
		t.Errorf("rows of packed elements: %v at %d, %v", part.Shape(), part.Offset(), err)
	}
}

// FuzzIndices compares ranges with the elements that they mean one by one.
func FuzzIndices(f *testing.F) {
	f.Add(uint8(10), int64(2), int64(-1), int64(3), uint8(7))
	f.Add(uint8(0), int64(0), int64(0), int64(-1), uint8(4))
	f.Add(uint8(5), int64(math.MinInt64), int64(math.MaxInt64), int64(math.MinInt64), uint8(7))
	f.Fuzz(func(t *testing.T, size uint8, start, stop, step int64, given uint8) {
		if step == 0 {
			return
		}
		n := int(size)
		s := Subscript{Kind: Range, Start: Bound{given&1 != 0, start}, Stop: Bound{given&2 != 0, stop}, Step: Bound{given&4 != 0, step}}
		first, by, count := s.Indices(n)
		var got []int
		for i := range count {
			got = append(got, first+i*by)
		}
		if want := elements(n, s); !slices.Equal(got, want) {
			t.Errorf("%v of %d: %v, want %v", s, n, got, want)
		}
	})
}

// elements is what Python's reference says: i = start + k * step, as long as that lies before stop.
func elements(n int, s Subscript) (all []int) {
	at := func(b Bound, otherwise int) int {
		switch {
		case !b.Given:
			return otherwise
		case b.N < 0 && b.N < int64(-n):
			return -1
		case b.N < 0:
			return int(b.N) + n
		default:
			return int(min(b.N, int64(n)))
		}
	}
	step := s.Step.or(1)
	if step > 0 {
		for i := int64(max(at(s.Start, 0), 0)); i < int64(at(s.Stop, n)); i += step {
			if all = append(all, int(i)); step > int64(n) {
				break
			}
		}
		return all
	}
	for i := int64(min(at(s.Start, n-1), n-1)); i > int64(at(s.Stop, -1)); i += step {
		if all = append(all, int(i)); step < int64(-n) {
			break
		}
	}
	return all
}
