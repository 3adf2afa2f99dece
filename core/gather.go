package core

import (
	"encoding/binary"
	"slices"
)

// gather copies the elements that l describes in src to dst, densely and in row-major order. dst is
// exactly as long as they are.
func gather(dst, src []byte, l Layout) {
	if l.contiguous {
		copy(dst, src[l.lo:l.hi])
		return
	}
	l = l.coalesced()
	size, run := l.dtype.Size(), l.innermost()
	for offset := range l.runs() {
		chunk := dst[:run.n*size]
		dst = dst[run.n*size:]
		if run.stride == size {
			copy(chunk, src[offset:])
			continue
		}
		for i := 0; i < len(chunk); i += size {
			copyElement(chunk[i:], src[offset:], size)
			offset += run.stride
		}
	}
}

// scatter is gather the other way round.
func scatter(dst []byte, l Layout, src []byte) {
	if l.contiguous {
		copy(dst[l.lo:l.hi], src)
		return
	}
	l = l.coalesced()
	size, run := l.dtype.Size(), l.innermost()
	for offset := range l.runs() {
		chunk := src[:run.n*size]
		src = src[run.n*size:]
		if run.stride == size {
			copy(dst[offset:], chunk)
			continue
		}
		for i := 0; i < len(chunk); i += size {
			copyElement(dst[offset:], chunk[i:], size)
			offset += run.stride
		}
	}
}

// copyElement copies size bytes. The usual sizes are a load and a store each.
func copyElement(dst, src []byte, size int) {
	ne := binary.NativeEndian
	switch size {
	case 1:
		dst[0] = src[0]
	case 2:
		ne.PutUint16(dst, ne.Uint16(src))
	case 4:
		ne.PutUint32(dst, ne.Uint32(src))
	case 8:
		ne.PutUint64(dst, ne.Uint64(src))
	default:
		copy(dst[:size], src)
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
