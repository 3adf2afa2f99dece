package process

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// thread gives the id of this thread.
func thread() int32 { return int32(unix.Gettid()) } //nolint:gosec // the kernel's own numbers

// attributes make a program lead a process group, and end with the thread that starts it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// kill kills a process, or the group -pid, if it is there.
func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

func signalName(s syscall.Signal) string { return unix.SignalName(s) }

// awaitExit returns when the process has ended. It stays a zombie, which keeps its pid and process
// group from being given to another.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
