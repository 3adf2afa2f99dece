package cuda

import (
	"unsafe"

	"github.com/ndbridge/ndbridge/core"
)

// rawBytes is the memory of s.
func rawBytes[T core.Element](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}
