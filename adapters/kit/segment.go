package kit

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/files"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// Backing is memory behind a file descriptor, in this process's hands: what a segment is made of.
// [Leases] holds one while leases on it stand, and closes it after the last.
//
// Key, Size and Sealed answer the same until Close; all methods are safe for concurrent use.
type Backing interface {
	// Key tells one piece of memory from all others: backings with equal keys are one segment to
	// the host, and may be mapped once. It is comparable, and must never stand for other memory
	// later in this process's life.
	Key() any
	// Size is the number of bytes of the file that may be mapped, from its start.
	Size() int64
	// Sealed reports whether the file is a memfd that cannot shrink any more.
	Sealed() bool
	// Open makes a new descriptor, which the caller owns: open for reading only, or, if writable,
	// for both. An error of the second kind wraps core.ErrReadOnly if the file does not allow it.
	Open(writable bool) (*os.File, error)
	// Close gives the memory back. Descriptors that Open made stay good.
	Close() error
}

// Memory is what a lease stands on.
type Memory struct {
	Parts []Backing // each is a segment to the host
	// Fence, if it is not nil, is what the lease's fence lies in. A host may write it, whatever it has leased.
	Fence Backing
	// Name gives a lease its handle, and its fence where that is in memory too, from the IDs of the segments
	// of the parts, after which comes that of the fence. It is nil for an array without elements.
	Name func(l *contract.Lease, ids []contract.SegmentID)
	// Moves, if it is not nil, is asked by [Leases.Renew].
	Moves Moving
}

// Moving is memory that may come to lie in another file, as a fork of the program brings about.
type Moving interface {
	// Renew sees to it that the memory lies in a file that can be shared, and says in which, and by how many bytes
	// its place there differs from that before.
	Renew(writable bool) (b Backing, shift int64, err error)
}

// backings are the parts, and what the fence lies in.
func (m Memory) backings() []Backing {
	if m.Fence == nil {
		return m.Parts
	}
	return append(slices.Clip(m.Parts), m.Fence)
}

// keys are those of the parts, in their order.
func (m Memory) keys() []any {
	keys := make([]any, len(m.Parts))
	for i, b := range m.Parts {
		keys[i] = b.Key()
	}
	return keys
}

// HostMemory is memory that the CPU reads.
func HostMemory(b Backing) Memory {
	return Memory{
		Parts: []Backing{b},
		Name: func(l *contract.Lease, ids []contract.SegmentID) {
			l.Handle = contract.Segment{ID: ids[0], Size: b.Size(), Sealed: b.Sealed()}
		},
	}
}

// FileSegment is a file as a backing, for producers whose arrays lie in files. The file f stays the
// caller's, who may close it at once: the segment has a descriptor of its own. Its size is the
// file's size now; a file that others may truncate later faults whoever still reads the missing
// part, as any mapping of a file does.
//
// It wraps core.ErrUnsupported if f is not a regular file.
func FileSegment(f *os.File) (Backing, error) {
	own, err := shm.ReadOnly(f)
	if err != nil {
		return nil, fmt.Errorf("file %s: %w", f.Name(), err)
	}
	b, err := files.New(own)
	if err != nil {
		_ = shm.Close(own) // only read
		return nil, fmt.Errorf("file %s: %w", f.Name(), err)
	}
	return b, nil
}

// DataSegment is memory of its own with a copy of data, for producers that make the elements of their arrays themselves.
func DataSegment(data []byte) (Backing, error) {
	f, err := shm.Create("ndbridge-data", int64(len(data)))
	if err != nil {
		return nil, err
	}
	shm.Use(f, func() { _, err = f.WriteAt(data, 0) })
	var b *files.File
	if err == nil {
		b, err = files.New(f)
	}
	if err != nil {
		return nil, errors.Join(err, shm.Close(f))
	}
	return b, nil
}
