package e2e

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// mapOver is a program that maps memory of other kinds over a part of its arrays.
const mapOver = `
import ctypes, mmap, os, numpy as np, ndbridge, remote
PART, FIXED = 1 << 16, 0x10
libc, found = ctypes.CDLL(None, use_errno=True), ctypes.CDLL("libm.so.6", use_errno=True)
for lib in (libc, found):
    lib.mmap.restype, lib.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]

class direct:
    """The system call."""
    def mmap(*args):
        libc.syscall.restype = ctypes.c_void_p
        return libc.syscall(ctypes.c_long({"x86_64": 9, "aarch64": 222}[os.uname().machine]), *map(ctypes.c_long, args))

def file():
    fd = os.memfd_create("own")
    os.truncate(fd, PART)
    return fd

def inner(a): # the first page that the array has for itself
    return (a.ctypes.data + 4095) & ~4095

def over(a, lib, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, fd=-1):
    """Map zeros over a part of an array, and write another value there and elsewhere."""
    at = inner(a)
    assert lib.mmap(at, PART, mmap.PROT_READ | mmap.PROT_WRITE, FIXED | flags, fd, 0) == at, ctypes.get_errno()
    assert a[0] == 1 and a[1000] == 0 and a[-1] == 1
    a[:] = 7

a, b, c = np.ones(1 << 17), np.ones(1 << 17), np.ones(1 << 20)
small, beside = np.ones(1 << 14), np.ones(1 << 14)
ndbridge.publish("offered", b)
remote.serve()
`

// sees holds that a view shows an array of one value.
func sees(t *testing.T, v *core.View, want float64) {
	t.Helper()
	for i, x := range slice[float64](t, v) {
		if x != want {
			t.Fatalf("%v shows %v at %d, want %v", v, x, i, want)
		}
	}
}

// TestMapsOverArrays maps other memory over arrays. Each view shows what the program sees, or says that it does not.
func TestMapsOverArrays(t *testing.T) {
	t.Parallel()
	for how, call := range map[string]string{
		"anonymous": "over(%s, libc)", "shared file": "over(%s, libc, mmap.MAP_SHARED, file())",
		"of a library's handle": "over(%s, found)",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, mapOver, harness.Options{})
			src := map[string]*core.View{}
			for _, name := range []string{"a", "offered", "c", "small", "beside"} {
				if src[name] = run.View(t, name); src[name].Route() != contract.RouteSharedHeap || !src[name].Live() {
					t.Fatalf("before: %v, live %v", src[name], src[name].Live())
				}
			}
			for _, name := range []string{"a", "b", "small"} {
				run.Remote.Exec(t, fmt.Sprintf(call, name))
			}
			for name, v := range src {
				if v.Live() {
					t.Errorf("%s: the view is live, though the program has not said so since", name)
				}
				sees(t, v, 1) // as it was
			}
			run.Remote.Exec(t, "c[:] = 7; beside[:] = 7")
			for name, v := range src {
				next, changed, err := source(t, run, name).Refresh(t.Context(), v)
				if err != nil {
					t.Fatal(err)
				}
				sees(t, next, 7)
				shared := name == "c" // the only one that shares no file with what was mapped over
				if changed == shared || next.Copied() == shared || next.Live() != shared || !shared && next.Reason() != contract.ReasonOutsideHeap {
					t.Errorf("%s: %v, changed %v, live %v", name, next, changed, next.Live())
				}
				closeView(t, next)
			}
			// What comes to lie in the same memory is shared again.
			run.Remote.Exec(t, "ndbridge.unpublish('offered'); del a, b, small, beside\nlater = [np.full(n, 3.0) for n in [1 << 17, 1 << 14] * 4]")
			for i := range 8 {
				v := run.View(t, fmt.Sprintf("later[%d]", i))
				if sees(t, v, 3); v.Route() != contract.RouteSharedHeap {
					t.Errorf("later: %v", v)
				}
				closeView(t, v)
			}
			closeView(t, src["c"])
			run.NoLeases(t)
		})
	}
}

// TestMapsOverArraysUnseen does so by functions that the shared heap does not stand in front of. New views show what the
// program sees all the same, also of arrays that get this memory later.
func TestMapsOverArraysUnseen(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, mapOver, harness.Options{})
	run.Remote.Exec(t, "over(a, direct); over(small, direct)")
	for _, name := range []string{"a", "small"} {
		v := run.View(t, name)
		if sees(t, v, 7); v.Reason() != contract.ReasonOutsideHeap {
			t.Errorf("%v", v)
		}
		closeView(t, v)
	}
	run.Remote.Exec(t, "at = [x.ctypes.data for x in (a, small)]; del a, small\nlater = [np.full(n, 3.0) for n in [1 << 17, 1 << 14] * 8]")
	if !harness.Eval[bool](t, run.Remote, "len(set(at) & set(x.ctypes.data for x in later)) > 0") {
		t.Error("the memory is not used again, so this shows nothing")
	}
	for i := range 16 {
		v := run.View(t, fmt.Sprintf("later[%d]", i))
		sees(t, v, 3)
		closeView(t, v)
	}
	run.NoLeases(t)
}

// TestRefreshOfUnmapped: a copy of an array that has lost a page is an error, and no fault of the program's.
func TestRefreshOfUnmapped(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, mapOver, harness.Options{})
	run.Remote.Exec(t, "libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]; x = np.ones(1 << 11)")
	src := source(t, run, "x")
	v := viewOf(t, src)
	defer closed(t, v)
	if _, changed, err := src.Refresh(t.Context(), v); !v.Copied() || changed || err != nil {
		t.Fatalf("copied %v, Refresh = %v, %v", v.Copied(), changed, err)
	}
	run.Remote.Exec(t, "assert libc.munmap(inner(x), 4096) == 0")
	if _, _, err := src.Refresh(t.Context(), v); !errors.Is(err, core.ErrPointer) {
		t.Errorf("without a page: %v", err)
	}
	run.Remote.Exec(t, "assert libc.mmap(inner(x), 4096, mmap.PROT_READ | mmap.PROT_WRITE, FIXED | mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0) == inner(x)")
	if _, changed, err := src.Refresh(t.Context(), v); changed || err != nil {
		t.Errorf("with another page: %v, %v", changed, err)
	}
	got, at := slice[float64](t, v), harness.Eval[int](t, run.Remote, "(inner(x) - x.ctypes.data) // 8")
	if got[at] != 0 || got[at+511] != 0 || got[len(got)-1] != 1 {
		t.Errorf("it shows %v and %v in the other page, and %v at the end; want 0, 0 and 1", got[at], got[at+511], got[len(got)-1])
	}
}
