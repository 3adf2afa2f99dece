//go:build cuda

package hosttest

import (
	"sync/atomic"
	"unsafe"

	"github.com/ndbridge/ndbridge/internal/shm"
)

// setWord stores a word of a page.
func setWord(page *shm.Mapping, at int, value uint32) {
	(*atomic.Uint32)(unsafe.Pointer(&page.Bytes()[at])).Store(value)
}
