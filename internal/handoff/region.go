package handoff

import (
	"errors"
	"fmt"
	"os"

	"github.com/ndbridge/ndbridge/internal/shm"
)

// region is memory that the producer has made for both sides. The zero value is none.
type region struct {
	file    *os.File
	mapping *shm.Mapping
}

// create makes a region of size bytes, all zero, which cannot shrink. The name shows in /proc/*/maps.
func create(name string, size int64) (region, error) {
	file, err := shm.Create(name, size)
	if err != nil {
		return region{}, err
	}
	mapping, err := shm.Map(file, size, true)
	if err != nil {
		return region{}, errors.Join(err, file.Close())
	}
	return region{file, mapping}, nil
}

// close is called once, for what create made.
func (r *region) close() error { return errors.Join(r.mapping.Close(), r.file.Close()) }

// receive maps the region that a producer has made for what it names, whose descriptor stays the caller's.
// The size must be what such a thing has: the caller has compared it. Memory that could shrink is refused,
// since this process would die of reading what is gone.
func receive(file *os.File, what string, size int64) (*shm.Mapping, error) {
	switch sealed, err := shm.Sealed(file); {
	case err != nil:
		return nil, err
	case !sealed:
		return nil, fmt.Errorf("the %s's memory is not sealed, and could shrink", what)
	}
	return shm.Map(file, size, true)
}
