//go:build linux

package handoff

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// currentCPU gives the CPU that this thread runs on.
func currentCPU() (cpu uint32, ok bool) {
	_, _, err := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0)
	return cpu, err == 0
}
