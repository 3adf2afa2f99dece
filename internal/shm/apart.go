//go:build linux

package shm

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
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
	begun := make(chan error)
	apart.jobs = make(chan job)
	go func() {
		runtime.LockOSThread() // for good: nobody else may get this thread
		err := leave(keep)
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

// leave gives the calling thread what it has alone.
func leave(keep int) error {
	const table = "/proc/self/fd"
	entries, err := os.ReadDir(table)
	if err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_FILES | unix.CLONE_FS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd == keep || fd == 2 {
			continue
		}
		what, err := os.Readlink(filepath.Join("/proc/thread-self/fd", e.Name()))
		if err == nil && !strings.HasPrefix(what, "anon_inode:[event") { // else it is that of the directory
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

// isApart reports whether a file's descriptor is in the table apart.
func isApart(f *os.File) bool {
	_, is := apart.files.Load(f)
	return is
}

// Use runs do where f's descriptor is f's. It is for calls that need the descriptor, on files that may be of this package.
func Use(f *os.File, do func()) {
	if isApart(f) {
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
