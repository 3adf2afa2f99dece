// Package arrays hands memory to programs: the host's own, and what other programs lend. Each stretch is a sealed file
// that is mapped in each program that gets an array in it.
package arrays

import (
	"errors"

	"github.com/ndbridge/ndbridge/internal/shm"
)

// Memory is one stretch of the host's own. It is a core.Memory of zeros at first. All methods are safe for concurrent use.
type Memory struct {
	*shm.Mapping
	*File
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
	return &Memory{mapping, NewFile(file, max(size, 1))}, nil
}

// Close implements core.Memory. Arrays in programs keep their own mappings of it.
func (m *Memory) Close() error { return errors.Join(m.File.Close(), m.Mapping.Close()) }
