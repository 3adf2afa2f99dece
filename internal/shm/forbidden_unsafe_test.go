package shm_test

import (
	"errors"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// forbidMemfd makes memfd_create fail with EPERM on this thread, for good, as a container's seccomp profile does.
func forbidMemfd() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_MEMFD_CREATE},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

func TestCreateWhereItIsForbidden(t *testing.T) {
	t.Parallel()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // to the end of the thread
		if err := forbidMemfd(); err != nil {
			t.Error(err)
		}
		f, err := shm.Create("test", 4096)
		if err == nil {
			err = errors.Join(errors.New("it was made"), f.Close())
		}
		done <- err
	}()
	err := <-done
	if e, ok := errors.AsType[*core.Error](err); !ok || !errors.Is(err, core.ErrUnavailable) || !errors.Is(err, unix.EPERM) || e.Remedy == "" {
		t.Errorf("%v", err)
	}
}
