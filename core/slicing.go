package core

import (
	"iter"
	"slices"
)

// Index returns the distance in bytes from the first byte of the memory to one element; for a packed type, to
// the byte in which the element begins. There must be one index for each axis, inside its extent (ErrLayout).
func (l Layout) Index(index ...int) (int, error) {
	if len(index) != len(l.shape) {
		return 0, layoutError("%d indices for %d axes", len(index), len(l.shape))
	}
	offset, flat := l.offset, 0
	for axis, i := range index {
		if i < 0 || i >= l.shape[axis] {
			return 0, layoutError("index %d outside axis %d of extent %d", i, axis, l.shape[axis])
		}
		flat = flat*l.shape[axis] + i
		if l.strides != nil {
			offset += i * l.strides[axis]
		}
	}
	if l.dtype.Packed() {
		offset += flat * l.dtype.Bits() * l.dtype.Lanes() / 8
	}
	return offset, nil
}

// Sub keeps the elements lo up to, but not including, hi of one axis. The error wraps ErrLayout if the axis does
// not exist, if the range is not inside it, or if packed elements would not be dense or not begin at a byte.
func (l Layout) Sub(axis, lo, hi int) (Layout, error) {
	if err := l.checkAxis(axis); err != nil {
		return Layout{}, err
	}
	if lo < 0 || hi < lo || hi > l.shape[axis] {
		return Layout{}, layoutError("slice %d:%d outside axis %d of extent %d",
			lo, hi, axis, l.shape[axis])
	}
	if l.dtype.Packed() {
		return l.subPacked(axis, lo, hi)
	}
	return l.derive(l.with(axis, hi-lo), l.strides, axis, lo), nil
}

// Select keeps one element of one axis and drops the axis: it gives a row of a matrix or a channel of a picture.
// Its errors are those of Sub.
func (l Layout) Select(axis, index int) (Layout, error) {
	if err := l.checkAxis(axis); err != nil {
		return Layout{}, err
	}
	if index < 0 || index >= l.shape[axis] {
		return Layout{}, layoutError("index %d outside axis %d of extent %d", index, axis, l.shape[axis])
	}
	m, err := l.Sub(axis, index, index+1)
	if err != nil {
		return Layout{}, err
	}
	m.shape = slices.Delete(slices.Clone(m.shape), axis, axis+1)
	if m.strides != nil {
		m.strides = slices.Delete(slices.Clone(m.strides), axis, axis+1)
	}
	return m, nil
}

// Step keeps every step-th element of one axis: from the first onwards if step is positive, from the last
// backwards if it is negative. So a step of -1 reverses the axis. The error wraps ErrLayout for a step of 0 and for
// every step but 1 through packed elements.
func (l Layout) Step(axis, step int) (Layout, error) {
	if err := l.checkAxis(axis); err != nil {
		return Layout{}, err
	}
	dim := l.shape[axis]
	switch {
	case step == 0:
		return Layout{}, layoutError("step 0 of axis %d", axis)
	case step == 1 || dim == 0:
		return l, nil
	}
	first, count := 0, (dim-1)/step+1
	if step < 0 {
		first, count = dim-1, -((dim-1)/step)+1
	}
	if l.dtype.Packed() {
		if count > 1 && l.n > 0 {
			return Layout{}, layoutError("step %d through %v, whose elements share bytes", step, l.dtype)
		}
		return l.subPacked(axis, first, first+count)
	}
	strides := l.strides
	if count > 1 {
		strides = slices.Clone(strides)
		if l.n > 0 {
			strides[axis] *= step
		} else if s, ok := mulInt(strides[axis], step); ok {
			strides[axis] = s // of no consequence without elements, but as NumPy has it
		}
	}
	return l.derive(l.with(axis, count), strides, axis, first), nil
}

// Transpose permutes the axes: axis i of the result is axis perm[i]. Without arguments it reverses their order.
// The error wraps ErrLayout if perm is not a permutation of the axes, or if it would reorder packed elements.
func (l Layout) Transpose(perm ...int) (Layout, error) {
	if len(perm) == 0 {
		perm = make([]int, len(l.shape))
		for i := range perm {
			perm[i] = len(perm) - 1 - i
		}
	}
	if len(perm) != len(l.shape) {
		return Layout{}, layoutError("permutation %v of %d axes", perm, len(l.shape))
	}
	seen := make([]bool, len(perm))
	m := l
	m.shape, m.strides = make([]int, len(perm)), nil
	if l.strides != nil {
		m.strides = make([]int, len(perm))
	}
	last := -1 // the last axis of more than one element that was placed
	for i, axis := range perm {
		if axis < 0 || axis >= len(perm) || seen[axis] {
			return Layout{}, layoutError("%v is no permutation of %d axes", perm, len(l.shape))
		}
		seen[axis] = true
		m.shape[i] = l.shape[axis]
		if l.strides != nil {
			m.strides[i] = l.strides[axis]
			continue
		}
		if l.shape[axis] > 1 && l.n > 0 {
			if axis < last {
				return Layout{}, layoutError("transpose of %v, whose elements share bytes", l.dtype)
			}
			last = axis
		}
	}
	m.finish()
	return m, nil
}

