package ring

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	futexWait = 0 // not private: the word is another process's as well
	futexWake = 1
)

// wait sleeps while the word is old, but not longer than limit, unless that is 0. It may return early.
func wait(w *atomic.Uint32, old uint32, limit time.Duration) {
	var timeout *unix.Timespec
	if limit > 0 {
		t := unix.NsecToTimespec(int64(limit))
		timeout = &t
	}
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w)), futexWait, uintptr(old),
		uintptr(unsafe.Pointer(timeout)), 0, 0) // whatever ends it, the caller looks again
}

// wake ends the sleep of one that waits.
func wake(w *atomic.Uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w)), futexWake, 1, 0, 0, 0)
}

// spin bounds how long a loop goes round without sleeping.
type spin struct {
	budget time.Duration
	rounds int
	start  time.Time
	took   time.Duration // from start to the last look at the clock
}

func newSpin(budget time.Duration) spin { return spin{budget: budget} }

// restart begins the time anew.
func (s *spin) restart() { s.rounds = 0 }

// goOn reports whether to go round once more. It looks at the clock once in a while, but not at once: what
// comes quickly shall not wait for that.
func (s *spin) goOn() bool {
	const between = 64
	if s.budget <= 0 {
		return false
	}
	switch s.rounds++; {
	case s.rounds == between:
		s.start, s.took = time.Now(), 0
	case s.rounds%between == 0:
		s.took = time.Since(s.start)
		return s.took < s.budget
	}
	return true
}
