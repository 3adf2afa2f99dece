// Package futex sleeps on words of memory that processes share.
package futex

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Not private ones: the word is another process's as well.
const (
	opWait = 0
	opWake = 1
)

// Wait sleeps while the word is old, but not longer than limit, unless that is 0. It may return early,
// whatever the word is: the caller looks again.
func Wait(w *atomic.Uint32, old uint32, limit time.Duration) {
	var timeout *unix.Timespec
	if limit > 0 {
		t := unix.NsecToTimespec(int64(limit))
		timeout = &t
	}
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w)), opWait, uintptr(old),
		uintptr(unsafe.Pointer(timeout)), 0, 0)
}

// Wake ends the sleep of up to n of those who wait.
func Wake(w *atomic.Uint32, n int) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w)), opWake, uintptr(n), 0, 0, 0)
}
