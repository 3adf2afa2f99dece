package kit

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
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
	// Name gives a lease its handle, and its fence where that is in memory too, from the IDs of the
	// parts' segments. It is nil for an array without elements.
	Name func(l *contract.Lease, ids []contract.SegmentID)

	pin *pin // what keeps it in the shared heap; nil: it lies elsewhere
}

// Keys are those of the parts, in their order, but for the memory of a fence.
func (m Memory) Keys() (keys []any) {
	for _, b := range m.Parts {
		if !anybodyWrites(b) {
			keys = append(keys, b.Key())
		}
	}
	return keys
}

// hostMemory is memory that the CPU reads.
func hostMemory(b Backing) Memory {
	return Memory{
		Parts: []Backing{b},
		Name: func(l *contract.Lease, ids []contract.SegmentID) {
			l.Handle = contract.Segment{ID: ids[0], Size: b.Size(), Sealed: b.Sealed()}
		},
	}
}

// anybodyWrites tells the memory of fences, which a host may write whatever it has leased.
func anybodyWrites(b Backing) bool {
	_, ok := b.(*wordPage)
	return ok
}

// FileSegment is a file as a backing, for producers whose arrays lie in files. The file f stays the
// caller's, who may close it at once: the segment has a descriptor of its own. Its size is the
// file's size now; a file that others may truncate later faults whoever still reads the missing
// part, as any mapping of a file does.
//
// It wraps core.ErrUnsupported if f is not a regular file.
func FileSegment(f *os.File) (Backing, error) {
	own, err := reopen(f, false)
	if err != nil {
		return nil, fmt.Errorf("file %s: %w", f.Name(), err)
	}
	b, err := newFileBacking(own)
	if err != nil {
		_ = shm.Close(own) // only read
		return nil, fmt.Errorf("file %s: %w", f.Name(), err)
	}
	return b, nil
}

// fileBacking is a regular file, open for reading.
type fileBacking struct {
	file   *os.File
	key    fileKey
	sealed bool
}

// fileKey identifies a file and its size. An inode number is used again once a file is gone, often for
// the next file, so the key has its generation too: as a part of the handle by which the file system
// names it to NFS. Where there is no handle, the time of birth stands for it, though a clock's tick may
// see two births; where there is neither, this one opening of the file.
type fileKey struct {
	dev, ino uint64
	handle   string
	birth    unix.StatxTimestamp
	opening  *os.File
	size     int64
}

// newFileBacking takes f over, unless it fails.
func newFileBacking(f *os.File) (*fileBacking, error) {
	var st unix.Statx_t
	var handle unix.FileHandle
	var err, noHandle error
	shm.Use(f, func() {
		err = unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_TYPE|unix.STATX_INO|unix.STATX_SIZE|unix.STATX_BTIME, &st)
		handle, _, noHandle = unix.NameToHandleAt(int(f.Fd()), "", unix.AT_EMPTY_PATH)
	})
	if err != nil {
		return nil, os.NewSyscallError("statx", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, fmt.Errorf("%w: not a regular file", core.ErrUnsupported)
	}
	b := &fileBacking{file: f, key: fileKey{
		dev:  unix.Mkdev(st.Dev_major, st.Dev_minor),
		ino:  st.Ino,
		size: int64(st.Size),
	}}
	switch {
	case noHandle == nil:
		b.key.handle = string(handle.Bytes())
	case st.Mask&unix.STATX_BTIME != 0:
		b.key.birth = st.Btime
	default:
		b.key.opening = f
	}
	b.sealed, err = shm.Sealed(f)
	return b, err
}

func (b *fileBacking) Key() any     { return b.key }
func (b *fileBacking) Size() int64  { return b.key.size }
func (b *fileBacking) Sealed() bool { return b.sealed }
func (b *fileBacking) Close() error { return shm.Close(b.file) }

// checkWritable reports early what Open would say.
func (b *fileBacking) checkWritable() error {
	f, err := b.Open(true)
	if err != nil {
		return err
	}
	return shm.Close(f)
}

func (b *fileBacking) Open(writable bool) (*os.File, error) {
	f, err := reopen(b.file, writable)
	if err != nil && writable {
		return nil, fmt.Errorf("%w: %w", core.ErrReadOnly, err)
	}
	return f, err
}
