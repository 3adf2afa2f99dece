package core_test

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/ndbridge/ndbridge/core"
)

// These share no byte.
const (
	oldWord    = 0
	oldBytes   = "\x00\x00\x00\x00\x00\x00\x00\x00"
	freshWord  = 0x4040404040404040
	freshBytes = "@@@@@@@@"
)

// page is a page of memory, and its words.
func page(t *testing.T) (*mapped, []atomic.Uint64) {
	t.Helper()
	b, err := syscall.Mmap(-1, 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	return &mapped{b}, unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&b[0])), len(b)/8)
}

// while calls f, at most so many times, while other does its work again and again, until f has seen that a twentieth as often: both
// may have to share a CPU.
func while(times int, other func(), f func() (changed bool)) {
	var beside sync.WaitGroup
	defer beside.Wait()
	var done atomic.Bool
	defer done.Store(true)
	begun := make(chan struct{})
	beside.Go(func() {
		close(begun)
		for !done.Load() {
			other()
		}
	})
	<-begun
	enough := times / 20
	for changes := 0; times > 0 && changes < enough; times-- {
		if f() {
			changes++
		}
	}
}

// TestReadsWholeNumbers reads memory that is written meanwhile in each way that the CPU copies: each number was there at some moment.
func TestReadsWholeNumbers(t *testing.T) { //nolint:paralleltest // it needs two CPUs
	for _, tc := range []struct { //nolint:paralleltest // the same
		name  string
		spec  core.LayoutSpec
		unit  int // bytes of a number
		off   int // where the copy begins
		times int
	}{
		{"dense, into bytes", core.LayoutSpec{DType: core.Int64, Shape: []int{128}}, 8, 1, 6000},
		{"rows, into bytes", core.LayoutSpec{DType: core.Int16, Shape: []int{2, 256}, Strides: []int{1024, 2}}, 2, 1, 6000},
		{"one number", core.LayoutSpec{DType: core.Int16}, 2, 0, 150_000},
		{"of two bytes, apart", core.LayoutSpec{DType: core.Int16, Shape: []int{64}, Strides: []int{8}}, 2, 0, 6000},
		{"backwards", core.LayoutSpec{DType: core.Float64, Shape: []int{64}, Strides: []int{-8}, Offset: 63 * 8}, 8, 0, 6000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mem, words := page(t)
			v := open(t, tc.spec, mem, nil)
			dst := make([]byte, 4096)[tc.off:]
			wrong := map[string]int{}
			_, hi := v.Layout().Span()
			words = words[:(hi+7)/8]
			while(tc.times, func() {
				for _, word := range []uint64{freshWord, oldWord} {
					for i := range words {
						words[i].Store(word)
					}
				}
			}, func() bool {
				before := dst[0]
				n, err := core.CopyBytes(t.Context(), dst, v)
				if err != nil {
					t.Fatal(err)
				}
				for i := 0; i < n; i += tc.unit {
					if number := dst[i:][:tc.unit]; !whole(number) {
						wrong[hex.EncodeToString(number)]++
					}
				}
				return dst[0] != before
			})
			if len(wrong) > 0 {
				t.Errorf("never there: %v", wrong)
			}
		})
	}
}

// whole reports whether the bytes of a number are all of one pattern.
func whole(b []byte) bool { return string(b) == oldBytes[:len(b)] || string(b) == freshBytes[:len(b)] }

// TestWritesWholeNumbers writes memory that is read meanwhile.
func TestWritesWholeNumbers(t *testing.T) { //nolint:paralleltest // it needs two CPUs
	mem, words := page(t)
	v := open(t, core.LayoutSpec{DType: core.Int16}, mem, &core.ViewOptions{Writable: true})
	wrong := 0
	var b [8]byte
	while(6_000_000, func() {
		for _, x := range []int16{0x4040, 0} {
			if err := core.Set(v, x); err != nil {
				t.Error(err)
			}
		}
	}, func() bool {
		before := b
		binary.NativeEndian.PutUint64(b[:], words[0].Load())
		if !whole(b[:2]) {
			wrong++
		}
		return b != before
	})
	if wrong > 0 {
		t.Errorf("%d numbers were never written", wrong)
	}
}
