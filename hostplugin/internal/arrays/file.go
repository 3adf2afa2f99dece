package arrays

import (
	"os"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// File is a file that programs can be given to map. All methods are safe for concurrent use.
type File struct {
	file *os.File
	size int64
	gpu  contract.UUID // whose memory it is; zero: host memory

	mu     sync.Mutex
	closed bool
	spaces map[*Space]*entry // the programs that have it
}

// NewFile takes a file over, whose first size bytes programs can map without the danger that it shrinks.
func NewFile(f *os.File, size int64) *File {
	return &File{file: f, size: size, spaces: make(map[*Space]*entry)}
}

// NewGPUFile takes a descriptor of size bytes of a GPU's memory over, as the driver exports it.
func NewGPUFile(f *os.File, size int64, gpu contract.UUID) *File {
	out := NewFile(f, size)
	out.gpu = gpu
	return out
}

// Close takes the file back. Arrays in programs keep their own mappings of it. It is idempotent.
func (f *File) Close() error {
	f.mu.Lock()
	closed, spaces := f.closed, f.spaces
	f.closed, f.spaces = true, nil
	f.mu.Unlock()
	if closed {
		return nil
	}
	for space, e := range spaces {
		space.forget(f, e)
	}
	return shm.Close(f.file)
}

// in gives what the file is in a space.
func (f *File) in(s *Space) (*entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, &core.Error{Op: "call", Kind: core.ErrClosed}
	}
	e := f.spaces[s]
	if e == nil {
		if !s.add(f) {
			return nil, &core.Error{Op: "call", Kind: core.ErrClosed}
		}
		e = new(entry)
		f.spaces[s] = e
	}
	return e, nil
}

// leave lets the file know nothing more of a space.
func (f *File) leave(s *Space) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.spaces, s)
}

// Used reports whether an object in a program uses the memory.
func (f *File) Used() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for space, e := range f.spaces {
		if space.used(e) {
			return true
		}
	}
	return false
}
