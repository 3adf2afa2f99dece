// Package cmalloc lets the tests of sharedheap allocate as an array framework does: by the malloc that
// the dynamic loader binds. It stands apart because test files cannot use cgo.
package cmalloc

/*
#include <stdlib.h>
*/
import "C"

import "unsafe"

// Malloc takes size bytes from malloc. It gives their address, and the bytes themselves, which Free
// takes back.
func Malloc(size int) (addr uintptr, memory []byte) {
	p := C.malloc(C.size_t(size)) // cgo's never answers with nil
	return uintptr(p), unsafe.Slice((*byte)(p), size)
}

// Free gives memory of Malloc back. Its bytes must not be touched any more.
func Free(memory []byte) { C.free(unsafe.Pointer(unsafe.SliceData(memory))) }
