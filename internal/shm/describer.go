package shm

import (
	"context"
	"fmt"
	"os"

	"github.com/ndbridge/ndbridge/core/contract"
)

// Describer lends the descriptors of segments to whoever maps them: one method of [contract.Producer].
type Describer interface {
	Descriptor(ctx context.Context, id contract.SegmentID, writable bool) (*os.File, error)
}

// MapSealed is [Map] for memory of another process, for reading and writing, which must be sealed: this process would die of
// reading memory that has shrunk.
func MapSealed(f *os.File, size int64) (*Mapping, error) {
	switch sealed, err := Sealed(f); {
	case err != nil:
		return nil, err
	case !sealed:
		return nil, fmt.Errorf("%s is not sealed, and could shrink", f.Name())
	}
	return Map(f, size, true)
}
