package kit

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pwritev is pwritev(2) from addresses of memory that is not Go's.
func pwritev(f *os.File, v []iovec, offset int64) (uintptr, error) {
	n, _, errno := unix.Syscall6(unix.SYS_PWRITEV, f.Fd(), uintptr(unsafe.Pointer(&v[0])),
		uintptr(len(v)), uintptr(offset), 0, 0)
	runtime.KeepAlive(f)
	if errno != 0 {
		return 0, errno
	}
	return n, nil
}
