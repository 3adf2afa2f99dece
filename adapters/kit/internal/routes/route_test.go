package routes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/shm"
	"github.com/ndbridge/ndbridge/internal/shm/shmtest"
)

// fakeHeap is one block, which is mapped from a memfd.
type fakeHeap struct {
	mu      sync.Mutex
	base    uintptr
	size    int64
	block   HeapBlock // of base
	pinned  int
	writers int

	promoted int // calls of Promote
	refused  int // calls of Refuse
	outside  bool
	needs    contract.PromotePolicy // without which nothing is promoted; "": none
	copies   int                    // calls of Copied
	repinned func()                 // is called by Repin
	other    *HeapBlock             // what another one makes of block, while Promote waits for it
}

func (h *fakeHeap) Pin(addr uintptr, writable bool) (HeapBlock, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if addr < h.base || addr >= h.base+uintptr(h.size) {
		return HeapBlock{}, false
	}
	b := h.block
	b.Offset += int64(addr - h.base)
	b.Available -= int64(addr - h.base)
	if b.Reason == "" && !b.Freed && !b.Outside {
		h.pinned++
		if writable {
			h.writers++
		}
	}
	return b, true
}

func (h *fakeHeap) Unpin(uintptr, uint64) { h.mu.Lock(); h.pinned--; h.mu.Unlock() }

func (h *fakeHeap) Promote(uintptr, contract.PromotePolicy) bool {
	h.promoted++
	if h.other == nil {
		return true
	}
	h.block = *h.other
	return false
}

func (h *fakeHeap) Promotes(policy contract.PromotePolicy) bool {
	return h.needs == "" || policy == h.needs
}

func (h *fakeHeap) Refuse(uintptr) { h.refused++ }

func (h *fakeHeap) Copied(uintptr) { h.copies++ }

func (h *fakeHeap) Outside(_ uintptr, _ int64, due bool) bool {
	return h.outside && (!due || h.copies > 0)
}

func (h *fakeHeap) Threshold() int64 { return 64 << 10 }

func (*fakeHeap) Works() bool { return true }

// newFakeHeap puts a block of n bytes at offset 4096 of a file.
func newFakeHeap(t *testing.T, n int) (h *fakeHeap, memory []byte) {
	t.Helper()
	f, err := shm.Create("fake-heap", int64(4096+n))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	all, start := shmtest.Map(t, f, 4096+n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	backing, err := kit.FileSegment(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { backing.Close() })
	shmtest.Fill(all[4096:])
	return &fakeHeap{
		base: start + 4096, size: int64(n),
		block: HeapBlock{Backing: backing, Offset: 4096, Available: int64(n)},
	}, all[4096:]
}

func doubles(t *testing.T, n int) core.Layout {
	t.Helper()
	return layout(t, core.LayoutSpec{DType: core.Float64, Shape: []int{n}})
}

// place shares an array, or copies it.
func (r *Router) place(ctx context.Context, a Array, want Want) (Placement, error) {
	p, reason, err := r.Share(a, want)
	if err != nil || reason == "" {
		return p, err
	}
	return r.Stage(ctx, a, reason, nil)
}

// place places an array, compares what a host would read, and drops it at the end of the test.
func place(t *testing.T, r *Router, a Array, want Want, memory []byte) Placement {
	t.Helper()
	p, err := r.place(t.Context(), a, want)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.GiveUp(); err != nil {
			t.Error(err)
		}
	})
	if len(p.Memory.Parts) == 0 {
		return p
	}
	spec := a.Layout.Spec()
	spec.Offset = 0
	if got, want := elements(contents(t, p.Memory.Parts[0]), p.Layout), elements(memory, layout(t, spec)); !bytes.Equal(got, want) {
		t.Errorf("a host reads other elements by route %v", p.Route)
	}
	return p
}

