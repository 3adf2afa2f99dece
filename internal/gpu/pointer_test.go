//go:build cuda

package gpu

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu/driver"
)

// keepPrimary keeps the first device's primary context in use, as a framework does, and gives it.
func keepPrimary(t *testing.T) driver.Context {
	t.Helper()
	if err := Available(); err != nil {
		t.Fatal(err)
	}
	ctx, err := driver.PrimaryCtxRetain(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := driver.PrimaryCtxRelease(0); err != nil {
			t.Error(err)
		}
	})
	return ctx
}

// in runs f where the context is current.
func in(t *testing.T, ctx driver.Context, f func() error) {
	t.Helper()
	if err := driver.With(ctx, f); err != nil {
		t.Fatal(err)
	}
}

// allocated gives memory of one kind, and frees it at the end of the test if nobody has.
func allocated(t *testing.T, ctx driver.Context, alloc func() (uintptr, error), free func(uintptr) error) uintptr {
	t.Helper()
	var p uintptr
	in(t, ctx, func() (err error) {
		p, err = alloc()
		return err
	})
	t.Cleanup(func() { in(t, ctx, func() error { return free(p) }) })
	return p
}

func TestInspectSaysWhatMemoryIs(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	ctx := keepPrimary(t)
	devices, err := Devices()
	if err != nil {
		t.Fatal(err)
	}
	var pool driver.Pool
	in(t, ctx, func() (err error) {
		pool, err = driver.PoolCreate(0)
		return err
	})
	t.Cleanup(func() { in(t, ctx, func() error { return driver.PoolDestroy(pool) }) })

	for _, test := range []struct {
		kind   Kind
		device core.DeviceKind
		route  core.Route
		host   bool // the CPU reaches it
		alloc  func() (uintptr, error)
		free   func(uintptr) error
	}{
		{
			KindDevice, core.CUDA, contract.RouteCUDAIPC, false,
			func() (uintptr, error) { return driver.MemAlloc(size) }, driver.MemFree,
		},
		{
			KindManaged, core.CUDAManaged, "", true,
			func() (uintptr, error) { return driver.MemAllocManaged(size) }, driver.MemFree,
		},
		{
			KindPinned, core.CUDAPinned, "", true,
			func() (uintptr, error) { return driver.HostAlloc(size) }, driver.FreeHost,
		},
		{
			KindPool, core.CUDA, contract.RouteCUDAPool, false,
			func() (uintptr, error) { return driver.MemAllocFromPoolAsync(size, pool, 0) },
			func(p uintptr) error { return driver.MemFreeAsync(p, 0) },
		},
	} {
		t.Run(test.kind.String(), func(t *testing.T) {
			t.Parallel()
			addr := allocated(t, ctx, test.alloc, test.free)
			p, err := Inspect(addr+256, 512)
			if err != nil {
				t.Fatal(err)
			}
			if p.Kind != test.kind || p.Device != (core.Device{Kind: test.device}) || p.Route != test.route {
				t.Errorf("got %+v, want kind %v on device kind %v by route %v", p, test.kind, test.device, test.route)
			}
			if p.Addr != addr+256 || p.Base != addr || p.Size != size {
				t.Errorf("got %d bytes at %#x, want %d at %#x", p.Size, p.Base, size, addr)
			}
			if p.GPU != devices[0].UUID || p.BufferID == 0 || len(p.Chunks) != 0 {
				t.Errorf("got %+v, want the first device, an identity and no chunks", p)
			}
			if host := p.HostAddr == p.Addr; host != test.host {
				t.Errorf("the CPU reaches it at %#x, want: %v", p.HostAddr, test.host)
			}
			if _, err := Inspect(addr, size); err != nil {
				t.Errorf("the whole of it: %v", err)
			}
			for _, extent := range []struct {
				offset uintptr
				n      int64
			}{{0, size + 1}, {1, size}, {size - 1, 2}, {0, 1 << 62}, {0, -1}} {
				if _, err := Inspect(addr+extent.offset, extent.n); !errors.Is(err, core.ErrPointer) {
					t.Errorf("%d bytes at %d of %d: %v, want ErrPointer", extent.n, extent.offset, size, err)
				}
			}
		})
	}
}

