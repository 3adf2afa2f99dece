//go:build cuda

package hosttest

import (
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/cuda"
)

const chunk = 2 << 20 // of physical allocations

// routes are the ways in which memory crosses without a copy.
var routes = map[string]struct {
	route core.Route
	sizes []int64
}{
	"ipc":         {contract.RouteCUDAIPC, []int64{3<<20 + 512}},
	"ipc, small":  {contract.RouteCUDAIPC, []int64{48}},
	"vmm":         {contract.RouteCUDAVMM, []int64{chunk}},
	"vmm, chunks": {contract.RouteCUDAVMM, []int64{chunk, 2 * chunk, chunk}},
	"pool":        {contract.RouteCUDAPool, []int64{1 << 20}},
}

// TestRoutes: memory of another process is what the host reads and its kernels write, on the device
// that the host counts, once the program's work is done.
func TestRoutes(t *testing.T) {
	t.Parallel()
	for name, c := range routes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t)
			handle := r.alloc(c.route, c.sizes...)
			r.fill(handle, 1, false)
			fence := r.fill(handle, 2, true)
			v, released := r.view(lease(t, handle, fence, core.Uint8, true))
			if v.Device() != (core.Device{Kind: core.CUDA}) {
				t.Errorf("the view is on %v", v.Device())
			}
			data := make([]byte, v.NBytes())
			copied := make(chan error)
			go func() {
				_, err := core.Copy(t.Context(), data, v)
				copied <- err
			}()
			r.open()
			if err := <-copied; err != nil {
				t.Fatal(err)
			}
			uniform(t, "the copy", data, 2)
			clear(data)
			if n, err := core.Put(t.Context(), v, data); err != nil || n != len(data) {
				t.Fatal(n, err)
			}
			r.check(handle, 0)
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			within(t, "the release", released)
		})
	}
}

// TestOpenedOnce: what is open is found again, and asks the producer for nothing.
func TestOpenedOnce(t *testing.T) {
	t.Parallel()
	r := start(t)
	handle := r.alloc(contract.RouteCUDAVMM, chunk, chunk)
	fence := r.fill(handle, 3, false)
	first, _ := r.view(lease(t, handle, fence, core.Uint8, false))
	second, _ := r.view(lease(t, handle, fence, core.Uint8, false))
	writable, _ := r.view(lease(t, handle, fence, core.Uint8, true))
	if first.Addr() != second.Addr() || first.Addr() == writable.Addr() {
		t.Errorf("addresses %#x, %#x and %#x", first.Addr(), second.Addr(), writable.Addr())
	}
	lent := r.lent
	first.Close()
	second.Close()
	again, _ := r.view(lease(t, handle, fence, core.Uint8, false))
	if again.Addr() != first.Addr() && again.Addr() != second.Addr() && again.Addr() == writable.Addr() || r.lent != lent {
		t.Errorf("opened anew, with %d descriptors after %d", r.lent, lent)
	}
}

// TestOtherSizeAtTheSamePlace: the program frees small arrays and makes others of different sizes, which lie
// where the first lay. What the host keeps open of the first is not in the way.
func TestOtherSizeAtTheSamePlace(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.alloc(contract.RouteCUDAIPC, 48) // keeps the block that the driver takes small arrays from
	for i := range 20 {
		handle := r.alloc(contract.RouteCUDAIPC, int64(512*(1+i%7)))
		v, released := r.view(lease(t, handle, r.fill(handle, byte(i), false), core.Uint8, false))
		data := make([]byte, v.NBytes())
		if _, err := core.Copy(t.Context(), data, v); err != nil {
			t.Fatal(err)
		}
		uniform(t, "the copy", data, byte(i))
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		within(t, "the release", released)
		r.free(handle)
	}
}

// TestReadOnly: kernels of the host cannot write to memory of a lease that is not writable.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	if !alone(t) { // a driver that notices it late breaks the context
		return
	}
	r := start(t)
	handle := r.alloc(contract.RouteCUDAVMM, chunk)
	v, _ := r.view(lease(t, handle, r.fill(handle, 4, false), core.Uint8, false))
	if _, err := core.Put(t.Context(), v, make([]byte, chunk)); !errors.Is(err, core.ErrReadOnly) {
		t.Errorf("Put = %v", err)
	}
	if err := writeTo(v.Addr()); !errors.Is(err, core.ErrPointer) {
		t.Errorf("the driver's own copy: %v", err)
	}
	r.check(handle, 4)
}

// TestInputs: a kernel takes a view that is not writable only if the caller states that it reads it. A kernel that
// writes all the same faults where the driver protects the memory, and the error says what to do.
func TestInputs(t *testing.T) {
	t.Parallel()
	if !alone(t) { // the fault breaks the context
		return
	}
	r := start(t)
	f, s := kernel(t, "add"), stream(t)
	launch := func(arg any) error { return f.Launch(s, once, arg, uint64(1), float32(1), uint64(0)) }
	for _, route := range []core.Route{contract.RouteCUDAIPC, contract.RouteCUDAPool, contract.RouteCUDAVMM} {
		handle := r.alloc(route, chunk)
		v, _ := r.view(lease(t, handle, r.fill(handle, 4, false), core.Float32, false))
		err := launch(v)
		if !errors.Is(err, core.ErrReadOnly) || !strings.Contains(err.Error(), "cuda.In(view)") {
			t.Errorf("%s: Launch on a view that is not writable: %v", route, err)
		}
		if err := f.Launch(s, once, cuda.In(v), uint64(0), float32(1), uint64(0)); err != nil {
			t.Errorf("%s: Launch of a kernel that writes nothing: %v", route, err)
		}
		if err := s.Synchronize(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.check(handle, 4)
		if route == contract.RouteCUDAVMM {
			if err := launch(cuda.In(v)); err != nil && !errors.Is(err, core.ErrUnavailable) { // the fault may be there before it returns
				t.Fatal(err)
			}
		}
	}
	r.broken = "a kernel wrote to a view that is not writable"
	err := s.Synchronize(t.Context())
	if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), r.broken) {
		t.Errorf("after the fault: %v", err)
	}
}

// TestClosedImporter: memory is not opened after the end.
func TestClosedImporter(t *testing.T) {
	t.Parallel()
	r := start(t)
	handle := r.alloc(contract.RouteCUDAIPC, 4096)
	l := lease(t, handle, r.fill(handle, 5, false), core.Uint8, false)
	m, _ := r.memory(l, func() {})
	if err := r.importer.Close(); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("Close beside an open view = %v", err)
	}
	if _, _, err := r.importer.Memory(t.Context(), l, nil); !errors.Is(err, core.ErrClosed) {
		t.Errorf("Memory after Close = %v", err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}
