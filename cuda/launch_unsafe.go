package cuda

import (
	"unsafe"

	"github.com/ndbridge/ndbridge/core"
)

// identity is a number that no other view has while this one is used.
func identity(v *core.View) uintptr { return uintptr(unsafe.Pointer(v)) }
