//go:build cuda

package gpu

import (
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// reserve maps physical allocations side by side in a range with as much room again behind them, as
// frameworks do whose segments grow.
func reserve(t *testing.T, ctx driver.Context, n int) (base uintptr, chunk int64) {
	t.Helper()
	in(t, ctx, func() (err error) {
		if chunk, err = driver.MemGranularity(0); err != nil {
			return err
		}
		base, err = driver.MemAddressReserve(2 * int64(n) * chunk)
		return err
	})
	t.Cleanup(func() {
		in(t, ctx, func() error { return driver.MemAddressFree(base, 2*int64(n)*chunk) })
	})
	for i := range n {
		at := base + uintptr(i)*uintptr(chunk)
		in(t, ctx, func() error {
			h, err := driver.MemCreate(0, chunk)
			if err != nil {
				return err
			}
			if err := driver.MemMap(at, chunk, h); err != nil {
				return err
			}
			if err := driver.MemRelease(h); err != nil {
				return err
			}
			return driver.MemSetAccess(at, chunk, 0, true)
		})
		t.Cleanup(func() { in(t, ctx, func() error { return driver.MemUnmap(at, chunk) }) })
	}
	return base, chunk
}

func TestInspectWalksPhysicalAllocations(t *testing.T) {
	t.Parallel()
	base, chunk := reserve(t, keepPrimary(t), 3)
	for _, test := range []struct {
		name      string
		offset, n int64
		first     int // the chunks that it lies in
		chunks    int
	}{
		{"in one", 256, 512, 0, 1},
		{"in the last", 2*chunk + 1, chunk - 1, 2, 1},
		{"up to a border", 0, chunk, 0, 1},
		{"over a border", chunk - 1, 2, 0, 2},
		{"all", 0, 3 * chunk, 0, 3},
		{"nothing", chunk, 0, 1, 1},
	} {
		p, err := Inspect(base+uintptr(test.offset), test.n)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if p.Kind != KindVMM || p.Route != contract.RouteCUDAVMM || len(p.Chunks) != test.chunks {
			t.Errorf("%s: got %+v, want %d chunks by cuda-vmm", test.name, p, test.chunks)
		}
		first := base + uintptr(test.first)*uintptr(chunk)
		if p.Base != first || p.Size != int64(test.chunks)*chunk {
			t.Errorf("%s: got %d bytes at %#x, want %d at %#x", test.name, p.Size, p.Base, int64(test.chunks)*chunk, first)
		}
		ids := map[uint64]bool{}
		for i, c := range p.Chunks {
			ids[c.BufferID] = true
			if c.Base != first+uintptr(i)*uintptr(chunk) || c.Size != chunk {
				t.Errorf("%s: chunk %d is %+v", test.name, i, c)
			}
		}
		if len(ids) != test.chunks || p.BufferID != p.Chunks[0].BufferID {
			t.Errorf("%s: the chunks have %d identities, and the first is not the pointer's", test.name, len(ids))
		}
	}
}

// The reservation goes on behind the mapped memory, and the driver's range attributes say so.
func TestInspectStopsWhereNothingIsMapped(t *testing.T) {
	t.Parallel()
	base, chunk := reserve(t, keepPrimary(t), 2)
	for name, extent := range map[string][2]int64{
		"over the end":       {2*chunk - 1, 2},
		"over all of it":     {0, 4 * chunk},
		"behind the end":     {2 * chunk, 1},
		"far behind the end": {3 * chunk, chunk},
	} {
		_, err := Inspect(base+uintptr(extent[0]), extent[1])
		if !errors.Is(err, core.ErrPointer) {
			t.Errorf("%s: %v, want ErrPointer", name, err)
		}
		if strings.HasPrefix(name, "over") && !strings.Contains(err.Error(), "reach out of the vmm memory") {
			t.Errorf("%s: %q does not say where the memory ends", name, err)
		}
	}
}
