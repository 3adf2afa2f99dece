package kit

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/internal/shm"
)

// reopen makes a descriptor of its own to the file behind f; unlike a duplicate it can have other
// rights. f cannot be closed, and its number taken by another file, meanwhile.
func reopen(f *os.File, writable bool) (*os.File, error) {
	if !writable {
		return shm.ReadOnly(f)
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var opened *os.File
	var inner error
	if err := raw.Control(func(fd uintptr) {
		opened, inner = os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(fd)), os.O_RDWR|unix.O_CLOEXEC, 0)
	}); err != nil {
		return nil, os.ErrClosed // the only way Control fails
	}
	return opened, inner
}
