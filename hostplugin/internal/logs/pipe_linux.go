package logs

import "golang.org/x/sys/unix"

// waiting gives how many bytes lie in a pipe.
func waiting(fd uintptr) (int, error) { return unix.IoctlGetInt(int(fd), unix.TIOCINQ) }

// readFD reads from a descriptor, whatever its deadline.
func readFD(fd uintptr, buf []byte) (int, error) { return unix.Read(int(fd), buf) }