func newRouter(t *testing.T, heap Heap) *Router {
	t.Helper()
	r := NewRouter(heap)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestPlaceSharedHeap(t *testing.T) {
	t.Parallel()
	h, memory := newFakeHeap(t, 64<<10)
	r := newRouter(t, h)
	a := Array{h.base + 80, doubles(t, 100)}
	p, err := r.place(t.Context(), a, Want{Writable: true, NoCopy: true})
	if err != nil {
		t.Fatal(err)
	}
	if p.Route != contract.RouteSharedHeap || p.Reason != "" || p.Layout.Offset() != 4096+80 {
		t.Errorf("%v, %v, offset %d", p.Route, p.Reason, p.Layout.Offset())
	}
	if !bytes.Equal(elements(contents(t, p.Memory.Parts[0]), p.Layout), memory[80:880]) {
		t.Error("a host reads other elements")
	}
	if h.pinned != 1 || h.writers != 1 {
		t.Errorf("%d pins, %d to write to", h.pinned, h.writers)
	}
	p.Drop()

	reversed := layout(t, core.LayoutSpec{DType: core.Int32, Shape: []int{10}, Strides: []int{-4}})
	p, err = r.place(t.Context(), Array{h.base + 36, reversed}, Want{})
	if err != nil || p.Layout.Offset() != 4096+36 {
		t.Errorf("reversed: %v, offset %d", err, p.Layout.Offset())
	} else {
		p.Drop()
	}

	if _, err := r.place(t.Context(), Array{h.base, doubles(t, 8193)}, Want{}); !errors.Is(err, core.ErrPointer) {
		t.Errorf("an array larger than its block: %v, want ErrPointer", err)
	}
	h.block.Freed = true
	if _, err := r.place(t.Context(), a, Want{}); !errors.Is(err, core.ErrPointer) {
		t.Errorf("an array whose block was freed: %v, want ErrPointer", err)
	}
	if h.pinned != 0 {
		t.Errorf("%d pins are left", h.pinned)
	}
}

// TestPromoteWantsRoom: a block is only moved if all of it fits into memory once more, whatever part of it is looked at.
func TestPromoteWantsRoom(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*HeapBlock)
		want   bool
		calls  int
	}{
		"there is room":       {func(*HeapBlock) {}, true, 1},
		"too large behind":    {func(b *HeapBlock) { b.Available = 1 << 50 }, false, 0},
		"too large in front":  {func(b *HeapBlock) { b.Offset = 1 << 50 }, false, 0},
		"freed":               {func(b *HeapBlock) { *b = HeapBlock{Freed: true} }, false, 0},
		"mapped over":         {func(b *HeapBlock) { b.Reason = contract.ReasonOutsideHeap }, false, 0},
		"promoted in between": {func(b *HeapBlock) { b.Reason = "" }, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := newFakeHeap(t, 4096)
			backing := h.block.Backing
			h.block.Reason, h.block.Backing = contract.ReasonFrozen, nil
			if c.change(&h.block); h.block.Reason == "" && !h.block.Freed {
				h.block.Backing = backing
			}
			r := newRouter(t, h)
			if got := r.Promote(Array{h.base, doubles(t, 8)}); got != c.want || h.promoted != c.calls || h.pinned != 0 {
				t.Errorf("%v after %d calls, %d pins; want %v after %d, and none", got, h.promoted, h.pinned, c.want, c.calls)
			}
		})
	}
}

// TestOutsideIsNoMapping: memory that becomes the heap's is partly mapped from a file meanwhile, which is never handed out. Who
// has waited until it is done has it shared.
func TestOutsideIsNoMapping(t *testing.T) {
	t.Parallel()
	h, memory := newFakeHeap(t, 128<<10)
	block := h.block
	h.block, h.outside, h.other = HeapBlock{Outside: true}, true, &block
	r, array := newRouter(t, h), Array{h.base, doubles(t, 16<<10)}
	if p := place(t, r, array, Want{}, memory); p.Route != contract.RouteStaged || p.Reason != contract.ReasonOutsideHeap {
		t.Errorf("placed by %v (%v)", p.Route, p.Reason)
	}
	if small := (Array{h.base, doubles(t, 10)}); place(t, r, small, Want{}, memory).Reason != contract.ReasonBelowThreshold {
		t.Error("a small array is placed for another reason")
	}
	if !r.Promote(array) || h.promoted != 1 || h.refused != 0 || h.pinned != 0 {
		t.Errorf("%d calls of Promote, %d refusals, %d pins", h.promoted, h.refused, h.pinned)
	}
	if p := place(t, r, array, Want{NoCopy: true}, memory); p.Route != contract.RouteSharedHeap {
		t.Errorf("placed by %v (%v)", p.Route, p.Reason)
	}
}

