package main

import (
	"sync/atomic"
	"unsafe"

	"github.com/ndbridge/ndbridge/internal/shm"
)

// newWord gives a word in shared memory of its own, which stays.
func newWord() (*atomic.Uint32, error) {
	file, err := shm.Create("importtests-word", 4)
	if err != nil {
		return nil, err
	}
	m, err := shm.Map(file, 4, true)
	if err != nil {
		return nil, err
	}
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(m.Bytes()))), file.Close()
}
