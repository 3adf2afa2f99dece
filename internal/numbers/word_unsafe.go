package numbers

import "unsafe"

// word reads a number as the machine reads it: at once, so that none is half of what was there before and half of what a program
// writes meanwhile, if it lies where its type wants it. Package encoding/binary reads bytes, which compilers put together only
// where nothing, as the race detector, comes between.
func word[T uint16 | uint32 | uint64](b []byte) T {
	_ = b[unsafe.Sizeof(T(0))-1]
	return *(*T)(unsafe.Pointer(unsafe.SliceData(b)))
}
