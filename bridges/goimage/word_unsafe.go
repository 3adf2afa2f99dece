package goimage

import "unsafe"

// word is where a channel of 16 bits lies. It is read and written at once, as package internal/numbers reads numbers.
func word(b []byte) *uint16 {
	_ = b[1]
	return (*uint16)(unsafe.Pointer(unsafe.SliceData(b)))
}
