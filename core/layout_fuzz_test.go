package core_test

import (
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// A model is an array by brute force: where each element begins, in row-major order. For packed types
// places count bits.
type model struct {
	shape  []int
	places []int
}

// modelOf computes a model from a description. Axes and extents are small.
func modelOf(s core.LayoutSpec) model {
	m := model{shape: slices.Clone(s.Shape)}
	n := 1
	for _, dim := range s.Shape {
		n *= dim
	}
	for flat := range n {
		rest, place := flat, s.Offset
		if s.DType.Packed() {
			m.places = append(m.places, s.Offset*8+flat*s.DType.Bits()*s.DType.Lanes())
			continue
		}
		stride := s.DType.Size()
		for axis, dim := range slices.Backward(s.Shape) {
			i := rest % dim
			rest /= dim
			if s.Strides != nil {
				stride = s.Strides[axis]
			}
			place += i * stride
			stride *= dim
		}
		m.places = append(m.places, place)
	}
	return m
}

// pick makes the model whose element with index i is the element of m with index f(i).
func (m model) pick(shape []int, f func(index []int) []int) model {
	result := model{shape: shape}
	n := 1
	for _, dim := range shape {
		n *= dim
	}
	index := make([]int, len(shape))
	for range n {
		flat := 0
		for axis, i := range f(slices.Clone(index)) {
			flat = flat*m.shape[axis] + i
		}
		result.places = append(result.places, m.places[flat])
		for axis, dim := range slices.Backward(shape) {
			if index[axis]++; index[axis] < dim {
				break
			}
			index[axis] = 0
		}
	}
	return result
}

// overlaps reports whether two elements of size bytes share one.
func (m model) overlaps(size int) bool {
	sorted := slices.Sorted(slices.Values(m.places))
	for i := 1; i < len(sorted); i++ {
		if sorted[i] < sorted[i-1]+size {
			return true
		}
	}
	return false
}

// dense reports whether the elements lie in order without gaps.
func (m model) dense(size int) bool {
	for i := 1; i < len(m.places); i++ {
		if m.places[i] != m.places[i-1]+size {
			return false
		}
	}
	return true
}

// agree compares a Layout with its model.
func agree(t *testing.T, l core.Layout, m model) {
	t.Helper()
	if !slices.Equal(l.Shape(), m.shape) || l.Len() != len(m.places) {
		t.Fatalf("shape %v of %d elements, want %v of %d", l.Shape(), l.Len(), m.shape, len(m.places))
	}
	unit, size := 1, l.DType().Size()
	if l.DType().Packed() {
		unit, size = 8, l.DType().Bits()*l.DType().Lanes()
	}
	i := 0
	for offset := range l.Offsets() {
		if offset != floorDiv(m.places[i], unit) {
			t.Fatalf("%+v: element %d at %d, want %d", l.Spec(), i, offset, m.places[i])
		}
		i++
	}
	if i != len(m.places) {
		t.Fatalf("%d offsets of %d elements", i, len(m.places))
	}
	lo, hi := l.Span()
	if len(m.places) == 0 {
		if lo != hi {
			t.Fatalf("span [%d, %d) without elements", lo, hi)
		}
	} else if wantLo, wantHi := slices.Min(m.places), slices.Max(m.places)+size; lo != floorDiv(wantLo, unit) ||
		hi != -floorDiv(-wantHi, unit) {
		t.Fatalf("%+v: span [%d, %d), want [%d, %d)/%d", l.Spec(), lo, hi, wantLo, wantHi, unit)
	}
	if l.Contiguous() != m.dense(size) {
		t.Fatalf("%+v: contiguous %v, want %v", l.Spec(), l.Contiguous(), m.dense(size))
	}
	if m.overlaps(size) && !l.ReadOnly() {
		t.Fatalf("%+v: elements overlap, and may be written", l.Spec())
	}
	if again, err := core.NewLayout(l.Spec()); err != nil || !again.Equal(l) {
		t.Fatalf("%+v: made again %+v, %v", l.Spec(), again.Spec(), err)
	}
}

func floorDiv(a, b int) int { return int(math.Floor(float64(a) / float64(b))) }

// input hands out the numbers of a fuzzer's bytes; when there are none left, zeros.
type input []byte

func (i *input) next(n int) int {
	if len(*i) == 0 || n <= 0 {
		return 0
	}
	b := int((*i)[0])
	*i = (*i)[1:]
	return b % n
}

func (i *input) word() int {
	var b [8]byte
	*i = (*i)[copy(b[:], *i):]
	return int(binary.LittleEndian.Uint64(b[:]))
}

var fuzzTypes = []core.DType{
	core.Uint8, core.Int16, core.Float32, core.Complex128, core.Int4, coretest.DType("float6_e2m3fn"), core.Uint8 + 2, // uint8x3
}

// slice takes one step of the slicing algebra on both.
func slice(t *testing.T, in *input, l core.Layout, m model) (core.Layout, model) {
	t.Helper()
	op := in.next(5)
	if len(m.shape) == 0 && op != 3 {
		return l, m
	}
	axis := in.next(len(m.shape))
	var next core.Layout
	var err error
	shape := slices.Clone(m.shape)
	var f func([]int) []int
	switch op {
	case 0:
		lo := in.next(shape[axis] + 1)
		hi := lo + in.next(shape[axis]-lo+1)
		next, err = l.Sub(axis, lo, hi)
		shape[axis] = hi - lo
		f = func(i []int) []int { i[axis] += lo; return i }
	case 1:
		if shape[axis] == 0 {
			return l, m
		}
		at := in.next(shape[axis])
		next, err = l.Select(axis, at)
		shape = slices.Delete(shape, axis, axis+1)
		f = func(i []int) []int { return slices.Insert(i, axis, at) }
	case 2:
		step := in.next(7) - 3
		if step == 0 {
			step = math.MinInt
		}
		next, err = l.Step(axis, step)
		at := 0
		if step < 0 {
			at = shape[axis] - 1
		}
		var kept []int
		for ; at >= 0 && at < shape[axis]; at += max(step, -8) { // no axis is as long as 8
			kept = append(kept, at)
		}
		shape[axis] = len(kept)
		f = func(i []int) []int { i[axis] = kept[i[axis]]; return i }
	default:
		perm := make([]int, len(shape))
		for i := range perm {
			perm[i] = i
		}
		for i := range perm {
			j := i + in.next(len(perm)-i)
			perm[i], perm[j] = perm[j], perm[i]
		}
		next, err = l.Transpose(perm...)
		if len(perm) == 0 {
			next, err = l.Transpose()
		}
		for i, axis := range perm {
			shape[i] = m.shape[axis]
		}
		f = func(i []int) []int {
			source := make([]int, len(i))
			for to, from := range perm {
				source[from] = i[to]
			}
			return source
		}
	}
	if err != nil && !l.DType().Packed() {
		t.Fatalf("operation %d on %v: %v", op, l, err)
	}
	want := m.pick(shape, f)
	if err != nil { // packed elements: it must be true that they are not dense, or begin inside of a byte
		bits := l.DType().Bits() * l.DType().Lanes()
		if !errors.Is(err, core.ErrLayout) || want.dense(bits) && (len(want.places) == 0 || want.places[0]%8 == 0) {
			t.Fatalf("operation %d on %v was refused: %v; want %+v", op, l, err, want)
		}
		return l, m
	}
	return next, want
}

func FuzzLayout(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{2, 3, 4, 5, 3, 0, 1, 1, 2, 2, 0, 3, 1})
	f.Add([]byte{4, 2, 3, 4, 0, 0, 0, 0, 1, 2})
	f.Add([]byte{0, 2, 5, 3, 1, 9, 1, 9, 0, 0, 1, 2})
	f.Add([]byte{3, 4, 2, 3, 2, 3, 1, 0, 9, 8, 7, 6, 2, 0, 6, 2, 1, 0, 3, 1, 2, 3})
	f.Fuzz(func(t *testing.T, raw []byte) {
		in := input(raw)
		s := core.LayoutSpec{DType: fuzzTypes[in.next(len(fuzzTypes))], Offset: in.next(32) - 8}
		s.Shape = []int{}
		for range in.next(5) {
			s.Shape = append(s.Shape, in.next(5))
		}
		plain := in.next(3) == 0 || s.DType.Packed()
		if !plain {
			for range s.Shape {
				s.Strides = append(s.Strides, in.next(49)-24)
			}
			if s.Strides == nil {
				s.Strides = []int{}
			}
		}
		l, err := core.NewLayout(s)
		if err != nil {
			t.Fatalf("%+v: %v", s, err)
		}
		m := modelOf(s)
		agree(t, l, m)
		for range 6 {
			l, m = slice(t, &in, l, m)
			agree(t, l, m)
			if plain && l.ReadOnly() {
				t.Fatalf("%v, part of a dense array, is read-only", l.Spec())
			}
			if again, err := core.NewLayout(l.Spec()); err != nil || plain && again.ReadOnly() {
				t.Fatalf("%v, part of a dense array, counts as overlapping: %v", l.Spec(), err)
			}
		}
	})
}

