package routes

import (
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// ofHeap is a file of the heap's, whose it stays.
type ofHeap struct{ kit.Backing }

func (ofHeap) Close() error { return nil }

func (h *fakeHeap) Repin(addr uintptr, _ uint64, _ bool) (HeapBlock, bool) {
	if h.repinned != nil {
		h.repinned()
	}
	b := h.block
	b.Offset += int64(addr - h.base)
	b.Available -= int64(addr - h.base)
	return b, !b.Freed
}

// TestRenew: a lease goes along with its memory to another file, in which it may lie elsewhere, and looks at the name find it there. What
// cannot be had any more leaves the lease where it was.
func TestRenew(t *testing.T) {
	t.Parallel()
	h, _ := newFakeHeap(t, 64<<10)
	h.block.Segment, h.block.Backing = 1, ofHeap{h.block.Backing}
	r := newRouter(t, h)
	a := Array{h.base + 80, doubles(t, 100)}
	place := func() Placement {
		t.Helper()
		p, reason, err := r.Share(a, Want{Writable: true})
		if err != nil || reason != "" {
			t.Fatal(reason, err)
		}
		return p
	}
	var leases kit.Leases
	p := place()
	l, err := leases.Grant(contract.Lease{Layout: p.Layout, Writable: true}, p.Memory, p.Drop)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := l.Handle.(contract.Segment)
	same, offset, err := leases.Renew(l.ID)
	if err != nil || same != first || offset != p.Layout.Offset() || !leases.Stands(l.ID, p.Memory, p.Layout) {
		t.Errorf("nothing has happened: segment %v at %d, %v", same, offset, err)
	}

	apart := h.block
	h.block.Reason, h.block.Backing = contract.ReasonFrozen, nil
	if _, _, err := leases.Renew(l.ID); !errors.Is(err, core.ErrNotShared) || !leases.Stands(l.ID, p.Memory, p.Layout) || h.promoted != 1 {
		t.Errorf("memory that stays private: %v, after %d promotions", err, h.promoted)
	}
	file, _ := newFakeHeap(t, 64<<10)
	apart.Backing, apart.Segment, apart.Offset = ofHeap{file.block.Backing}, 2, 0
	h.block = apart
	moved, offset, err := leases.Renew(l.ID)
	if err != nil || moved.ID == first.ID || offset != p.Layout.Offset()-4096 || leases.Stands(l.ID, p.Memory, p.Layout) {
		t.Errorf("memory that was moved: segment %v at %d, %v", moved, offset, err)
	}
	if again := place(); !leases.Stands(l.ID, again.Memory, again.Layout) {
		t.Error("the array is not found where the lease is")
	} else {
		again.Drop()
	}
	if f, err := leases.Descriptor(t.Context(), moved.ID, true); err != nil {
		t.Error(err)
	} else {
		f.Close()
	}
	if _, err := leases.Descriptor(t.Context(), first.ID, false); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("the segment of before is there: %v", err)
	}
	frozen := h.block
	apart = h.block
	frozen.Reason, frozen.Backing, frozen.Segment = contract.ReasonFrozen, nil, 0
	apart.Segment, apart.Offset = 3, 4096
	h.block, h.other = frozen, &apart
	if _, offset, err := leases.Renew(l.ID); err != nil || offset != p.Layout.Offset() {
		t.Errorf("memory that another host has moved while this one waited: at %d, %v", offset, err)
	}
	h.block.Freed = true
	if _, _, err := leases.Renew(l.ID); !errors.Is(err, core.ErrPointer) {
		t.Errorf("memory that was freed: %v", err)
	}
	if err := leases.Release(t.Context(), l.ID); err != nil || h.pinned != 0 {
		t.Errorf("%d pins are left, %v", h.pinned, err)
	}
	other, err := leases.Grant(contract.Lease{}, kit.Memory{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []contract.LeaseID{l.ID, other.ID} {
		if _, _, err := leases.Renew(id); !errors.Is(err, core.ErrUnsupported) {
			t.Errorf("lease %d, which is none on the heap: %v", id, err)
		}
	}
}

// TestReleaseDuringRenew: what a lease stands on stays until the renewal under way is done.
func TestReleaseDuringRenew(t *testing.T) {
	t.Parallel()
	h, _ := newFakeHeap(t, 64<<10)
	h.block.Backing = ofHeap{h.block.Backing}
	r := newRouter(t, h)
	p, _, err := r.Share(Array{h.base, doubles(t, 100)}, Want{})
	if err != nil {
		t.Fatal(err)
	}
	var leases kit.Leases
	dropped := false
	l, err := leases.Grant(contract.Lease{Layout: p.Layout}, p.Memory, func() { dropped = true; p.Drop() })
	if err != nil {
		t.Fatal(err)
	}
	h.repinned = func() {
		if err := leases.Release(t.Context(), l.ID); err != nil || dropped {
			t.Errorf("dropped %v, %v", dropped, err)
		}
	}
	if _, _, err := leases.Renew(l.ID); !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("a lease that was released meanwhile: %v", err)
	}
	if !dropped || h.pinned != 0 {
		t.Errorf("dropped %v, %d pins are left", dropped, h.pinned)
	}
}
