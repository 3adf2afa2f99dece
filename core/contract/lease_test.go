package contract_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

func layout(t *testing.T, s core.LayoutSpec) core.Layout {
	t.Helper()
	l, err := core.NewLayout(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// sound gives a sound lease for each handle that there is.
func sound(t *testing.T) map[string]contract.Lease {
	t.Helper()
	host := layout(t, core.LayoutSpec{DType: core.Float32, Shape: []int{4}, Offset: 64})
	gpu := layout(t, core.LayoutSpec{DType: core.Float32, Shape: []int{4}, Offset: 64, Device: core.Device{Kind: core.CUDA}})
	empty := layout(t, core.LayoutSpec{DType: core.Float32, Shape: []int{4, 0}})
	segment, ready := contract.Segment{ID: 1, Size: 80, Sealed: true}, contract.Ready{}
	word := contract.CUDAWord{Page: 2, Size: 4096, Offset: 8, Value: 3}
	chunks := []contract.CUDAChunk{{ID: 1, Size: 40}, {ID: 2, Size: 40}}
	return map[string]contract.Lease{
		"empty":       {Layout: empty, Fence: ready, Route: contract.RouteEmpty},
		"shared heap": {Layout: host, Handle: segment, Fence: ready, Route: contract.RouteSharedHeap},
		"mapped file": {Layout: host, Handle: segment, Fence: ready, Route: contract.RouteMappedFile},
		"staged":      {Layout: host, Handle: segment, Fence: ready, Route: contract.RouteStaged, Reason: contract.ReasonHeapOff},
		"ipc":         {Layout: gpu, Handle: contract.CUDAIPC{ID: 1, Size: 80}, Fence: word, Route: contract.RouteCUDAIPC},
		"vmm":         {Layout: gpu, Handle: contract.CUDAVMM{Chunks: chunks}, Fence: word, Route: contract.RouteCUDAVMM},
		"pool":        {Layout: gpu, Handle: contract.CUDAPool{ID: 1, Size: 80}, Fence: ready, Route: contract.RouteCUDAPool},
		"copied on the GPU": {
			Layout: gpu, Handle: contract.CUDAVMM{Chunks: chunks}, Fence: word, Route: contract.RouteCUDAStaged,
			Reason: contract.ReasonNotExportable,
		},
	}
}

func TestCheckTakesSoundLeases(t *testing.T) {
	t.Parallel()
	for name, l := range sound(t) {
		if err := l.Check(contract.Request{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		l.Version, l.Published = 3, time.Now()
		if err := l.Check(contract.Request{}); err != nil {
			t.Errorf("%s, published: %v", name, err)
		}
		l.Writable = true
		if err := l.Check(contract.Request{Writable: true}); (err == nil) == contract.Copied(l.Route) {
			t.Errorf("%s, writable: %v", name, err)
		}
		if err := l.Check(contract.Request{}); err == nil {
			t.Errorf("%s is writable, which nobody asked for", name)
		}
		l.Writable = false
		if err := l.Check(contract.Request{Copy: contract.CopyNever}); (err == nil) == contract.Copied(l.Route) {
			t.Errorf("%s where copies are refused: %v", name, err)
		}
	}
}

// TestCheckRefusesEveryWrongPair gives each handle each route: all but the sound pairs are refused.
func TestCheckRefusesEveryWrongPair(t *testing.T) {
	t.Parallel()
	pairs := map[string]bool{
		"empty": true, "segment shared-heap": true, "segment mapped-file": true, "segment staged": true,
		"ipc cuda-ipc": true, "ipc cuda-staged": true, "vmm cuda-vmm": true, "vmm cuda-staged": true, "pool cuda-pool": true,
	}
	kind := func(h contract.Handle) string {
		switch h.(type) {
		case contract.Segment:
			return "segment "
		case contract.CUDAIPC:
			return "ipc "
		case contract.CUDAVMM:
			return "vmm "
		case contract.CUDAPool:
			return "pool "
		default:
			return ""
		}
	}
	for name, l := range sound(t) {
		for other, m := range sound(t) {
			l.Route, l.Reason = m.Route, m.Reason
			pair := kind(l.Handle) + string(l.Route)
			if err := l.Check(contract.Request{}); (err == nil) != pairs[pair] {
				t.Errorf("%s by the route of %s: %v", name, other, err)
			}
		}
		l.Route = ""
		if err := l.Check(contract.Request{}); err == nil {
			t.Errorf("%s without a route is taken", name)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	leases := sound(t)
	readOnly := layout(t, core.LayoutSpec{DType: core.Float32, Shape: []int{4}, Offset: 64, ReadOnly: true})
	before := layout(t, core.LayoutSpec{DType: core.Float32, Shape: []int{4}, Strides: []int{-4}, Offset: 8})
	for name, tc := range map[string]struct {
		of   string
		edit func(*contract.Lease)
		want string
	}{
		"no layout":            {"shared heap", func(l *contract.Lease) { l.Layout = core.Layout{} }, "no layout"},
		"no memory":            {"shared heap", func(l *contract.Lease) { l.Handle = nil }, "4 elements by route shared-heap without memory"},
		"memory for nothing":   {"empty", func(l *contract.Lease) { l.Handle = contract.Segment{Size: 80} }, "no elements by route empty with memory"},
		"too little memory":    {"shared heap", func(l *contract.Lease) { l.Handle = contract.Segment{Size: 79} }, "64 to 80 of memory of 79"},
		"too few chunks":       {"vmm", func(l *contract.Lease) { l.Handle = contract.CUDAVMM{Chunks: []contract.CUDAChunk{{ID: 1, Size: 79}}} }, "of memory of 79"},
		"before the memory":    {"shared heap", func(l *contract.Lease) { l.Layout = before }, "from byte -4"},
		"a fence on the host":  {"shared heap", func(l *contract.Lease) { l.Fence = contract.CUDAWord{} }, "for host memory"},
		"a fence for nothing":  {"empty", func(l *contract.Lease) { l.Fence = contract.CUDAWord{} }, "for host memory"},
		"a segment of a GPU":   {"shared heap", func(l *contract.Lease) { l.Layout = leases["ipc"].Layout }, "host memory for an array on cuda:0"},
		"GPU memory of a host": {"ipc", func(l *contract.Lease) { l.Layout = leases["staged"].Layout }, "GPU memory for an array on cpu"},
		"a copy without why":   {"staged", func(l *contract.Lease) { l.Reason = "" }, "with reason"},
		"why without a copy":   {"shared heap", func(l *contract.Lease) { l.Reason = contract.ReasonFrozen }, "with reason frozen-by-fork"},
		"a version, no time":   {"shared heap", func(l *contract.Lease) { l.Version = 1 }, "version 1"},
		"a time, no version":   {"shared heap", func(l *contract.Lease) { l.Published = time.Now() }, "version 0"},
	} {
		l := leases[tc.of]
		tc.edit(&l)
		if err := l.Check(contract.Request{}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	l := leases["shared heap"]
	l.Layout, l.Writable = readOnly, true
	if err := l.Check(contract.Request{Writable: true}); err == nil {
		t.Error("a read-only array is granted as writable")
	}
}

func TestUUID(t *testing.T) {
	t.Parallel()
	u := contract.UUID{0xfc, 0xfb, 0x18, 0xe7, 0xbd, 0x29, 0x54, 0xfb, 0xed, 0xe1, 0xd6, 0x17, 0x20, 0xb5, 0x50, 0x0a}
	if got, want := u.String(), "GPU-fcfb18e7-bd29-54fb-ede1-d61720b5500a"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestQuirkVersions(t *testing.T) {
	t.Parallel()
	for want, q := range map[string]contract.Quirk{
		"all": {}, ">= 1.22.0": {Since: "1.22.0"}, "< 2.1.0": {Until: "2.1.0"}, ">= 1.22.0, < 2.1.0": {Since: "1.22.0", Until: "2.1.0"},
	} {
		if got := q.Versions(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
