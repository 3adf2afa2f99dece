//go:build cuda

package gputest

import (
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
)

const kinds = `
s = new_stream()
n = 3 * MB
whole = alloc(4 * n)
shared_pool, private_pool = pool(True), pool(False)
memory = {
    "ipc": whole, "vmm": chunks(6), "pool": from_pool(shared_pool, 4 * n, s),
    "plain": from_pool(private_pool, 4 * n, s), "managed": managed(4 * n),
}
arrays = {}
for i, (name, p) in enumerate(memory.items()):
    fill(p, i + 1, n, s)
    arrays[name] = Array(p, n)
    arrays[name + "_part"] = Array(p + 4 * MB, MB // 2, strides=(8,))
    arrays[name + "_few"] = Array(p + 4 * MB, 100, strides=(4096,))
    arrays[name + "_back"] = Array(p + 4 * MB, 100, strides=(-4096,))
`

// TestRoutes takes arrays of each kind of memory while slow work that makes them is under way: whole,
// with steps over a physical allocation's end, and scattered.
func TestRoutes(t *testing.T) {
	t.Parallel()
	s := start(t, kinds, options{})
	for i, want := range []struct {
		name   string
		route  core.Route
		reason core.Reason
	}{
		{"ipc", contract.RouteCUDAIPC, ""},
		{"vmm", contract.RouteCUDAVMM, ""},
		{"pool", contract.RouteCUDAPool, ""},
		{"plain", contract.RouteCUDAStaged, contract.ReasonNotExportable},
		{"managed", contract.RouteCUDAStaged, contract.ReasonNotExportable},
	} {
		for _, part := range []string{"", "_part", "_few", "_back"} {
			name := `arrays["` + want.name + part + `"]`
			v := take(t, s, name)
			if v.Route() != want.route || v.Reason() != want.reason || v.Copied() != (want.reason != "") {
				t.Errorf("%s came by %v because of %v, expected %v", name, v.Route(), v.Reason(), want.route)
			}
			if d := (core.Device{Kind: core.CUDA}); v.Layout().Device() != d {
				t.Errorf("%s is on %v", name, v.Layout().Device())
			}
			all(t, v, float32(i+1))
		}
		_, err := try(t, s, `arrays["`+want.name+`"]`, hostplugin.NoCopy())
		if want.reason == "" && err != nil {
			t.Error(err)
		}
		if want.reason != "" {
			refused(t, want.name, err, core.ErrNotShared, "not-exportable")
		}
		v, err := try(t, s, `arrays["`+want.name+`"]`, hostplugin.Writable())
		switch {
		case want.reason != "":
			refused(t, want.name+" to be written", err, core.ErrNotShared, "not-exportable")
		case err != nil || !v.Writable():
			t.Errorf("%s to be written: %v", want.name, err)
		}
	}
}

// TestEmptyAndReadOnly takes what needs no memory, and may not write what is read-only.
func TestEmptyAndReadOnly(t *testing.T) {
	t.Parallel()
	s := start(t, `
empty = Array(0, 0)
nothing = Array(alloc(MB), 0, shape=(3, 0))
fixed = Array(0, 4, data=(alloc(MB), True))
`, options{})
	for _, name := range []string{"empty", "nothing"} {
		if v := take(t, s, name); v.Route() != contract.RouteEmpty || v.Len() != 0 {
			t.Errorf("%s: %v by %v", name, v.Layout(), v.Route())
		}
	}
	if v := take(t, s, "fixed"); !v.ReadOnly() {
		t.Error("an array that is read-only is not")
	}
	_, err := try(t, s, "fixed", hostplugin.Writable())
	refused(t, "fixed", err, core.ErrReadOnly, "may not be written")
}

// TestPoolWithoutPrimaryContext refuses memory that belongs to no context where the program works in one of its own.
func TestPoolWithoutPrimaryContext(t *testing.T) {
	t.Parallel()
	s := start(t, `
call("cuDevicePrimaryCtxRelease_v2", 1)
own = out(p64, "cuCtxCreate_v2", 0, 1)
properties = PoolProperties(type=1, handles=1, location=1, device=1)
there = out(p64, "cuMemPoolCreate", ctypes.byref(properties))
pooled = Array(from_pool(there, MB, new_stream()), MB // 4)
plain = Array(alloc(MB), MB // 4)
`, options{})
	_, err := try(t, s, "pooled")
	refused(t, "pooled", err, core.ErrDevice, "does not use the primary context of cuda:1; work in the primary context")
	take(t, s, "plain")
}

// TestHostMemoryOfCUDA takes pinned and managed memory that looks like any array of NumPy, while a GPU
// writes it.
func TestHostMemoryOfCUDA(t *testing.T) {
	t.Parallel()
	s := start(t, `
s = new_stream()
page, both = pinned(MB), managed(MB)
fill(page, 3, MB // 4, s)
fill(both, 4, MB // 4, s)
pages, boths = host_array(page, MB // 4), host_array(both, MB // 4)
mapped = Array(page, MB // 4)
import numpy as np
registered = np.full(MB, 5, "f4")
call("cuMemHostRegister_v2", p64(registered.ctypes.data), size_t(registered.nbytes), 3)
`, options{})
	for name, want := range map[string]struct {
		value float32
		kind  core.DeviceKind
		route core.Route // of pinned memory the simulated driver's is a file's, and the real one's is not
	}{
		"pages":  {3, core.CUDAPinned, contract.RouteMappedFile},
		"boths":  {4, core.CUDAManaged, contract.RouteStaged},
		"mapped": {3, core.CUDAPinned, contract.RouteMappedFile},

		"registered": {5, core.CUDAPinned, contract.RouteSharedHeap},
	} {
		v := take(t, s, name)
		if v.Route() != want.route || v.Layout().Device().Kind != want.kind {
			t.Errorf("%s came by %v from %v", name, v.Route(), v.Layout().Device())
		}
		all(t, v, want.value)
	}
}
