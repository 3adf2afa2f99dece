//go:build linux

package shm

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// apart is where this package opens files in a process that has called [Separate].
var apart apartment //nolint:gochecknoglobals // a process has one table of descriptors, or one more

// apartment is a thread with a table of descriptors and a root directory of its own.
type apartment struct {
	thread int // its ID; 0: there is none
	gate   int // a socket, whose peer of this number is there; 0: there is none
	door   int // that peer
	enter  sync.Mutex
	jobs   chan job
	files  sync.Map // *os.File: those whose descriptors are in that table. It keeps them reachable
}

type job struct {
	do   func()
	done chan struct{}
}

// Separate makes this package open its files where the rest of the process does not see them: in a table of descriptors
// and with a root directory that belong to one thread. A program in the same process keeps what Unix promises it, that
// it gets the lowest number that is free and that a number which it has closed stays free, although the plugin opens
// files meanwhile. And the plugin can open files although the program has used up its descriptors, or changed its root.
//
// Of the descriptors that are open these stay open there: standard error, to which Go writes what ends it, those with which
// Go's scheduler waits for others, for it may do so on any thread, and keep. Separate is called at most once, before any
// other function of this package, and when Go waits for something already. If the kernel refuses, nothing changes.
func Separate(keep int) error {
	return separate(func() error {
		return leave(func(fd int, what string) bool {
			return fd == keep || fd == 2 || strings.HasPrefix(what, "anon_inode:[event")
		})
	})
}

// SeparateLate is [Separate] for a process that hosts come to, whose sockets [Admit] brings there. Of the descriptors that are open only those
// of the poller stay open there, which the caller knows: the program may wait for the end of any other. The result is a descriptor that must
// stay open.
func SeparateLate(poller ...int) (gate int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return 0, os.NewSyscallError("socketpair", err)
	}
	err = separate(func() error {
		if err := leave(func(fd int, _ string) bool { return fd == pair[1] || fd == 2 || slices.Contains(poller, fd) }); err != nil {
			return err
		}
		// Go writes to standard error what ends it. No other file may be there.
		null, err := unix.Open(os.DevNull, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil //nolint:nilerr // the program's own will do
		}
		if null != 2 {
			err = errors.Join(unix.Dup3(null, 2, unix.O_CLOEXEC), unix.Close(null))
		}
		return err
	})
	_ = unix.Close(pair[1]) // a duplicate by now
	if err != nil {
		_ = unix.Close(pair[0]) // likewise
		return 0, err
	}
	apart.gate, apart.door = pair[0], pair[1]
	return apart.gate, nil
}

// Admitted is a duplicate of a descriptor where files are opened apart.
type Admitted struct{ fd int }

// Admit makes a duplicate of a descriptor of the process's for use beside the files that are opened apart. It gives nil if there is no such
// place, or the descriptor was brought there by [Separate].
func Admit(fd int) (*Admitted, error) {
	if apart.gate == 0 {
		return nil, nil //nolint:nilnil // see above
	}
	apart.enter.Lock()
	defer apart.enter.Unlock()
	if err := unix.Sendmsg(apart.gate, []byte{0}, unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT); err != nil {
		return nil, os.NewSyscallError("sendmsg", err)
	}
	a := new(Admitted)
	var err error
	Apart(func() { a.fd, err = receive(apart.door) })
	if err != nil {
		return nil, err
	}
	return a, nil
}

// receive takes the descriptor that waits at a socket.
func receive(socket int) (int, error) {
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), control, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if err != nil {
		return 0, os.NewSyscallError("recvmsg", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return 0, errors.Join(errors.New("no descriptor was passed"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return 0, errors.Join(errors.New("no descriptor was passed"), err)
	}
	return fds[0], nil
}

// Use runs do with the descriptor, where it is that; with -1 after Close.
func (a *Admitted) Use(do func(fd int)) { Apart(func() { do(a.fd) }) }

// Close closes the duplicate. It must be called once.
func (a *Admitted) Close() (err error) {
	Apart(func() { err, a.fd = unix.Close(a.fd), -1 })
	return err
}

// separate makes the thread that all files are opened on, by away.
func separate(away func() error) error {
	begun := make(chan error)
	apart.jobs = make(chan job)
	go func() {
		runtime.LockOSThread() // for good: nobody else may get this thread
		err := away()
		if err == nil {
			apart.thread = unix.Gettid()
		}
		begun <- err
		if err != nil {
			return
		}
		for j := range apart.jobs {
			j.do()
			close(j.done)
		}
	}()
	return <-begun
}

// leave gives the calling thread what it has alone: of what is open, that which keep wants. Only then it looks what that is, since other
// threads may open files meanwhile. After an error the thread must end.
func leave(keep func(fd int, what string) bool) error {
	if err := unix.Unshare(unix.CLONE_FILES | unix.CLONE_FS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	const table = "/proc/thread-self/fd"
	entries, err := os.ReadDir(table)
	if err != nil {
		return err
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		what, err := os.Readlink(filepath.Join(table, e.Name()))
		if err == nil && !keep(fd, what) { // else it is that of the directory
			_ = unix.Close(fd) // it is a duplicate
		}
	}
	return nil
}

// Apart runs do on the thread of [Separate], if there is one, and else at once. do must not wait for others that
// want to run there.
func Apart(do func()) {
	if apart.thread == 0 || unix.Gettid() == apart.thread {
		do()
		return
	}
	j := job{do, make(chan struct{})}
	apart.jobs <- j
	<-j.done
}

// opened makes a file of a descriptor that was opened apart. It is called there.
func opened(fd int, name string) *os.File {
	f := os.NewFile(uintptr(fd), name)
	if apart.thread != 0 {
		apart.files.Store(f, struct{}{})
	}
	return f
}

// IsApart reports whether a file's descriptor is in the table apart.
func IsApart(f *os.File) bool {
	_, is := apart.files.Load(f)
	return is
}

// Use runs do where f's descriptor is f's. It is for calls that need the descriptor, on files that may be of this package.
func Use(f *os.File, do func()) {
	if IsApart(f) {
		Apart(do)
		return
	}
	do()
}

// Close closes a file, which may be one that this package has opened.
func Close(f *os.File) (err error) {
	Use(f, func() { err = f.Close() })
	apart.files.Delete(f)
	return err
}

// OpenPath opens a file by its path. The file is close-on-exec, and the caller's, who closes it with [Close].
func OpenPath(path string, flags int) (f *os.File, err error) {
	Apart(func() {
		var fd int
		// O_NONBLOCK: a file that turns out to be a pipe must not block the open.
		if fd, err = unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err == nil {
			f = opened(fd, path)
		}
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return f, nil
}

// ReadFile is os.ReadFile with what [Separate] promises.
func ReadFile(path string) (text []byte, err error) {
	Apart(func() { text, err = os.ReadFile(path) })
	return text, err
}

// control calls do with f's descriptor, which cannot be closed meanwhile. Unlike Fd it leaves the
// file's blocking mode alone.
func control(f *os.File, do func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	Use(f, func() { err = raw.Control(func(fd uintptr) { inner = do(int(fd)) }) })
	if err != nil {
		return os.ErrClosed // the only way Control fails
	}
	return inner
}

// joined closes files because of an error, which it gives together with theirs.
func joined(err error, files ...*os.File) error {
	for _, f := range files {
		err = errors.Join(err, Close(f))
	}
	return err
}
