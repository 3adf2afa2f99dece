//go:build linux

package shm

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// procmapQuery mirrors struct procmap_query of linux/fs.h (Linux 6.11).
type procmapQuery struct {
	size        uint64
	flags       uint64
	addr        uint64
	start       uint64
	end         uint64
	vmaFlags    uint64
	pageSize    uint64
	offset      uint64
	inode       uint64
	devMajor    uint32
	devMinor    uint32
	nameSize    uint32
	buildIDSize uint32
	nameAddr    uint64
	buildIDAddr uint64
}

const (
	procmapQuerySize = uint64(unsafe.Sizeof(procmapQuery{}))
	procmapQueryCall = uintptr(3<<30 | procmapQuerySize<<16 | 'f'<<8 | 17) // _IOWR('f', 17, …)

	procmapWritable = 0x02
	procmapShared   = 0x08
)

// queryMapping asks the kernel for the mapping that covers addr: far cheaper than reading the whole
// table. The error is errors.ErrUnsupported on kernels before 6.11; ok is false where nothing is
// mapped. The path is left out unless it is wanted.
func queryMapping(maps syscall.RawConn, addr uintptr, path bool) (m Mapped, ok bool, err error) {
	q := procmapQuery{size: procmapQuerySize, addr: uint64(addr)}
	if ok, err := q.do(maps); !ok || err != nil {
		return Mapped{}, false, err
	}
	if path && q.inode != 0 {
		// Asked for separately: most memory is anonymous, and names need a buffer.
		var pin runtime.Pinner
		defer pin.Unpin()
		name := new([unix.PathMax]byte)
		pin.Pin(name)
		q = procmapQuery{size: procmapQuerySize, addr: uint64(addr)}
		q.nameSize, q.nameAddr = uint32(len(name)), uint64(uintptr(unsafe.Pointer(name)))
		if ok, err := q.do(maps); !ok || err != nil {
			return Mapped{}, false, err
		}
		path, _, _ := bytes.Cut(name[:min(int(q.nameSize), len(name))], []byte{0})
		m.Path = string(path)
	}
	m.Start, m.End = uintptr(q.start), uintptr(q.end)
	m.Writable = q.vmaFlags&procmapWritable != 0
	m.Shared = q.vmaFlags&procmapShared != 0
	m.Offset = int64(q.offset)
	m.file = fileID{dev: unix.Mkdev(q.devMajor, q.devMinor), ino: q.inode}
	return m, true, nil
}

func (q *procmapQuery) do(maps syscall.RawConn) (ok bool, err error) {
	var errno unix.Errno
	err = maps.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, procmapQueryCall, uintptr(unsafe.Pointer(q)))
	})
	switch {
	case err != nil:
		return false, os.ErrClosed // the only way Control fails
	case errno == 0:
		return true, nil
	case errno == unix.ENOENT:
		return false, nil
	case errno == unix.ENOTTY, errno == unix.EINVAL:
		return false, errors.ErrUnsupported
	default:
		return false, os.NewSyscallError("ioctl(PROCMAP_QUERY)", errno)
	}
}
