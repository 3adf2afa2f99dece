package routes

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pwritev is pwritev(2) from addresses of memory that is not Go's. The descriptor stays the file's during the call,
// whoever closes the file.
func pwritev(f *os.File, v []iovec, offset int64) (n uintptr, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var errno unix.Errno
	err = conn.Control(func(fd uintptr) {
		n, _, errno = unix.Syscall6(unix.SYS_PWRITEV, fd, uintptr(unsafe.Pointer(&v[0])), uintptr(len(v)), uintptr(offset), 0, 0)
	})
	if err == nil && errno != 0 {
		err = errno
	}
	if err != nil {
		return 0, &os.PathError{Op: "pwritev", Path: f.Name(), Err: err}
	}
	return n, nil
}

// readv is process_vm_readv(2) from addresses of this process, of memory that is not Go's.
func readv(to []byte, from []iovec) (n uintptr, err error) {
	local := unix.Iovec{Base: unsafe.SliceData(to), Len: uint64(len(to))}
	n, _, errno := unix.Syscall6(unix.SYS_PROCESS_VM_READV, uintptr(os.Getpid()), uintptr(unsafe.Pointer(&local)), 1,
		uintptr(unsafe.Pointer(&from[0])), uintptr(len(from)), 0)
	if errno != 0 {
		return 0, errno
	}
	return n, nil
}

// fetch has the kernel map what can be read of some memory, if it knows how to (Linux 5.14).
func fetch(addr, size uintptr) {
	start := addr &^ uintptr(os.Getpagesize()-1)
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, addr+size-start, unix.MADV_POPULATE_READ)
}
