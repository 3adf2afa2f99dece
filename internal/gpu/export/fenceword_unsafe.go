package export

import (
	"sync/atomic"
	"unsafe"
)

// The words lie in a mapping, which is not Go's memory and outlives their use.

func loadWord(addr uintptr) uint32 { return atomic.LoadUint32(wordAt(addr)) }

func storeWord(addr uintptr, value uint32) { atomic.StoreUint32(wordAt(addr), value) }

func wordAt(addr uintptr) *uint32 {
	return *(**uint32)(unsafe.Pointer(&addr)) // vet takes a conversion for a mistake
}
