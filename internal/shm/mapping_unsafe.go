//go:build linux

package shm

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guardVariable, set to 1, makes Close leave the address range reserved and inaccessible, so that a
// use after Close faults at an address that nothing else can have taken.
const guardVariable = "NDBRIDGE_GUARD"

// Mapping is one shared mapping of a file: a core.Memory. All methods are safe for concurrent use;
// memory that was taken from Bytes must not be touched after Close.
type Mapping struct {
	addr     unsafe.Pointer
	size     int64
	writable bool
	closed   atomic.Bool
}

// Map maps the first size bytes of f, shared with all who map the same file, for reading, and for
// writing if writable is true. The mapping outlives f, which stays the caller's.
//
// A size that the file does not have is refused, and so is what is not a regular file or memfd, or
// not open for what was asked: the error wraps core.ErrPointer. Reading pages of a file that is cut
// short later raises SIGBUS, which only a [Sealed] file excludes.
func Map(f *os.File, size int64, writable bool) (*Mapping, error) {
	if size <= 0 || size > math.MaxInt {
		return nil, invalid("%s: size %d", f.Name(), size)
	}
	have, err := sizeOf(f)
	if err != nil {
		return nil, err
	}
	if size > have {
		return nil, invalid("%s: %d bytes were named, the file has %d", f.Name(), size, have)
	}
	m := &Mapping{size: size, writable: writable}
	err = control(f, func(fd int) (err error) {
		m.addr, err = unix.MmapPtr(fd, 0, nil, uintptr(size), m.protection(), unix.MAP_SHARED)
		return err
	})
	if errors.Is(err, unix.ENOMEM) {
		return nil, unavailable("map", fmt.Errorf("mmap %s: %w", f.Name(), err),
			"raise the limits of the process on addresses and mappings (RLIMIT_AS, ulimit -v; vm.max_map_count)")
	}
	if err != nil {
		return nil, invalid("mmap %s: %w", f.Name(), err)
	}
	return m, nil
}

// Replace maps size bytes of f from an offset on over the same number of bytes of the mapping, in one step: who reads there meanwhile
// reads what was there, or what f has. All three are whole pages. f stays the caller's, and is checked as Map does. Close must
// not be called meanwhile.
func (m *Mapping) Replace(at int64, f *os.File, offset, size int64) error {
	page := int64(os.Getpagesize())
	if (at|offset|size)%page != 0 || at < 0 || offset < 0 || size <= 0 || size > (m.size+page-1)/page*page-at {
		return invalid("%s: bytes %d to %d over those from %d on, of %d", f.Name(), offset, offset+size, at, m.size)
	}
	have, err := sizeOf(f)
	if err != nil {
		return err
	}
	if offset > have-size {
		return invalid("%s: bytes to %d were named, the file has %d", f.Name(), offset+size, have)
	}
	// The file is mapped elsewhere first, and moved then: where the kernel refuses to map it in place, it leaves a gap.
	err = control(f, func(fd int) error {
		aside, err := unix.MmapPtr(fd, offset, nil, uintptr(size), m.protection(), unix.MAP_SHARED)
		if err != nil {
			return err
		}
		if _, err := unix.MremapPtr(aside, uintptr(size), unsafe.Add(m.addr, at), uintptr(size), unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED); err != nil {
			return errors.Join(err, unix.MunmapPtr(aside, uintptr(size)))
		}
		return nil
	})
	if err != nil {
		return invalid("mmap %s: %w", f.Name(), err)
	}
	return nil
}

func (m *Mapping) protection() int {
	if m.writable {
		return unix.PROT_READ | unix.PROT_WRITE
	}
	return unix.PROT_READ
}

// Bytes gives the mapped memory, or nil after Close. It aliases the file: writes of other processes
// show in it, and writing to a mapping that is not writable faults.
func (m *Mapping) Bytes() []byte {
	if m.closed.Load() {
		return nil
	}
	return unsafe.Slice((*byte)(m.addr), m.size)
}

// Addr gives the address of the first byte, which stays the same after Close.
func (m *Mapping) Addr() uintptr { return uintptr(m.addr) }

// Size gives the number of bytes mapped.
func (m *Mapping) Size() int64 { return m.size }

// Writable reports whether the memory may be written.
func (m *Mapping) Writable() bool { return m.writable }

// Close unmaps the memory; with NDBRIDGE_GUARD=1 in the environment it leaves the range reserved
// and inaccessible instead. It is idempotent.
func (m *Mapping) Close() error {
	if m.closed.Swap(true) {
		return nil
	}
	if os.Getenv(guardVariable) == "1" {
		return m.fence()
	}
	return os.NewSyscallError("munmap", unix.MunmapPtr(m.addr, uintptr(m.size)))
}

// fence puts inaccessible anonymous memory in the mapping's place, which lets go of the file.
func (m *Mapping) fence() error {
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_NORESERVE | unix.MAP_FIXED
	at, err := unix.MmapPtr(-1, 0, m.addr, uintptr(m.size), unix.PROT_NONE, flags)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	if at != m.addr {
		return errors.New("mmap moved a fixed mapping")
	}
	return nil
}
