//go:build cuda

package hosttest

import (
	"bytes"
	"os"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu/imports"
)

// held counts descriptors and mappings of this process.
func held(t *testing.T) (descriptors, mappings int) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds), bytes.Count(maps, []byte{'\n'})
}

// TestNothingLeaks: 10,000 views leave nothing behind.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	if !alone(t) { // it counts what the process holds
		return
	}
	r := start(t)
	var leases []contract.Lease
	for _, name := range []string{"ipc", "vmm", "vmm, chunks", "pool"} {
		handle := r.alloc(routes[name].route, routes[name].sizes...)
		leases = append(leases, lease(t, handle, r.fill(handle, 1, false), core.Uint8, false))
	}
	take := func(n int) {
		i := imports.New(r)
		released := make(chan struct{}, n)
		for k := range n {
			m, _, err := i.Memory(t.Context(), leases[k%len(leases)], func() { released <- struct{}{} })
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			if k%100 == 99 { // so that many are under way, but not all
				for range 100 {
					<-released
				}
			}
		}
		if err := i.Close(); err != nil {
			t.Fatal(err)
		}
	}
	take(100) // what the driver and the runtime keep for themselves
	descriptors, mappings := held(t)
	take(10_000)
	// Go's threads come and go, with some mappings and a descriptor each.
	if d, m := held(t); d > descriptors+4 || m > mappings+64 {
		t.Errorf("%d descriptors and %d mappings; before it was %d and %d", d, m, descriptors, mappings)
	}
}
