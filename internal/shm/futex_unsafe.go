//go:build linux

package shm

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

// Sleep returns when the word is no longer old, when Wake ends the sleep, or after limit (0: no limit). It may return
// earlier for no reason: the caller looks again.
//
// Who says in shared memory that it sleeps, or has written, and then looks at what the other side says, writes by Swap or Add, not by Store: with the
// race detector, Go's Store to memory that is not its own is a plain move, which the processor may carry out after the look.
func Sleep(w *atomic.Uint32, old uint32, limit time.Duration) {
	var timeout *unix.Timespec
	if limit > 0 {
		t := unix.NsecToTimespec(int64(limit))
		timeout = &t
	}
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w)), opWait, uintptr(old),
		uintptr(unsafe.Pointer(timeout)), 0, 0)
}

// Yield leaves the CPU to others that want it.
func Yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Wake ends up to n sleeps on the word.
func Wake(w *atomic.Uint32, n int) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w)), opWake, uintptr(n), 0, 0, 0)
}
