package numbers

import "unsafe"

// word reads a number as the machine reads it: at once, so that none is half of what was there before and half of what a program
// writes meanwhile, if it lies where its type wants it. Package encoding/binary reads bytes, which compilers put together only
// where nothing, as the race detector, comes between.
func word[T uint16 | uint32 | uint64](b []byte) T {
	_ = b[unsafe.Sizeof(T(0))-1]
	return *(*T)(unsafe.Pointer(unsafe.SliceData(b)))
}

// take fills dst with numbers of size bytes, each read at once.
func take(dst, src []byte, size int) {
	for at := 0; at < len(dst); at += size {
		switch from, to := src[at:], unsafe.Pointer(&dst[at]); size {
		case 1:
			dst[at] = from[0]
		case 2:
			*(*uint16)(to) = word[uint16](from)
		case 4:
			*(*uint32)(to) = word[uint32](from)
		default:
			*(*uint64)(to) = word[uint64](from)
		}
	}
}
