package dlpack

import "unsafe"

// Live is the memory of this process. It refuses NULL and addresses near the end of the address space. Every other address
// must come from a framework and must stay valid while the result is used: reading memory that is not mapped faults.
func Live() Memory {
	return func(addr uintptr, n int) ([]byte, error) {
		if addr == 0 || n < 0 || addr+uintptr(n) < addr {
			return nil, pointerError("%d bytes at %#x are not there", n, addr)
		}
		// A pointer to memory outside of Go's heap, taken from a C struct: the address is all there is.
		return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), n), nil
	}
}