func TestPlaceReasons(t *testing.T) {
	t.Parallel()
	frozen, memory := newFakeHeap(t, 4096)
	frozen.block.Reason = contract.ReasonFrozen
	f := shmtest.File(t, 2*4096)
	fileBytes, copyOnWrite := shmtest.Map(t, f, 2*4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	own, outside := anonymous(t, 128<<10)
	tests := []struct {
		heap   Heap
		addr   uintptr
		n      int
		memory []byte
		want   core.Reason
	}{
		{nil, outside, 8, own, contract.ReasonHeapOff},
		{frozen, outside, 8, own, contract.ReasonBelowThreshold},
		{frozen, outside, 8 << 10, own, contract.ReasonOutsideHeap},
		{frozen, frozen.base, 8, memory, contract.ReasonFrozen},
		{nil, copyOnWrite, 1024, fileBytes, contract.ReasonPrivateMapping},
		{frozen, copyOnWrite, 1024, fileBytes, contract.ReasonPrivateMapping},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.want), func(t *testing.T) {
			t.Parallel()
			r := newRouter(t, tt.heap)
			a := Array{tt.addr, doubles(t, tt.n)}
			p := place(t, r, a, Want{}, tt.memory)
			if p.Route != contract.RouteStaged || p.Reason != tt.want {
				t.Errorf("%v because of %v, want staged because of %v", p.Route, p.Reason, tt.want)
			}
			for _, want := range []Want{{NoCopy: true}, {Writable: true}} {
				_, err := r.place(t.Context(), a, want)
				e, ok := errors.AsType[*core.Error](err)
				if !ok || !errors.Is(err, core.ErrNotShared) || e.Reason != tt.want || e.Remedy == "" {
					t.Errorf("%+v: %v, want ErrNotShared with the reason %v and a remedy", want, err, tt.want)
				}
				if want.Writable && strings.Contains(fmt.Sprint(err), "allow the copy") {
					t.Errorf("%v: a copy is no use to a writer", err)
				}
			}
		})
	}
	large := Array{frozen.base, doubles(t, 1<<32)}
	if _, err := newRouter(t, frozen).place(t.Context(), large, Want{}); !errors.Is(err, core.ErrPointer) {
		t.Errorf("an array that reaches beyond a frozen block: %v, want ErrPointer", err)
	}
	if frozen.pinned != 0 {
		t.Errorf("%d pins on a frozen block", frozen.pinned)
	}
}

func TestPlaceRefusals(t *testing.T) {
	t.Parallel()
	_, start := anonymous(t, 4096)
	f := shmtest.File(t, 4096)
	b, fileStart := shmtest.Map(t, f, 2*4096, unix.PROT_READ, unix.MAP_SHARED)
	_ = b
	gpu := layout(t, core.LayoutSpec{
		DType: core.Float32, Shape: []int{4}, Device: core.Device{Kind: core.CUDA},
	})
	frozen := layout(t, core.LayoutSpec{DType: core.Float32, Shape: []int{4}, ReadOnly: true})
	broadcast := layout(t, core.LayoutSpec{DType: core.Float32, Shape: []int{4}, Strides: []int{0}})
	tests := []struct {
		name string
		a    Array
		want Want
		err  error
	}{
		{"device memory", Array{start, gpu}, Want{}, core.ErrDevice},
		{"writing a read-only array", Array{start, frozen}, Want{Writable: true}, core.ErrReadOnly},
		{"writing what overlaps itself", Array{start, broadcast}, Want{Writable: true}, core.ErrReadOnly},
		{"null", Array{0, doubles(t, 1)}, Want{}, core.ErrPointer},
		{"unmapped", Array{4096, doubles(t, 1)}, Want{}, core.ErrPointer},
		{"past the mapping of a file", Array{fileStart, doubles(t, 1<<40)}, Want{}, core.ErrPointer},
		{"past the end of a file", Array{fileStart + 4096, doubles(t, 1)}, Want{}, core.ErrPointer},
		{"past the memory", Array{start, doubles(t, 1<<40)}, Want{NoCopy: true}, core.ErrNotShared},
	}
	r := newRouter(t, nil)
	for _, tt := range tests {
		if _, err := r.place(t.Context(), tt.a, tt.want); !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.err)
		}
	}
}

func TestPlaceEmpty(t *testing.T) {
	t.Parallel()
	r := newRouter(t, nil)
	for _, addr := range []uintptr{0, 1, 1 << 62} {
		l := layout(t, core.LayoutSpec{DType: core.Float64, Shape: []int{0, 3}, Strides: []int{0, 0}, Offset: 64})
		p, err := r.place(t.Context(), Array{addr, l}, Want{Writable: true, NoCopy: true})
		if err != nil || p.Route != contract.RouteEmpty || len(p.Memory.Parts) != 0 || p.Layout.Offset() != 0 {
			t.Errorf("at %#x: %+v, %v", addr, p, err)
		}
	}
}

// Memory that is not the array's own is copied wherever it lies.
func TestPlaceForAReason(t *testing.T) {
	t.Parallel()
	h, memory := newFakeHeap(t, 64<<10)
	r := newRouter(t, h)
	a := Array{h.base, doubles(t, 100)}
	p := place(t, r, a, Want{Reason: contract.ReasonConverted}, memory)
	if p.Route != contract.RouteStaged || p.Reason != contract.ReasonConverted || h.pinned != 0 {
		t.Errorf("%v because of %v, %d pins", p.Route, p.Reason, h.pinned)
	}
	_, err := r.place(t.Context(), a, Want{Reason: contract.ReasonConverted, NoCopy: true})
	if e, ok := errors.AsType[*core.Error](err); !ok || e.Reason != contract.ReasonConverted {
		t.Errorf("%v, want ErrNotShared because it was converted", err)
	}
}

func TestPlaceObeysContext(t *testing.T) {
	t.Parallel()
	_, start := anonymous(t, 4096)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newRouter(t, nil).place(ctx, Array{start, doubles(t, 2)}, Want{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}
