package routes

import (
	"fmt"

	"github.com/ndbridge/ndbridge/core"
)

// Array is an array in this process's own memory, as somebody described it. The layout is checked
// in itself; whether memory is there is not known.
type Array struct {
	Addr   uintptr     // of the element with index [0, ..., 0]; may be 0 if there are no elements
	Layout core.Layout // its Offset does not count
}

// extent gives the lowest address that the elements touch, the number of bytes from there to the
// highest, and the offset of element 0 in them.
func (a Array) extent() (lo uintptr, n int64, first int, err error) {
	from, to := a.Layout.Span()
	first = a.Layout.Offset() - from
	n = int64(to - from)
	lo = a.Addr - uintptr(first)
	if a.Addr < uintptr(first) || lo == 0 || uint64(lo)+uint64(n) < uint64(lo) {
		return 0, 0, 0, pointerError(a.Addr, "an array of %d bytes cannot lie there", n)
	}
	return lo, n, first, nil
}

// Inside reports whether all elements lie in the size bytes from addr on.
func (a Array) Inside(addr, size uint64) bool {
	lo, n, _, err := a.extent()
	first := uint64(lo) - addr
	return err == nil && uint64(lo) >= addr && first <= size && uint64(n) <= size-first
}

// at gives the layout of the same array in memory where element 0 lies at offset.
func at(l core.Layout, offset int64, readOnly bool) (core.Layout, error) {
	spec := l.Spec()
	spec.Offset = int(offset)
	spec.ReadOnly = spec.ReadOnly || readOnly
	return core.NewLayout(spec)
}

func pointerError(addr uintptr, format string, args ...any) error {
	return &core.Error{
		Op: "read", Kind: core.ErrPointer,
		Err: fmt.Errorf("memory at %#x: %w", addr, fmt.Errorf(format, args...)),
	}
}