func TestInspectRefusesWhatTheDriverDoesNotKnow(t *testing.T) {
	t.Parallel()
	keepPrimary(t)
	for _, addr := range []uintptr{0, 1, 0x1000, ^uintptr(0)} {
		_, err := Inspect(addr, 1)
		if !errors.Is(err, core.ErrPointer) {
			t.Errorf("%#x: %v, want ErrPointer", addr, err)
		}
		if e, ok := errors.AsType[*core.Error](err); !ok || e.Op != "inspect" || e.Object == "" {
			t.Errorf("%#x: %v does not name the address", addr, err)
		}
	}
}

//nolint:paralleltest // beside others, one could get the freed address
func TestInspectTellsAFreedAllocationFromTheNextOne(t *testing.T) {
	ctx := keepPrimary(t)
	var ids []uint64
	for range 3 {
		in(t, ctx, func() error {
			addr, err := driver.MemAlloc(4096)
			if err != nil {
				return err
			}
			p, err := Inspect(addr, 4096)
			if err != nil {
				t.Error(err)
			}
			ids = append(ids, p.BufferID)
			if err := driver.MemFree(addr); err != nil {
				return err
			}
			if _, err := Inspect(addr, 1); !errors.Is(err, core.ErrPointer) {
				t.Errorf("freed memory: %v, want ErrPointer", err)
			}
			return nil
		})
	}
	slices.Sort(ids)
	if n := len(slices.Compact(ids)); n != 3 {
		t.Errorf("three allocations have %d identities", n)
	}
}

// Drivers that give no range for pinned memory are asked about its two ends.
func TestTheEndsOfMemoryWithoutARange(t *testing.T) {
	t.Parallel()
	const size = 1 << 16
	ctx := keepPrimary(t)
	addr := allocated(t, ctx, func() (uintptr, error) { return driver.HostAlloc(size) }, driver.FreeHost)
	a, err := driver.PointerAttributes(addr)
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("no range")
	p := Pointer{Addr: addr, Kind: KindPinned}
	if err := p.measureEnds(a, size, cause); err != nil || p.Base != addr || p.Size != size {
		t.Errorf("all of it: %v, %d bytes at %#x; want %d at %#x", err, p.Size, p.Base, size, addr)
	}
	p = Pointer{Addr: addr, Kind: KindPinned}
	if err := p.measureEnds(a, size+1, cause); !errors.Is(err, core.ErrPointer) {
		t.Errorf("one byte more: %v, want ErrPointer", err)
	}
	p = Pointer{Addr: addr, Kind: KindPinned, Base: addr - 4096}
	if err := p.measureEnds(a, size, cause); !errors.Is(err, cause) {
		t.Errorf("memory with a range: %v, want what the range said", err)
	}
}

// What cannot be exported has the kind that it has, and no route.
func TestInspectFindsNoRouteWhereThereIsNone(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]map[string]string{
		"": {
			"cuMemAlloc": "device by cuda-ipc", "cuMemAllocFromPoolAsync": "pool by cuda-pool",
			"cuMemMap": "vmm by cuda-vmm",
		},
		"noipc": { // as under MIG
			"cuMemAlloc": "device by ", "cuMemAllocFromPoolAsync": "pool by cuda-pool",
			"cuMemMap": "vmm by cuda-vmm",
		},
		"noexport": {
			"cuMemAlloc": "device by cuda-ipc", "cuMemAllocFromPoolAsync": "unsupported operation",
			"cuMemMap": "vmm by ",
		},
	} {
		if got := child(t, "CUDASIM_FAULTS="+fault).Pointers; !maps.Equal(got, want) {
			t.Errorf("fault %q: got %v, want %v", fault, got, want)
		}
	}
}
