package program

import (
	"context"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/adapters/kit/program/heap"
	"github.com/ndbridge/ndbridge/adapters/kit/program/published"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/board"
	"github.com/ndbridge/ndbridge/internal/handoff"
)

var _ handoff.Publisher = (*Program)(nil)

// offers is where arrays that are published stand for the host to lease them without asking.
type offers struct {
	poster atomic.Pointer[board.Poster] // nil: nowhere
	forks  atomic.Uint64                // of this process when it was last looked for what they end
}

// Publishes implements [handoff.Publisher].
func (p *Program) Publishes(poster *board.Poster) {
	if poster == nil {
		heap.CountForks(p.heap, nil)
	} else {
		heap.CountForks(p.heap, poster.Forks())
		p.offers.forks.Store(poster.Forks().Load())
	}
	p.offers.poster.Store(poster)
}

// offer makes an offer of what was read, which is not shown yet; nil if the host has to ask for it: because
// there is no board or no room on it, or the array cannot be shared without a copy, or only once a GPU has
// done its work. It waits for nothing.
func (p *Program) offer(name string, f owner, r *reading) *published.Offer {
	poster := p.offers.poster.Load()
	if poster == nil || r.array.OnGPU || r.array.Pointer != nil || r.temporary {
		return nil
	}
	note := poster.Reserve()
	if note == nil {
		return nil
	}
	place, _, err := p.router.Share(r.array.Array, kit.Want{NoCopy: true})
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
	lease, kept, err := p.enter(f, r, place, false)
	if err != nil {
		return nil
	}
	body, ok := handoff.AppendOffer(nil, &lease)
	separated := place.Route == core.RouteSharedHeap // by a fork
	if !ok || !note.Write(name, body, uint64(lease.ID), separated) {
		_ = p.leases.Release(context.Background(), lease.ID) // an error is of no use to who publishes
		return nil
	}
	return &published.Offer{Note: note, Lease: lease.ID, Kept: kept}
}

// withdraw ends an offer, which may be nil. What nobody leases ends at once, on this thread; else the
// host says when the last lease has ended.
func (p *Program) withdraw(g *py.GIL, o *published.Offer) {
	if o == nil || !o.Note.Withdraw() {
		return
	}
	held := o.Kept.Take()
	_ = p.leases.Release(context.Background(), o.Lease) // an error is of no use to who publishes
	for _, h := range held {
		h.Drop(g)
	}
}

// withdrawStale ends the offers that a fork has ended, so that their memory is not kept for nobody.
func (p *Program) withdrawStale(g *py.GIL) {
	poster := p.offers.poster.Load()
	if poster == nil {
		return
	}
	if now := poster.Forks().Load(); p.offers.forks.Swap(now) != now {
		for _, o := range p.published.TakeStale() {
			p.withdraw(g, o)
		}
	}
}

// standing is how many leases the host has.
func (p *Program) standing() int {
	poster := p.offers.poster.Load()
	if poster == nil {
		return p.leases.Len()
	}
	leases, notes := poster.Standing()
	return p.leases.Len() - notes + leases
}
