// Package arrays makes memory of the host's that programs can be given: each stretch is a sealed file that is mapped in
// this process, and in each program that gets an array in it.
package arrays

import (
	"errors"
	"os"
	"sync"

	"github.com/ndbridge/ndbridge/internal/shm"
)

// Memory is one stretch. It is a core.Memory of zeros at first. All methods are safe for concurrent use.
type Memory struct {
	*shm.Mapping
	file *os.File

	mu     sync.Mutex
	closed bool
	spaces map[*Space]*entry // the programs that have it
}

// New makes memory of that many bytes, at least one.
func New(size int64) (*Memory, error) {
	file, err := shm.Create("ndbridge-array", max(size, 1))
	if err != nil {
		return nil, err
	}
	mapping, err := shm.Map(file, max(size, 1), true)
	if err != nil {
		return nil, errors.Join(err, shm.Close(file))
	}
	return &Memory{Mapping: mapping, file: file, spaces: make(map[*Space]*entry)}, nil
}

// Close implements core.Memory. Arrays in programs keep their own mappings of it.
func (m *Memory) Close() error {
	m.mu.Lock()
	closed, spaces := m.closed, m.spaces
	m.closed, m.spaces = true, nil
	m.mu.Unlock()
	if closed {
		return nil
	}
	for space, e := range spaces {
		space.forget(m, e)
	}
	return errors.Join(m.Mapping.Close(), shm.Close(m.file))
}

// leave lets the memory know nothing more of a space.
func (m *Memory) leave(s *Space) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.spaces, s)
}

// Used reports whether an object in a program uses the memory.
func (m *Memory) Used() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for space, e := range m.spaces {
		if space.used(e) {
			return true
		}
	}
	return false
}
