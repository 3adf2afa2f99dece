package main

import (
	"errors"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// futexPair is two words in memory that two processes share: each side sleeps until the other writes its
// word. The calls of the kernel are raw: this is what two threads need, without Go's scheduler.
type futexPair struct {
	mine, theirs *atomic.Uint32
	stamp        *atomic.Int64 // when the side that is asked wrote its word
}

func newFutexPair(mem []byte, asked bool) futexPair {
	const line = 64 // of the cache: the words do not share one
	a, b := (*atomic.Uint32)(unsafe.Pointer(&mem[0])), (*atomic.Uint32)(unsafe.Pointer(&mem[line]))
	stamp := (*atomic.Int64)(unsafe.Pointer(&mem[2*line]))
	if asked {
		return futexPair{b, a, stamp}
	}
	return futexPair{a, b, stamp}
}

// write sets this side's word, and wakes the other.
func (p futexPair) write(value uint32) {
	const wake = 1
	p.mine.Store(value)
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(p.mine)), wake, 1, 0, 0, 0)
}

var errNoAnswer = errors.New("the other process does not answer")

// sleep waits until the other side's word is no longer old.
func (p futexPair) sleep(old uint32) (uint32, error) {
	const wait = 0
	for timeout := unix.NsecToTimespec(int64(10 * time.Second)); ; {
		if value := p.theirs.Load(); value != old {
			return value, nil
		}
		_, _, errno := unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(p.theirs)), wait, uintptr(old),
			uintptr(unsafe.Pointer(&timeout)), 0, 0)
		if errno == unix.ETIMEDOUT {
			return 0, errNoAnswer
		}
	}
}
