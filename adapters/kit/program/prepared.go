package program

import (
	"context"
	"errors"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/adapters/kit/program/holds"
	"github.com/ndbridge/ndbridge/adapters/kit/program/names"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/cuda"
	"github.com/ndbridge/ndbridge/internal/handoff"
)

// errLong says that a lease takes longer than those who wait for a ring should.
var errLong = errors.New("this takes long")

// errSteps says that a name leads through attributes and items. To follow them may run code that gives
// something else each time, so it is not tried where it may have to be done again.
var errSteps = errors.New("this leads through attributes and items")

var _ handoff.Preparer = (*Program)(nil)

// prepared is a name that is asked for through a ring. It enters Python on the thread of those who ask.
//
// It remembers the last lease. While the name is a global variable of the same marks, and that lease or
// another on the same stands, the next one needs no new look: what stands keeps its block of the shared
// heap, or what the framework has of a GPU, from being used for anything else, so memory at the same address
// is the same memory. Of a GPU's the driver is asked nevertheless, since programs can free that by hand.
//
// Of an array that was copied it remembers where that is, to copy it again without asking the framework. A
// copy of what does not change is granted again, as memory is that is shared.
type prepared struct {
	program *Program
	path    names.Path
	err     error // why it is no name

	key     py.Object  // the name, if it is one of a global variable; 0: not made yet
	seen    *py.Glance // at the object of the last lease; nil: it is not known again
	kept    py.Object  // that seen tells apart by its address
	granted kit.Standing
	ordered *cuda.Pointer // memory of a GPU that each lease needs a fence of its own for
	copied  *copied       // the object of the last lease was copied

	free    bool   // nothing was published under the name,
	freedAt uint64 // after so many changes
}

// copied is an array that each lease has a copy of.
type copied struct {
	array kit.Array
	lease core.Lease // but for its ID, its layout and its handle
	req   core.Request
}

// Prepare implements [handoff.Preparer]. There is one ring, and so one thread.
func (p *Program) Prepare(name string) handoff.Prepared {
	if p.thread == nil {
		p.thread = p.interp.Thread()
	}
	path, err := names.Parse(name)
	return &prepared{program: p, path: path, err: err}
}

// Lease implements [handoff.Prepared]. The errors are for nobody to read.
func (n *prepared) Lease(ctx context.Context, req core.Request) (lease core.Lease, err error) {
	p := n.program
	n.granted, n.ordered = kit.Standing{}, nil
	if n.err != nil {
		return core.Lease{}, n.err
	}
	if len(n.path.Steps) > 0 && !p.published.Has(n.path.String()) {
		return core.Lease{}, errSteps
	}
	if err := p.state.Failed(); err != nil {
		return core.Lease{}, err
	}
	err = p.thread.Do(func(g *py.GIL) error {
		p.board.WithdrawStale(g, &p.published) //nolint:contextcheck // what has ended, ends
		t, err := p.find(g, n.path)
		if err != nil {
			return err
		}
		defer t.Close()
		if c := n.copied; c != nil && c.req == req && g.Same(t.Object, n.seen) {
			lease, err = p.copyAgain(ctx, c)
			return err
		}
		n.seen, n.copied = nil, nil
		lease, err = p.grant(ctx, g, t, req, n)
		return err
	})
	if err != nil {
		return core.Lease{}, err
	}
	if n.seen != nil && n.copied == nil {
		n.granted = p.leases.Standing(lease.ID)
	}
	return lease, nil
}

// copyAgain leases another copy of an array, which is where it was. The GIL is held: so nobody frees it.
func (p *Program) copyAgain(ctx context.Context, c *copied) (core.Lease, error) {
	place, err := p.router.Stage(ctx, c.array, c.lease.Reason)
	if err != nil {
		return core.Lease{}, err
	}
	lease := c.lease
	lease.Layout = place.Layout
	return p.leases.GrantMemory(lease, place.Memory, place.Drop) //nolint:contextcheck // a grant takes no time
}

// Again implements [handoff.Prepared].
func (n *prepared) Again() (id core.LeaseID, fence core.Fence, ok bool) {
	p := n.program
	if n.seen == nil || n.copied != nil || p.state.Failed() != nil || !n.isFree() || !p.thread.Same(n.key, n.seen) {
		return 0, nil, false
	}
	if n.ordered == nil {
		id, ok = p.leases.Again(n.granted)
		return id, nil, ok
	}
	memory, ok := p.router.FenceAgain(n.ordered)
	if !ok {
		return 0, nil, false
	}
	return p.leases.AgainAfter(n.granted, memory)
}

// isFree says whether the variable of that name is what is asked for, and nothing that was published.
func (n *prepared) isFree() bool {
	if changes := n.program.published.Changes(); !n.free || changes != n.freedAt {
		n.free, n.freedAt = !n.program.published.Has(n.path.Root), changes
	}
	return n.free
}

// Rest implements [handoff.Prepared].
func (n *prepared) Rest() bool { return n.program.thread.Rest() }

// look takes a glance at an object that is going to be leased.
func (n *prepared) look(g *py.GIL, a Adapter, env *Env, o py.Object) (err error) {
	r, ok := a.(Recogniser)
	if !ok {
		return nil
	}
	if n.key, err = g.Interned(n.path.Root); err != nil {
		return err
	}
	marks, ok, err := r.Marks(g, env, o)
	if !ok || err != nil {
		return err
	}
	if n.seen, ok, err = g.Look(o, &marks); !ok {
		n.seen = nil
	}
	return err
}

// recognise decides whether an object that has been placed is to be known again, and sees to it that what
// it is known by lives as long as the lease.
func (n *prepared) recognise(g *py.GIL, o py.Object, r *reading, place kit.Placement) {
	if n.seen == nil {
		return
	}
	l := r.array.Layout
	described := n.seen.Describes(r.array.Addr, l.Shape(), l.Strides(), l.DType().Size())
	if !described || !n.known(r, place.Route) || !g.Same(o, n.seen) {
		n.seen = nil
		return
	}
	if r.array.OnGPU && !r.order.Framework {
		n.ordered = r.array.Pointer
	}
	if itself := n.seen.Itself(); itself != 0 {
		r.hold, r.holdCopied = true, true
		r.holds = append(r.holds, holds.Hold{Object: g.Keep(itself)})
	}
	if other := n.seen.Object(); other != n.kept {
		if other != 0 {
			g.Keep(other)
		}
		if n.kept != 0 {
			g.Drop(n.kept)
		}
		n.kept = other
	}
}

// copiesAnew says whether each lease has a copy of its own: the array may change.
func (n *prepared) copiesAnew(route core.Route) bool {
	return route == core.RouteStaged && n.seen.Itself() == 0
}

// known says whether an array by this route can be known again. Nothing is granted again that was published:
// [prepared.Again] looks at global variables only. On a GPU the order that the next lease needs
// must be known, too: it is that of everything in the context, or, of an object that does not change, the
// one that its framework has given the first.
func (n *prepared) known(r *reading, route core.Route) bool {
	switch {
	case r.temporary, !n.copiesAnew(route) && n.program.published.Has(n.path.String()):
		return false
	case !r.array.OnGPU:
		return (route == core.RouteSharedHeap || route == core.RouteStaged) && r.array.Pointer == nil
	case route.Copied() || r.order.Mark != nil || r.order.Stream != 0:
		return false
	default:
		return !r.order.Framework || n.seen.Itself() != 0
	}
}
