package goimage_test

import (
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/ndbridge/ndbridge/bridges/goimage"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// TestWholeChannels reads a point that is written meanwhile. Hosts that are built with the race detector could see half of it.
func TestWholeChannels(t *testing.T) {
	t.Parallel()
	mem, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(mem) //nolint:errcheck // a page
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint16, Shape: []int{1, 1}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := core.NewView(l, coretest.NewMemory(mem), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	m, err := goimage.New(v)
	if err != nil {
		t.Fatal(err)
	}
	var writer sync.WaitGroup
	defer writer.Wait()
	var done atomic.Bool
	defer done.Store(true)
	live := (*atomic.Uint32)(unsafe.Pointer(&mem[0]))
	writer.Go(func() {
		for !done.Load() {
			live.Store(0)
			live.Store(0x40404040)
		}
	})
	for range 100_000 {
		if y := m.RGBA64At(0, 0).R; y != 0 && y != 0x4040 {
			t.Fatalf("%#x was never there", y)
		}
	}
}
