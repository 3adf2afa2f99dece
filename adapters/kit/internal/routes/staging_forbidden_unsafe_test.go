package routes

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/shm/shmtest"
)

// TestSmallCopies: a small copy is made without writing to a file, and otherwise where a container forbids that.
func TestSmallCopies(t *testing.T) {
	t.Parallel()
	for name, number := range map[string]uint32{"process_vm_readv": unix.SYS_PROCESS_VM_READV, "pwritev": unix.SYS_PWRITEV} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory, _ := shmtest.Map(t, nil, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
			copy(memory, "small")
			if err := shmtest.Forbidding(t, number, func() error { return copySmall(memory) }); err != nil {
				t.Error(err)
			}
		})
	}
}

func copySmall(memory []byte) error {
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
