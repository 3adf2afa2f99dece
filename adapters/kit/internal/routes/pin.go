package routes

import (
	"sync"

	"github.com/ndbridge/ndbridge/adapters/kit"
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

// Renew implements [kit.Moving]: it sees to it that the pin is on the file that the block lies in now, and that there is one: a fork may have made the block
// private.
func (p *pin) Renew(writable bool) (_ kit.Backing, shift int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.heap.Repin(p.lo, p.segment, writable)
	if ok && b.Reason == contract.ReasonFrozen && p.promotable(&b) {
		p.heap.Promote(p.lo, p.policy) // if not, another host's renewal may have, while this one waited for it
		b, ok = p.heap.Repin(p.lo, p.segment, writable)
	}
	if !ok {
		return nil, 0, pointerError(p.lo, "the program has freed what was there, or has mapped something else over it")
	}
	if b.Segment != 0 {
		shift = b.Offset - p.offset
		p.segment, p.offset = b.Segment, b.Offset
	}
	if b.Backing == nil {
		return nil, 0, notShared(b.Reason, Want{NoCopy: true})
	}
	return b.Backing, shift, nil
}

// promotable reports whether to promote a block: there is room for it, and no device knows the memory, which might write there.
func (p *pin) promotable(b *HeapBlock) bool {
	if !forPromotion.take(b.Offset+b.Available, true) {
		return false
	}
	if !gpu.Active() {
		return true
	}
	_, err := gpu.Inspect(p.lo, p.n)
	return err != nil
}
