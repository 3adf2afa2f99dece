//go:build linux

// Package fdpass carries open file descriptors, with short messages, between two processes over a
// pair of SOCK_SEQPACKET Unix sockets.
//
// Message boundaries are kept, a message and its descriptors arrive together, and the end of one
// side's last copy of its socket is the end of file of the other: that is how each side learns that
// the other is gone.
package fdpass

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// MaxMessage is the largest message, in bytes, that Send takes and Recv gives.
	MaxMessage = 64 << 10
	// MaxFiles is the largest number of descriptors that one message may carry.
	MaxFiles = 4
	// sendTimeout bounds a Send to a peer that does not read. Messages are few and short, so a full
	// socket means that the peer is stopped or stuck.
	sendTimeout = 5 * time.Second
)

// ErrTruncated says that a message arrived incomplete: it was longer than [MaxMessage], it carried
// more than [MaxFiles] descriptors, or this process has no room for more of them. What did come of
// the descriptors has been closed.
var ErrTruncated = errors.New("message truncated")

// Conn is one end of a socket pair. Send and Recv may be called from several goroutines.
type Conn struct {
	file   *os.File
	raw    syscall.RawConn
	closed atomic.Bool

	sending sync.Mutex // one deadline at a time

	receiving sync.Mutex // owns the buffers
	data      []byte
	control   []byte
}

// Pair makes a connected pair: this process's end, and the other as a blocking file for another
// process to inherit. Both are close-on-exec; [os/exec.Cmd.ExtraFiles] hands the file over. The
// caller owns both.
func Pair() (*Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	c, err := FromFD(fds[0])
	if err != nil {
		return nil, nil, errors.Join(err, unix.Close(fds[1]))
	}
	return c, os.NewFile(uintptr(fds[1]), "fdpass-peer"), nil
}

// FromFD makes a Conn of an inherited descriptor, which it takes over and makes close-on-exec and
// non-blocking. The descriptor keeps its number. What is not a Unix seqpacket socket is refused and
// left alone.
func FromFD(fd int) (*Conn, error) {
	if err := checkSocket(fd); err != nil {
		return nil, err
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(os.NewSyscallError("fcntl", err), unix.Close(fd))
	}
	return fromFile(os.NewFile(uintptr(fd), "fdpass"))
}

// FromFile makes a Conn of f, which it takes over: the caller must not use f again. If f is in
// non-blocking mode, the connection keeps its descriptor; otherwise it moves to a new one. What is
// not a Unix seqpacket socket is refused and left alone.
func FromFile(f *os.File) (*Conn, error) {
	fd := int(f.Fd())
	if err := checkSocket(fd); err != nil {
		return nil, err
	}
	if f.SetDeadline(time.Time{}) == nil { // only files in non-blocking mode have deadlines
		return fromFile(f)
	}
	moved, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(os.NewSyscallError("fcntl", err), f.Close())
	}
	if err := f.Close(); err != nil {
		return nil, errors.Join(err, unix.Close(moved))
	}
	return FromFD(moved)
}

func fromFile(f *os.File) (*Conn, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Conn{
		file:    f,
		raw:     raw,
		data:    make([]byte, MaxMessage),
		control: make([]byte, unix.CmsgSpace(MaxFiles*4)),
	}, nil
}

func checkSocket(fd int) error {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return fmt.Errorf("descriptor %d is not a socket: %w", fd, err)
	}
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return fmt.Errorf("descriptor %d is not a socket: %w", fd, err)
	}
	if kind != unix.SOCK_SEQPACKET || domain != unix.AF_UNIX {
		return fmt.Errorf("descriptor %d: expected a Unix seqpacket socket, got domain %d, type %d: %w",
			fd, domain, kind, unix.EPROTOTYPE)
	}
	return nil
}

// Descriptor gives the number of this end's descriptor, which stays the Conn's.
func (c *Conn) Descriptor() (number int) {
	_ = c.raw.Control(func(fd uintptr) { number = int(fd) }) // fails after Close alone
	return number
}

// Close closes this end. A Recv or Send that is waiting returns [os.ErrClosed]. Close is idempotent.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.file.Close()
}

// Send sends one message of 1 to [MaxMessage] bytes, and duplicates of at most [MaxFiles] files,
// which stay the caller's. It waits while the peer's queue is full, at most 5 s
// ([os.ErrDeadlineExceeded]). A peer that is gone is [unix.EPIPE].
func (c *Conn) Send(msg []byte, files ...*os.File) error {
	if len(msg) == 0 || len(msg) > MaxMessage {
		return fmt.Errorf("message of %d bytes, expected 1 to %d: %w", len(msg), MaxMessage, unix.EMSGSIZE)
	}
	if len(files) > MaxFiles {
		return fmt.Errorf("message with %d files, expected at most %d: %w", len(files), MaxFiles, unix.EMSGSIZE)
	}
	return withFDs(files, nil, func(fds []int) error {
		var control []byte
		if len(fds) > 0 {
			control = unix.UnixRights(fds...)
		}
		return c.send(msg, control)
	})
}

