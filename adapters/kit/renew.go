package kit

import (
	"errors"
	"slices"
	"sync"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu"
)

// pin is a pin on a block of the heap, which a placement has.
type pin struct {
	heap   Heap
	policy contract.PromotePolicy
	lo     uintptr // of the array
	n      int64   // its bytes

	mu      sync.Mutex
	segment uint64 // that the pin is on
	offset  int64  // of lo in it
}

func (p *pin) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heap.Unpin(p.lo, p.segment)
}

// renew sees to it that the pin is on the file that the block lies in now, and that there is one: a fork may have made the block
// private. It says by how many bytes the array's place in that file differs from that in the one before.
func (p *pin) renew(writable bool) (b HeapBlock, shift int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.heap.Repin(p.lo, p.segment, writable)
	if ok && b.Reason == contract.ReasonFrozen && p.promotable(&b) {
		p.heap.Promote(p.lo, p.policy) // if not, another host's renewal may have, while this one waited for it
		b, ok = p.heap.Repin(p.lo, p.segment, writable)
	}
	if !ok {
		return b, 0, pointerError(p.lo, "the program has freed what was there, or has mapped something else over it")
	}
	if b.Segment != 0 {
		shift = b.Offset - p.offset
		p.segment, p.offset = b.Segment, b.Offset
	}
	if b.Backing == nil {
		return b, 0, notShared(b.Reason, Want{NoCopy: true})
	}
	return b, shift, nil
}

// promotable reports whether to promote a block: there is room for it, and no device knows the memory, which might write there.
func (p *pin) promotable(b *HeapBlock) bool {
	if checkRoom(b.Offset+b.Available) != nil {
		return false
	}
	if !gpu.Active() {
		return true
	}
	_, err := gpu.Inspect(p.lo, p.n)
	return err != nil
}

// Renew sees to it that a standing lease on memory of the shared heap is on the file in which that memory lies now: a fork
// of the program has made it private, and it was promoted, or is now, which takes up to a second for a GiB. It answers with the
// segment, and with where the array's first element is in it. Nothing else of the lease changes.
//
// The error wraps core.ErrUnsupported for a lease that does not stand, or is not on the shared heap, core.ErrNotShared if
// the memory cannot be shared any more, and core.ErrPointer if the program has freed it.
func (t *Leases) Renew(id contract.LeaseID) (s contract.Segment, offset int, err error) {
	t.mu.Lock()
	entry := t.leases[id]
	if entry == nil || entry.pin == nil {
		t.mu.Unlock()
		return s, 0, errNotOnHeap()
	}
	entry.renewals++
	t.mu.Unlock()
	b, shift, err := entry.pin.renew(entry.writable)
	t.mu.Lock()
	var last []Backing
	var drop func()
	entry.renewals--
	switch stands := t.leases[id] == entry; {
	case !stands:
		err = errNotOnHeap()
		if entry.renewals == 0 {
			drop = entry.settle()
		}
	case err == nil:
		var l contract.Lease
		before, memory := entry.segments, hostMemory(b.Backing)
		entry.segments, entry.keys = nil, memory.Keys()
		last = t.leave(entry, before, t.stand(entry, &l, memory))
		entry.layout, err = at(entry.layout, int64(entry.layout.Offset())+shift, false)
		s, offset = l.Handle.(contract.Segment), entry.layout.Offset() //nolint:errcheck,forcetypeassert // hostMemory names one
	}
	t.mu.Unlock()
	return s, offset, errors.Join(err, giveBack(last, drop))
}

func errNotOnHeap() error {
	return &core.Error{Op: "renew", Kind: core.ErrUnsupported, Err: errors.New("no standing lease on memory of the shared heap")}
}

// Stands reports whether a standing lease is on a placement's memory, described in the same way.
func (t *Leases) Stands(id contract.LeaseID, p *Placement) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	entry := t.leases[id]
	return entry != nil && slices.Equal(entry.keys, p.Memory.Keys()) && entry.layout.Equal(p.Layout)
}
