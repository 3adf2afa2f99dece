//go:build linux

package fdpass

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxPath is how long the path of a socket may be for the kernel.
	maxPath = 107
	// fullWait is how long Dial waits before it tries a socket again at which too many wait already.
	fullWait = 10 * time.Millisecond
)

// Peer is who is at the other end of a connection: the process that called listen or connect, and its user.
type Peer struct{ PID, UID int }

// Dial connects to a Unix seqpacket socket by its path, which may be of any length. It waits while too many others do, until ctx ends.
func Dial(ctx context.Context, path string) (*Conn, Peer, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, Peer{}, os.NewSyscallError("socket", err)
	}
	if err = connect(ctx, fd, path); err != nil {
		return nil, Peer{}, errors.Join(err, unix.Close(fd))
	}
	return connected(fd)
}

// connected makes a Conn of a connection, which it takes over.
func connected(fd int) (*Conn, Peer, error) {
	credentials, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return nil, Peer{}, errors.Join(os.NewSyscallError("getsockopt", err), unix.Close(fd))
	}
	c, err := FromFD(fd)
	return c, Peer{PID: int(credentials.Pid), UID: int(credentials.Uid)}, err
}

// StreamPair makes a connected pair of Unix stream sockets: this process's end, and the other as a file to be sent. The caller owns both.
func StreamPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "stream"), os.NewFile(uintptr(fds[1]), "stream-peer")
	conn, err := net.FileConn(ours) // of a duplicate
	if err = errors.Join(err, ours.Close()); err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn, theirs, nil
}

func connect(ctx context.Context, fd int, path string) error {
	if len(path) > maxPath {
		file, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return os.NewSyscallError("open", err)
		}
		defer unix.Close(file) //nolint:errcheck // only for its short name
		path = fmt.Sprintf("/proc/self/fd/%d", file)
	}
	for {
		err := unix.Connect(fd, &unix.SockaddrUnix{Name: path})
		switch {
		case errors.Is(err, unix.EAGAIN):
			select {
			case <-time.After(fullWait):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		case errors.Is(err, unix.EINTR):
		default:
			return os.NewSyscallError("connect", err)
		}
	}
}

// Listener waits for whoever connects to a Unix seqpacket socket.
type Listener struct{ file *os.File }

// Listen makes a socket at a path, which must not exist.
func Listen(path string) (*Listener, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err = unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err == nil {
		err = unix.Listen(fd, 1)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("a socket at %s: %w", path, err), unix.Close(fd))
	}
	return &Listener{os.NewFile(uintptr(fd), path)}, nil
}

// Accept waits for the next to connect, until ctx ends.
func (l *Listener) Accept(ctx context.Context) (*Conn, Peer, error) {
	stop := context.AfterFunc(ctx, func() { _ = l.file.SetReadDeadline(time.Now()) }) // fails after Close alone
	defer stop()
	raw, err := l.file.SyscallConn()
	if err != nil {
		return nil, Peer{}, err
	}
	var fd int
	var failed error
	err = raw.Read(func(listening uintptr) bool {
		fd, _, failed = unix.Accept4(int(listening), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		return !errors.Is(failed, unix.EAGAIN) && !errors.Is(failed, unix.EINTR)
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, Peer{}, context.Cause(ctx)
	case err != nil:
		return nil, Peer{}, err
	case failed != nil:
		return nil, Peer{}, os.NewSyscallError("accept", failed)
	}
	return connected(fd)
}

// Close ends the listener. The socket's file stays.
func (l *Listener) Close() error { return l.file.Close() }
