package numbers

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core"
)

// TestReadsWholeNumbers reads memory that is written meanwhile, as views are: each number that is seen was there at some moment.
func TestReadsWholeNumbers(t *testing.T) {
	t.Parallel()
	mem, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)                                              //nolint:errcheck // a page
	old, fresh := make([]byte, 8), slices.Repeat([]byte{0x3f, 0x40}, 4) // no two of which share a byte of their numbers
	var writer sync.WaitGroup
	defer writer.Wait()
	var done atomic.Bool
	defer done.Store(true)
	writer.Go(func() {
		for !done.Load() {
			copy(mem, old) // of eight bytes, so at once
			copy(mem, fresh)
		}
	})
	for _, d := range []Type{
		{DType: core.Uint16},
		{DType: core.Int16},
		{DType: core.Uint32},
		{DType: core.Int32},
		{DType: core.Uint64},
		{DType: core.Int64},
		{DType: core.Float16},
		{DType: core.BFloat16},
		{DType: core.Float32},
		{DType: core.Float64},
		{core.Uint16, true},
		{core.Int16, true},
		{core.Float16, true},
		{core.Float32, true},
		{core.Int64, true},
	} {
		read := d.Reader()
		var a, b, got [1]float64
		read(a[:], old, 0, 8)
		read(b[:], fresh, 0, 8)
		seen := map[float64]int{}
		for range 100_000 {
			read(got[:], mem, 0, 8)
			seen[got[0]]++
		}
		if n := seen[a[0]] + seen[b[0]]; n < 100_000 {
			t.Errorf("%v: %v are not all %v or %v", d, seen, a[0], b[0])
		}
	}
}
