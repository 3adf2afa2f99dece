package arrays

import (
	"errors"
	"os"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// File is memory that programs can be given to map. All methods are safe for concurrent use.
type File struct {
	files  []*os.File
	size   int64
	handle contract.Handle // of memory on a GPU; nil: it is host memory

	mu     sync.Mutex
	closed bool
	spaces map[*Space]*entry // the programs that have it
}

// NewFile takes a file over, whose first size bytes programs can map without the danger that it shrinks.
func NewFile(f *os.File, size int64) *File {
	return &File{files: []*os.File{f}, size: size, spaces: make(map[*Space]*entry)}
}

// OnGPU takes memory on a GPU over: a contract.CUDAIPC, or a contract.CUDAVMM with the descriptor of each of its chunks, as the driver exports it.
func OnGPU(h contract.Handle, files ...*os.File) *File {
	return &File{files: files, size: h.Extent(), handle: h, spaces: make(map[*Space]*entry)}
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
	var errs []error
	for _, file := range f.files {
		errs = append(errs, shm.Close(file))
	}
	return errors.Join(errs...)
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