func (c *Conn) send(msg, control []byte) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	if err := c.file.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return c.waitError(err)
	}
	var sendErr error
	err := c.raw.Write(func(fd uintptr) bool {
		for {
			sendErr = unix.Sendmsg(int(fd), msg, control, nil, unix.MSG_NOSIGNAL)
			if !errors.Is(sendErr, unix.EINTR) {
				return !errors.Is(sendErr, unix.EAGAIN)
			}
		}
	})
	if err != nil {
		return c.waitError(err)
	}
	return os.NewSyscallError("sendmsg", sendErr)
}

// SendOn is [Conn.Send] on a descriptor of a socket in non-blocking mode, whose number only the calling thread may know. So is file's.
func SendOn(fd int, msg []byte, file *os.File) error {
	return withFDs([]*os.File{file}, nil, func(fds []int) error {
		for deadline := time.Now().Add(sendTimeout); ; {
			err := unix.Sendmsg(fd, msg, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
			switch left := time.Until(deadline); {
			case errors.Is(err, unix.EAGAIN) && left <= 0:
				return os.ErrDeadlineExceeded
			case errors.Is(err, unix.EAGAIN):
				_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, int(left.Milliseconds())+1) // Sendmsg says what is wrong
			case !errors.Is(err, unix.EINTR):
				return os.NewSyscallError("sendmsg", err)
			}
		}
	})
}

// withFDs calls f with the descriptors of files, none of which can be closed meanwhile.
func withFDs(files []*os.File, fds []int, f func([]int) error) error {
	if len(files) == 0 {
		return f(fds)
	}
	raw, err := files[0].SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if raw.Control(func(fd uintptr) { inner = withFDs(files[1:], append(fds, int(fd)), f) }) != nil {
		return fmt.Errorf("file %s: %w", files[0].Name(), os.ErrClosed) // the only way Control fails
	}
	return inner
}

// Recv waits for the next message. The caller owns the files, which are close-on-exec. At the end
// of the peer it returns [io.EOF], after Close [os.ErrClosed].
//
// If the message did not arrive whole, Recv returns what there is of its bytes, no files, and an
// error that wraps [ErrTruncated]; the connection stays usable.
func (c *Conn) Recv() (msg []byte, files []*os.File, err error) {
	c.receiving.Lock()
	defer c.receiving.Unlock()
	var n, controlLen, flags int
	var recvErr error
	err = c.raw.Read(func(fd uintptr) bool {
		for {
			n, controlLen, flags, _, recvErr = unix.Recvmsg(int(fd), c.data, c.control, unix.MSG_CMSG_CLOEXEC)
			if !errors.Is(recvErr, unix.EINTR) {
				return !errors.Is(recvErr, unix.EAGAIN)
			}
		}
	})
	switch {
	case err != nil:
		return nil, nil, c.waitError(err)
	case errors.Is(recvErr, unix.ECONNRESET): // the peer closed with unread messages in its queue
		return nil, nil, io.EOF
	case recvErr != nil:
		return nil, nil, os.NewSyscallError("recvmsg", recvErr)
	}
	files, err = parseFiles(c.control[:controlLen])
	if n == 0 && len(files) == 0 && err == nil {
		return nil, nil, io.EOF
	}
	msg = append([]byte(nil), c.data[:n]...)
	if err == nil && (flags&(unix.MSG_CTRUNC|unix.MSG_TRUNC) != 0 || len(files) > MaxFiles) {
		err = fmt.Errorf("%w: %d bytes and %d files came", ErrTruncated, n, len(files))
	}
	if err != nil {
		return msg, nil, errors.Join(err, closeAll(files))
	}
	return msg, files, nil
}

// parseFiles takes over every descriptor in control, whatever else is wrong with it.
func parseFiles(control []byte) ([]*os.File, error) {
	if len(control) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, fmt.Errorf("control message: %w", err)
	}
	var files []*os.File
	for i := range messages {
		if messages[i].Header.Level != unix.SOL_SOCKET || messages[i].Header.Type != unix.SCM_RIGHTS {
			continue
		}
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return files, fmt.Errorf("control message: %w", err)
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received descriptor"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// waitError names the end of a wait: the runtime's own error for a closed file is not exported.
func (c *Conn) waitError(err error) error {
	if c.closed.Load() {
		return os.ErrClosed
	}
	return err
}
