package engine

import (
	"context"
	"slices"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/published"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/routes"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/offers"
)

// latePatience is how long a host that comes waits for the interpreter, so that what was published before is offered to it.
const latePatience = time.Second

// offerLate offers what was published before there was a host to offer it to, and asks anew for what its settings may not refuse. If Python
// is busy for long, the host has to ask for it, until it is published again.
func (p *Program) offerLate() {
	all := p.published.Names()
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), latePatience)
	defer cancel()
	_ = p.interp.Do(ctx, func(g *py.GIL) error { // see above
		for _, name := range all {
			_ = g.Nested(func() error { // the host asks, and learns why
				pub := p.published.Get(g, name)
				if pub == nil {
					return nil
				}
				if pub.Mark != nil { // memory of a GPU is not offered
					pub.Mark.Close()
					return nil
				}
				if !pub.Unseen {
					return nil
				}
				made, err := p.newPublication(g, nil, pub.Object)
				if err == nil {
					p.finish(g, []*published.Publication{p.published.Show(name, pub, made)})
				}
				return err
			})
		}
		return nil
	})
}

// offer leases an array to the program itself, for the host to take a part in, if its memory is the shared heap's,
// which stays what it is. A file's does not: the program may map another one in its place.
func (p *Program) offer(made, last *published.Publication, f owner, r *reading) {
	made.Forks = p.published.Forks()
	if made.Forks == 0 { // nobody looks
		return
	}
	place, _, err := p.router.Share(r.array.Array, routes.Want{NoCopy: true})
	if err != nil {
		return
	}
	if place.Route != contract.RouteSharedHeap {
		_ = place.GiveUp() // of what was not used
		return
	}
	made.Separated = true
	p.enterOffer(made, last, f, r, place)
}

func (p *Program) enterOffer(made, last *published.Publication, f owner, r *reading, place routes.Placement) {
	lease, kept, err := p.enter(f, r, place, false, nil)
	if err != nil {
		return
	}
	if last != nil && alike(&last.Offer, &lease) {
		made.Description, made.Text = last.Description, last.Text
	} else if c := p.codec.Load(); c != nil {
		made.Description = p.descriptions.Add(1)
		described := lease // which is on the heap then
		made.Text, err = (*c).Append(nil, &described)
	}
	if err != nil || made.Text == nil || len(made.Text) > offers.MaxBody {
		_ = p.leases.Release(context.Background(), lease.ID) // the host has to ask
		return
	}
	made.Offer, made.Kept = lease, kept
}

// alike reports whether two leases differ in nothing but where they lie.
func alike(a, b *contract.Lease) bool {
	x, y := a.Handle, b.Handle
	s, ok1 := x.(contract.Segment)
	t, ok2 := y.(contract.Segment)
	if !ok1 || !ok2 || s.Sealed != t.Sealed || a.Route != b.Route || a.Reason != b.Reason ||
		a.Framework != b.Framework || !slices.Equal(a.Quirks, b.Quirks) {
		return false
	}
	l, m := a.Layout, b.Layout
	same := l.DType() == m.DType() && l.Device() == m.Device() && l.ReadOnly() == m.ReadOnly() && l.Tag() == m.Tag() && l.Rank() == m.Rank()
	for axis := 0; same && axis < l.Rank(); axis++ {
		same = l.Dim(axis) == m.Dim(axis) && l.Stride(axis) == m.Stride(axis)
	}
	return same
}
