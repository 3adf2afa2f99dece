package shm

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
)

// spares is how many descriptors [Reserve] keeps. A look needs up to two for a moment, which are left for it; a copy that
// has a file of its own needs one for as long as it stands.
const (
	spares  = 6
	passing = 2
)

// reserved is what [Reserve] keeps.
var reserved reserve //nolint:gochecknoglobals // a process has one table of descriptors

type reserve struct {
	mu    sync.Mutex
	on    bool
	self  *os.File // /proc/self/fd; nil: it was out of reach from the start
	spare []spare
}

// spare is a descriptor that is there for its number: of a file of its own, since whoever closes the descriptors of
// others makes the number somebody else's.
type spare struct {
	fd  int
	ino uint64
}

// Reserve lets this process open memory again whatever becomes of its surroundings: /proc may be out of reach later
// (chroot), and all descriptors that its limit allows may be in use. It takes a few descriptors for that, once.
func Reserve() {
	r := &reserved
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.on {
		return
	}
	r.on = true
	if dir, err := os.Open("/proc/self/fd"); err == nil {
		r.self = dir
	}
	r.fill()
}

// fill makes up for what was given away, as far as there are descriptors.
func (r *reserve) fill() {
	for r.on && len(r.spare) < spares {
		fd, err := unix.MemfdCreate("ndbridge-spare", unix.MFD_CLOEXEC)
		if err != nil {
			return
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil {
			return
		}
		r.spare = append(r.spare, spare{fd, st.Ino})
	}
}

// give gives a number away, to whoever is the first to need one, unless no more than some are left.
func (r *reserve) give(leave int) bool {
	for len(r.spare) > leave {
		s := r.spare[len(r.spare)-1]
		r.spare = r.spare[:len(r.spare)-1]
		var st unix.Stat_t
		if unix.Fstat(s.fd, &st) == nil && st.Ino == s.ino && unix.Close(s.fd) == nil {
			return true
		}
	}
	return false
}

// Open calls open, which makes a descriptor that is soon closed. If no number is left for that, it has one of the reserve.
func Open(open func() (fd int, err error)) (int, error) { return reserved.open(0, open) }

func (r *reserve) open(leave int, open func() (int, error)) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fill()
	fd, err := open()
	for errors.Is(err, unix.EMFILE) && r.give(leave) {
		fd, err = open()
	}
	if !errors.Is(err, unix.EMFILE) {
		return fd, err
	}
	var limit unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) // it does not fail
	return -1, &core.Error{
		Op: "open memory", Kind: core.ErrUnavailable, Err: fmt.Errorf("the process has all %d files open that its limit allows: %w", limit.Cur, err),
		Remedy: "raise the limit on open files (ulimit -n), or close files in the program",
	}
}

// again opens the file of a descriptor once more, with flags of its own.
func again(fd, flags int) (int, error) {
	return Open(func() (int, error) {
		// O_NONBLOCK: a file that turns out to be a pipe must not block the open.
		flags := flags | unix.O_CLOEXEC | unix.O_NONBLOCK
		opened, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), flags, 0)
		if err == nil || errors.Is(err, unix.EMFILE) || reserved.self == nil {
			return opened, err
		}
		opened, err2 := unix.Openat(int(reserved.self.Fd()), strconv.Itoa(fd), flags, 0)
		if errors.Is(err2, unix.EMFILE) {
			return -1, err2
		}
		if err2 != nil {
			return -1, err
		}
		if !sameFile(opened, fd) { // somebody has closed the directory, and another one has got its number
			return -1, errors.Join(err, unix.Close(opened))
		}
		return opened, nil
	})
}

func sameFile(a, b int) bool {
	var sa, sb unix.Stat_t
	return unix.Fstat(a, &sa) == nil && unix.Fstat(b, &sb) == nil && sa.Dev == sb.Dev && sa.Ino == sb.Ino
}
