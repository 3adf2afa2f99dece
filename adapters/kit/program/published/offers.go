package published

import (
	"context"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/adapters/kit/program/heap"
	"github.com/ndbridge/ndbridge/adapters/kit/program/holds"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/board"
	"github.com/ndbridge/ndbridge/internal/handoff"
)

// Offer is a lease that the host can take without asking.
type Offer struct {
	note  *board.Note
	lease core.LeaseID // ends with the offer, and with the last lease that was taken
	kept  *holds.Kept  // what it holds in Python
}

// Board is where what is published stands for the host to lease it without asking. Its methods wait for
// nothing, and are safe for concurrent use.
type Board struct {
	router *kit.Router
	leases *kit.Leases
	heap   kit.Heap // nil: none

	poster atomic.Pointer[board.Poster] // nil: the host knows no board
	forks  atomic.Uint64                // of this process when it was last looked for what they end
}

// NewBoard makes a board of arrays that the router shares and the table leases.
func NewBoard(router *kit.Router, leases *kit.Leases, h kit.Heap) *Board {
	return &Board{router: router, leases: leases, heap: h}
}

// Use begins to offer by poster, or ends it if that is nil.
func (b *Board) Use(poster *board.Poster) {
	if poster == nil {
		heap.CountForks(b.heap, nil)
	} else {
		heap.CountForks(b.heap, poster.Forks())
		b.forks.Store(poster.Forked())
	}
	b.poster.Store(poster)
}

// Standing is how many leases the host has. While an array is being published it may be counted among them.
func (b *Board) Standing() int {
	poster := b.poster.Load()
	if poster == nil {
		return b.leases.Len()
	}
	leases, notes := poster.Standing()
	return max(0, b.leases.Len()-notes) + leases // a note is reserved before its lease, and freed after it
}

// Offer makes an offer of an array in host memory, which [Names.Put] shows; nil if the host has to ask for
// it, because there is no board, or no room on it, or the array cannot be shared without a copy. enter makes
// a lease of a placement.
func (b *Board) Offer(
	name string, a kit.Array, enter func(kit.Placement) (core.Lease, *holds.Kept, error),
) *Offer {
	poster := b.poster.Load()
	if poster == nil {
		return nil
	}
	note := poster.Reserve()
	if note == nil {
		return nil
	}
	place, _, err := b.router.Share(a, kit.Want{NoCopy: true})
	if err != nil {
		note.Free()
		return nil
	}
	unpin := place.Drop
	place.Drop = func() {
		if unpin != nil {
			unpin()
		}
		note.Free()
	}
	lease, kept, err := enter(place)
	if err != nil {
		return nil
	}
	body, ok := handoff.AppendOffer(nil, &lease)
	separated := place.Route == core.RouteSharedHeap // by a fork
	if !ok || !note.Write(name, body, uint64(lease.ID), separated) {
		_ = b.leases.Release(context.Background(), lease.ID) // an error is of no use to who publishes
		return nil
	}
	return &Offer{note, lease.ID, kept}
}

// Withdraw ends an offer, which may be nil. What nobody leases ends at once, on this thread; else the host
// says when the last lease has ended.
func (b *Board) Withdraw(g *py.GIL, o *Offer) {
	if o == nil || !o.note.Withdraw() {
		return
	}
	held := o.kept.Take()
	_ = b.leases.Release(context.Background(), o.lease) // an error is of no use to who publishes
	for _, h := range held {
		h.Drop(g)
	}
}

// WithdrawStale ends the offers among n that a fork has ended, so that their memory is not kept for nobody.
func (b *Board) WithdrawStale(g *py.GIL, n *Names) {
	poster := b.poster.Load()
	if poster == nil {
		return
	}
	if now := poster.Forked(); b.forks.Swap(now) != now {
		for _, o := range n.takeStale() {
			b.Withdraw(g, o)
		}
	}
}

// takeStale gives the offers that a fork has ended, whose targets have none any more.
func (n *Names) takeStale() []*Offer {
	n.mu.Lock()
	defer n.mu.Unlock()
	var stale []*Offer
	for name, t := range n.objects {
		if t.Offer != nil && t.Offer.note.Stale() {
			stale = append(stale, t.Offer)
			t.Offer = nil
			n.objects[name] = t
		}
	}
	return stale
}