// FuzzNewLayout has numbers of any size, and compares with unlimited integers.
func FuzzNewLayout(f *testing.F) {
	seed := func(words ...int) []byte {
		b := []byte{0, byte(len(words)/2 - 1)}
		for _, w := range words {
			b = binary.LittleEndian.AppendUint64(b, uint64(w))
		}
		return b
	}
	f.Add(seed(0, 2, math.MinInt))
	f.Add(seed(math.MaxInt, 1, 1))
	f.Add(seed(5, 2, math.MaxInt-1, 2, math.MaxInt-1))
	f.Add(seed(math.MinInt, math.MaxInt, -1))
	f.Add(seed(0, 1<<32, 1, 1<<32, 1))
	f.Add(seed(0, -1, 1))
	f.Fuzz(func(t *testing.T, raw []byte) {
		in := input(raw)
		s := core.LayoutSpec{DType: fuzzTypes[in.next(4)]}
		rank := in.next(6)
		s.Offset = in.word()
		s.Shape, s.Strides = []int{}, []int{}
		for range rank {
			s.Shape, s.Strides = append(s.Shape, in.word()), append(s.Strides, in.word())
		}
		l, err := core.NewLayout(s)
		lo, hi, ok := bigSpan(s)
		if ok != (err == nil) {
			t.Fatalf("%+v: %v, though it is right: %v", s, err, ok)
		}
		if err != nil {
			if !errors.Is(err, core.ErrLayout) {
				t.Fatalf("%+v: %v", s, err)
			}
			return
		}
		if a, b := l.Span(); big.NewInt(int64(a)).Cmp(lo) != 0 || big.NewInt(int64(b)).Cmp(hi) != 0 {
			t.Fatalf("%+v: span [%d, %d), want [%v, %v)", s, a, b, lo, hi)
		}
		for axis := range rank { // nothing of the algebra may panic or leave the span
			for _, derive := range []func() (core.Layout, error){
				func() (core.Layout, error) { return l.Sub(axis, in.word(), in.word()) },
				func() (core.Layout, error) { return l.Sub(axis, s.Shape[axis]/2, s.Shape[axis]) },
				func() (core.Layout, error) { return l.Select(axis, s.Shape[axis]-1) },
				func() (core.Layout, error) { return l.Step(axis, in.word()) },
				func() (core.Layout, error) { return l.Step(axis, -1) },
				func() (core.Layout, error) { return l.Transpose(in.word()) },
				func() (core.Layout, error) { return l.Transpose() },
				func() (core.Layout, error) { return l.As(core.Uint8) },
			} {
				d, err := derive()
				if err != nil || d.Len() == 0 {
					continue
				}
				a, b := d.Span()
				if outerLo, outerHi := l.Span(); a < outerLo || b > outerHi || a >= b {
					t.Fatalf("%+v: part %+v spans [%d, %d) of [%d, %d)", s, d.Spec(), a, b, outerLo, outerHi)
				}
			}
		}
	})
}

// bigSpan is the definition of a span, and of whether there is one.
func bigSpan(s core.LayoutSpec) (lo, hi *big.Int, ok bool) {
	limit, size := big.NewInt(math.MaxInt), big.NewInt(int64(s.DType.Size()))
	lo, hi = big.NewInt(int64(s.Offset)), big.NewInt(int64(s.Offset))
	empty := false
	for _, dim := range s.Shape {
		if dim < 0 {
			return nil, nil, false
		}
		empty = empty || dim == 0
		size.Mul(size, big.NewInt(int64(max(dim, 1))))
	}
	if size.Cmp(limit) > 0 {
		return nil, nil, false
	}
	if empty {
		return lo, hi, true
	}
	hi.Add(hi, big.NewInt(int64(s.DType.Size())))
	for axis, dim := range s.Shape {
		reach := new(big.Int).Mul(big.NewInt(int64(s.Strides[axis])), big.NewInt(int64(dim)-1))
		if reach.Sign() < 0 {
			lo.Add(lo, reach)
		} else {
			hi.Add(hi, reach)
		}
	}
	span := new(big.Int).Sub(hi, lo)
	return lo, hi, span.Cmp(limit) <= 0 && lo.IsInt64() && hi.IsInt64()
}