// Offsets yields the distance in bytes from the first byte of the memory to each element, in row-major order; for
// a packed type, to the byte in which the element begins.
func (l Layout) Offsets() iter.Seq[int] {
	return func(yield func(int) bool) {
		if l.dtype.Packed() {
			bits := l.dtype.Bits() * l.dtype.Lanes()
			for i := range l.n {
				if !yield(l.offset + i*bits/8) {
					return
				}
			}
			return
		}
		run := l.innermost()
		for offset := range l.runs() {
			for range run.n {
				if !yield(offset) {
					return
				}
				offset += run.stride
			}
		}
	}
}

// checkAxis refuses what is no axis.
func (l Layout) checkAxis(axis int) error {
	if axis < 0 || axis >= len(l.shape) {
		return layoutError("no axis %d among %d", axis, len(l.shape))
	}
	return nil
}

// with is a copy of the shape in which one extent is another.
func (l Layout) with(axis, dim int) []int {
	shape := slices.Clone(l.shape)
	shape[axis] = dim
	return shape
}

// derive makes the layout of some elements of l, whose first along axis is element first. Nothing
// can overflow: where there are elements, they are elements of l; where there are none, the offset
// stays.
func (l Layout) derive(shape, strides []int, axis, first int) Layout {
	m := l
	m.shape, m.strides, m.n = shape, strides, 1
	for _, dim := range shape {
		m.n *= dim
	}
	m.lo, m.hi = m.offset, m.offset
	if m.n > 0 {
		m.offset += first * l.strides[axis]
		m.lo, m.hi = m.offset, m.offset+m.dtype.Size()
		for i, stride := range strides {
			reach := stride * (shape[i] - 1)
			m.lo += min(reach, 0)
			m.hi += max(reach, 0)
		}
	}
	m.finish()
	return m
}

// subPacked is Sub for elements that share bytes: the part must be dense and begin at a byte.
func (l Layout) subPacked(axis, lo, hi int) (Layout, error) {
	m := l
	m.shape, m.n = l.with(axis, hi-lo), 1
	outer, inner := 1, 1
	for i, dim := range m.shape {
		m.n *= dim
		switch {
		case i < axis:
			outer *= dim
		case i > axis:
			inner *= dim
		}
	}
	if m.n == 0 {
		m.lo, m.hi = m.offset, m.offset
		return m, nil
	}
	bits := lo * inner * l.dtype.Bits() * l.dtype.Lanes()
	if outer > 1 && m.n < l.n || bits%8 != 0 {
		return Layout{}, layoutError("slice %d:%d of axis %d of %v, whose elements share bytes, "+
			"is not dense or does not begin at a byte", lo, hi, axis, l.dtype)
	}
	m.offset += bits / 8
	m.lo, m.hi = m.offset, m.offset+int(m.denseBytes())
	return m, nil
}

// A run is what lies along the innermost axis.
type run struct{ n, stride int }

// innermost describes the runs that runs yields the beginnings of. Not for packed types.
func (l Layout) innermost() run {
	if len(l.shape) == 0 {
		return run{l.n, l.dtype.Size()}
	}
	last := len(l.shape) - 1
	return run{l.shape[last], l.strides[last]}
}

// runs yields the offset of each run along the innermost axis, in row-major order. Not for packed
// types.
func (l Layout) runs() iter.Seq[int] {
	return func(yield func(int) bool) {
		if l.n == 0 {
			return
		}
		outer := max(len(l.shape)-1, 0)
		var index [MaxRank]int
		offset := l.offset
		for {
			if !yield(offset) {
				return
			}
			axis := outer - 1
			for ; axis >= 0; axis-- {
				if index[axis]++; index[axis] < l.shape[axis] {
					offset += l.strides[axis]
					break
				}
				offset -= l.strides[axis] * (l.shape[axis] - 1)
				index[axis] = 0
			}
			if axis < 0 {
				return
			}
		}
	}
}
