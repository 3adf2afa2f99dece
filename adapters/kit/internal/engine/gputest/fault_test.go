//go:build cuda

package gputest

import (
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
)

// TestBadPointers refuses what objects say that is not so.
func TestBadPointers(t *testing.T) {
	t.Parallel()
	s := start(t, `
import numpy as np
gone = Array(alloc(8 * MB), MB)
free(gone.__cuda_array_interface__["data"][0])
beyond = Array(alloc(MB), 3 * MB)
before = Array(alloc(MB), 2, strides=(-4 * MB,))
nowhere = Array(1 << 40, 4)
null = Array(0, 4)
zero = Array(alloc(MB), 4, stream=0)
masked = Array(alloc(MB), 4, mask=zero)
host = np.zeros(100_000, "f4")
ordinary = Array(host.ctypes.data, 4)
class Host:
    __array_interface__ = {"shape": (4,), "typestr": "<f4", "data": (alloc(MB), False), "version": 3}
device = Host()
`, options{})
	for name, want := range map[string]struct {
		kind error
		text string
	}{
		"gone":     {core.ErrPointer, "knows no memory there"},
		"beyond":   {core.ErrPointer, "reach out of"},
		"before":   {core.ErrPointer, ""},
		"nowhere":  {core.ErrPointer, "knows no memory there"},
		"null":     {core.ErrPointer, "NULL"},
		"zero":     {core.ErrProtocol, "stream 0 is forbidden"},
		"masked":   {core.ErrUnsupported, "mask"},
		"ordinary": {core.ErrPointer, "knows no memory there"},
		"device":   {core.ErrPointer, "said to be in host memory"},
	} {
		_, err := try(t, s, name)
		refused(t, name, err, want.kind, want.text)
	}
}

// TestFreedAndReused takes arrays that follow each other at one address: each is its own.
func TestFreedAndReused(t *testing.T) {
	t.Parallel()
	s := start(t, `
class Next:
    address, at, count = None, 0, 0
    @property
    def array(self):
        enter()
        if self.at:
            free(self.at)
        self.at, self.count = alloc(4 * MB), self.count + 1
        assert self.address in (None, self.at), "the address was not used again"
        self.address = self.at
        fill(self.at, self.count, MB, 0, slow=0)
        return Array(self.at, MB)
next = Next()
`, options{})
	for i := range 5 {
		v := take(t, s, "next.array")
		all(t, v, float32(i+1))
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRefusedExports stages what the driver does not export after all, or copies it to the host.
func TestRefusedExports(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]core.Route{"noipc": contract.RouteCUDAStaged, "noipc,noexport": contract.RouteStaged} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			s := start(t, `
p, q = alloc(8 * MB), chunks(2)
fill(p, 1, 2 * MB, new_stream())
fill(q, 2, MB, new_stream())
array, parts = Array(p, 2 * MB), Array(q, MB)
`, options{faults: fault})
			v := take(t, s, "array")
			if v.Route() != want || v.Reason() != contract.ReasonNotExportable {
				t.Errorf("by %v because of %v, expected %v", v.Route(), v.Reason(), want)
			}
			all(t, v, 1)
			all(t, take(t, s, "parts"), 2)
			_, err := try(t, s, "array", hostplugin.NoCopy())
			refused(t, "array", err, core.ErrNotShared, "not-exportable")
		})
	}
}

// TestOutOfMemory says that there is no room for a copy.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	s := start(t, `
array = Array(managed(8 * MB), 2 * MB)
faults("oom=1")
`, options{noRing: true}) // through which it would be tried twice
	_, err := try(t, s, "array")
	refused(t, "array", err, core.ErrUnavailable, "OUT_OF_MEMORY")
	take(t, s, "array") // there is room again
}

// TestHostWithoutGPU copies arrays on a GPU that the host does not have to its memory.
func TestHostWithoutGPU(t *testing.T) {
	t.Parallel()
	s := start(t, `
last = devices - 1
enter(last)
s = new_stream()
p = alloc(8 * MB)
argument = p64(SLOW)
call("cuMemsetD32Async", p64(p), word(0x40A00000), size_t(2 * MB), p64(s))
array, few = Array(p, 2 * MB), Array(p + 400, 100, strides=(4096,))
`, options{devices: "3"}) // the host has two at most
	for _, name := range []string{"array", "few"} {
		v := take(t, s, name)
		if v.Route() != contract.RouteStaged || v.Reason() != contract.ReasonHostWithoutGPU || v.Layout().Device() != (core.Device{}) {
			t.Errorf("%s came by %v because of %v on %v", name, v.Route(), v.Reason(), v.Layout().Device())
		}
		all(t, v, 5)
	}
	_, err := try(t, s, "array", hostplugin.NoCopy())
	refused(t, "array", err, core.ErrNotShared, "host-without-gpu")
}

// TestFork lets the program fork while its arrays are leased: the child leaves CUDA alone, and ends.
func TestFork(t *testing.T) {
	t.Parallel()
	s := start(t, `
import os
p = alloc(8 * MB)
fill(p, 1, 2 * MB, new_stream())
array = Array(p, 2 * MB)
class Forking:
    @property
    def now(self):
        child = os.fork()
        if not child:
            os._exit(7)
        return memoryview(bytes([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]))
forking = Forking()
`, options{})
	v := take(t, s, "array")
	status, err := core.Slice[uint8](take(t, s, "forking.now"))
	if err != nil || status[0] != 7 {
		t.Errorf("the child ended with %v (%v)", status, err)
	}
	all(t, v, 1)
	all(t, take(t, s, "array"), 1)
}
