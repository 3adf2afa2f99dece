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

// spin bounds how long a loop goes round without sleeping. There is no sense in it while the other side is
// kept from running by this one, which has its CPU: then this one steps aside.
type spin struct {
	budget      time.Duration
	mine, peers *atomic.Uint32 // a side's CPU when it last looked, and 1
	moves       bool           // to another CPU, if both sides meet on one again and again
	met         int            // how often they have, one time after the other
	rounds      int
	start       time.Time
	took        time.Duration // from start to the last look at the clock
}

// restart begins the time anew, until the side whose CPU peers is has something to say.
func (s *spin) restart(peers *atomic.Uint32) { s.rounds, s.peers = 0, peers }

// slept is restart after a sleep, from which one wakes up on any CPU.
func (s *spin) slept(peers *atomic.Uint32) {
	s.restart(peers)
	s.met = 0
}

// goOn reports whether to go round once more. It looks at the clock once in a while, and more seldom at
// where it runs, but not at once: what comes quickly shall not wait for that.
func (s *spin) goOn() bool {
	const clock, where, late = 64, 128, 256
	if s.budget <= 0 {
		return false
	}
	switch s.rounds++; {
	case s.rounds == clock:
		s.start, s.took = time.Now(), 0
	case s.rounds%clock == 0:
		s.took = time.Since(s.start)
		if s.took >= s.budget {
			return false
		}
		if s.rounds >= late && s.rounds%where == 0 {
			s.stepAside()
		}
	}
	return true
}

// stepAside lets the other side run if that has this one's CPU. The scheduler would part them, too, but only
// after some milliseconds.
func (s *spin) stepAside() {
	const often = 4
	cpu, together := s.place()
	if !together {
		s.met = 0
		return
	}
	if s.met++; s.moves && s.met >= often && s.met&(s.met-1) == 0 { // less and less often, if it does not help
		leave(cpu)
		return
	}
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}

// leave moves this thread away from a CPU, if it may run on others, and lets it run on all again that it may.
func leave(cpu int) {
	var all unix.CPUSet
	if unix.SchedGetaffinity(0, &all) != nil || all.Count() < 2 {
		return
	}
	others := all
	others.Clear(cpu)
	if unix.SchedSetaffinity(0, &others) == nil {
		_ = unix.SchedSetaffinity(0, &all) // which it had
	}
}

// place says which CPU this is, and whether the other side was last seen on it.
func (s *spin) place() (cpu int, together bool) {
	var n uint32
	if _, _, err := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&n)), 0, 0); err != 0 {
		return 0, false
	}
	if s.mine.Load() != n+1 {
		s.mine.Store(n + 1)
	}
	return int(n), s.peers.Load() == n+1
}
