package core

import "unsafe"

// elements lie in memory: the first at byte at, each further one stride bytes farther.
type elements struct {
	memory     []byte
	at, stride int
}

// copyElements copies n elements of size bytes, each number of them at once. So none is half of what was there before and half of
// what somebody writes meanwhile, if it lies where its type wants it. Package encoding/binary reads bytes, which compilers put
// together only where nothing, as the race detector, comes between.
func copyElements(dst, src elements, n, size int) {
	switch size {
	case 1:
		copyWords[uint8](dst, src, n)
	case 2:
		copyWords[uint16](dst, src, n)
	case 4:
		copyWords[uint32](dst, src, n)
	case 8:
		copyWords[uint64](dst, src, n)
	default:
		for range n {
			copyRun(dst.memory[dst.at:][:size], src.memory[src.at:], size)
			dst.at += dst.stride
			src.at += src.stride
		}
	}
}

func copyWords[T uint8 | uint16 | uint32 | uint64](dst, src elements, n int) {
	if n == 0 {
		return
	}
	to, from := dst.start(n, int(unsafe.Sizeof(T(0)))), src.start(n, int(unsafe.Sizeof(T(0))))
	for range n {
		*(*T)(unsafe.Add(to, dst.at)) = *(*T)(unsafe.Add(from, src.at))
		dst.at += dst.stride
		src.at += src.stride
	}
}

// start is the first byte of memory that has the first and the last of n elements, at least one, of size bytes.
func (e elements) start(n, size int) unsafe.Pointer {
	last := e.at + (n-1)*e.stride
	_, _ = e.memory[e.at:e.at+size], e.memory[last:last+size]
	return unsafe.Pointer(unsafe.SliceData(e.memory))
}

// copyElement copies one element of size bytes.
func copyElement(dst, src []byte, size int) {
	copyElements(elements{memory: dst}, elements{memory: src}, 1, size)
}

// copyRun fills dst with elements of size bytes that follow each other. Where src lies as dst does, copy takes numbers whole, and
// is faster; but not two bytes.
func copyRun(dst, src []byte, size int) {
	if len(dst) == 0 {
		return
	}
	word := min(max(size&-size, 1), 8) // the longest that a number can be that lies where its type wants it; packed elements have no size
	apart := uintptr(unsafe.Pointer(&dst[0])) - uintptr(unsafe.Pointer(&src[0]))
	if apart%uintptr(word) == 0 && len(dst) != 2 {
		copy(dst, src)
		return
	}
	copyElements(elements{dst, 0, word}, elements{src, 0, word}, len(dst)/word, word)
}
