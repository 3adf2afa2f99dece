package running

import "golang.org/x/sys/unix"

// bound reports whether a process has the socket at a path, of whichever container. That process does not notice: the kernel says that its
// socket is of another type before it says anything to it.
func bound(path string) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true // it is not known
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was sent
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	return err != unix.ECONNREFUSED && err != unix.ENOENT
}
