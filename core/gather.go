package core

import "slices"

// gather copies the elements that l describes in src to dst, densely and in row-major order. dst is
// exactly as long as they are.
func gather(dst, src []byte, l Layout) {
	if l.contiguous {
		copyRun(dst, src[l.lo:l.hi], l.dtype.Size())
		return
	}
	l = l.coalesced()
	size, run := l.dtype.Size(), l.innermost()
	for offset := range l.runs() {
		chunk := dst[:run.n*size]
		dst = dst[run.n*size:]
		if run.stride == size {
			copyRun(chunk, src[offset:], size)
			continue
		}
		copyElements(elements{chunk, 0, size}, elements{src, offset, run.stride}, run.n, size)
	}
}

// scatter is gather the other way round.
func scatter(dst []byte, l Layout, src []byte) {
	if l.contiguous {
		copyRun(dst[l.lo:l.hi], src, l.dtype.Size())
		return
	}
	l = l.coalesced()
	size, run := l.dtype.Size(), l.innermost()
	for offset := range l.runs() {
		chunk := src[:run.n*size]
		src = src[run.n*size:]
		if run.stride == size {
			copyRun(dst[offset:][:len(chunk)], chunk, size)
			continue
		}
		copyElements(elements{dst, offset, run.stride}, elements{chunk, 0, size}, run.n, size)
	}
}

// coalesced describes the same elements in the same order with as few axes as possible.
func (l Layout) coalesced() Layout {
	shape, strides := make([]int, 0, len(l.shape)), make([]int, 0, len(l.shape))
	for axis, dim := range slices.Backward(l.shape) {
		switch last := len(shape) - 1; {
		case dim == 1:
		case last >= 0 && l.strides[axis] == strides[last]*shape[last]:
			shape[last] *= dim
		default:
			shape, strides = append(shape, dim), append(strides, l.strides[axis])
		}
	}
	slices.Reverse(shape)
	slices.Reverse(strides)
	l.shape, l.strides = shape, strides
	return l
}

// denseRows reports whether the elements along the innermost axis follow each other.
func (l Layout) denseRows() bool {
	run := l.innermost()
	return run.n == 1 || run.stride == l.dtype.Size()
}
