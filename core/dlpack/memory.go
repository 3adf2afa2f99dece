package dlpack

// Memory reads n bytes at an address. The slice may alias the memory; nobody writes to it. If the memory is not there, the
// error wraps core.ErrPointer.
type Memory func(addr uintptr, n int) ([]byte, error)

// Image is a Memory that consists of the bytes b at address base, for structs that were copied from elsewhere and for tests.
// It refuses reads that are not wholly inside.
func Image(base uintptr, b []byte) Memory {
	return func(addr uintptr, n int) ([]byte, error) {
		if n < 0 || addr < base || addr-base > uintptr(len(b)) || uintptr(n) > uintptr(len(b))-(addr-base) {
			return nil, pointerError("%d bytes at %#x are not there", n, addr)
		}
		return b[addr-base:][:n:n], nil
	}
}
