package kit

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/shm/shmtest"
)

// forbid makes a system call fail with EPERM on this thread, for good, as a container's seccomp profile does.
func forbid(number uint32) error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: number},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

// TestSmallCopies: a small copy is made without writing to a file, and otherwise where a container forbids that.
func TestSmallCopies(t *testing.T) {
	t.Parallel()
	for name, number := range map[string]uint32{"process_vm_readv": unix.SYS_PROCESS_VM_READV, "pwritev": unix.SYS_PWRITEV} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory, _ := shmtest.Map(t, nil, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
			copy(memory, "small")
			done := make(chan error)
			go func() {
				runtime.LockOSThread() // to the end of the thread
				done <- copySmall(memory, number)
			}()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

func copySmall(memory []byte, forbidden uint32) error {
	if err := forbid(forbidden); err != nil {
		return err
	}
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{5}})
	if err != nil {
		return err
	}
	var s Staging
	c, err := s.Copy(context.Background(), Array{Addr: uintptr(unsafe.Pointer(&memory[0])), Layout: l}, nil)
	if err != nil {
		return err
	}
	got := c.room.file.mapping.Bytes()[c.Layout.Offset():][:5]
	if !bytes.Equal(got, []byte("small")) {
		return fmt.Errorf("the copy has %q", got)
	}
	c.Drop()
	return s.Close()
}
