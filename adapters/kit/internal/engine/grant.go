package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/holds"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/published"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/routes"
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/names"
)

const (
	// smallCopy is how much is copied without further ado while others wait for the GIL.
	smallCopy = 1 << 20
	// maxAttempts bounds how often an array is read anew because it may have changed while others ran.
	maxAttempts = 4
)

// granting is one call of grant.
type granting struct {
	program *Program
	path    names.Path
	object  py.Object // that has no name; 0: it is the path's
	req     contract.Request
	before  *standing // nil: nothing was leased before
	hurry   bool
	awaited []int         // the GPUs that are waited for anyway, before the host is told of the array
	waiting chan struct{} // has room for those who wait for a GPU, as this does; nil: any number may

	// pause is what takes time before the array can be had; it is done without the GIL and without references, which
	// the program could notice, and then the array is read anew. Nil: nothing.
	pause  func() error
	room   *routes.Room  // for a large copy; nil: none
	waited *routes.Array // for whose GPU was waited
	tries  int

	promoted uintptr // where an array was that was promoted, or for which it was tried; 0: none yet

	shown string // the framework that the array was last read by, as users are told
}

// again has the array read anew, unless that was done too often: then the error says so.
func (a *granting) again(err error) error {
	if a.tries >= maxAttempts {
		return err
	}
	a.pause = func() error { return nil }
	return nil
}

// overtaken has the array read anew, which the program has changed meanwhile: at once, and then as awaitNext does.
func (a *granting) overtaken(err error) error {
	if a.tries < maxAttempts {
		return a.again(err)
	}
	return a.awaitNext(err)
}

// awaitNext has the array read anew in a moment, when its name may lead to the next one, or the thread that changes it has gone on, unless that
// was done too often.
func (a *granting) awaitNext(err error) error {
	const attempts, pause = 30, 300 * time.Microsecond
	switch {
	case a.hurry:
		return errLong
	case a.tries >= attempts:
		return err
	}
	a.pause = func() error { <-time.After(pause); return nil }
	return nil
}

// grant leases what a path leads to. Of before, a lease that was granted for the same, it finds out whether it
// is on the same memory, described in the same way: then changed is false, and the result is that lease with a
// fence of now. In a hurry, it refuses what takes long.
func (p *Program) grant(
	ctx context.Context, g *py.GIL, path names.Path, req contract.Request, before *standing, hurry bool,
) (l contract.Lease, changed bool, err error) {
	a := granting{program: p, path: path, req: req, before: before, hurry: hurry}
	if !hurry { // which gives up
		a.waiting = p.waiting
	}
	return a.do(ctx, g, a.once)
}

// grantUnnamed leases an object that the scope holds, for once: nobody looks at it again. The host is told of it only when the work is
// done that the GPUs awaited were given.
func (p *Program) grantUnnamed(ctx context.Context, g *py.GIL, o py.Object, awaited []int) (contract.Lease, error) {
	a := granting{program: p, object: o, awaited: awaited}
	l, _, err := a.do(ctx, g, a.unnamed)
	return l, err
}

// do calls once, which may set pause, until it has an answer.
func (a *granting) do(
	ctx context.Context, g *py.GIL, once func(context.Context, *py.GIL) (contract.Lease, bool, error),
) (l contract.Lease, changed bool, err error) {
	for {
		a.tries++
		err = g.Nested(func() error {
			l, changed, err = once(ctx, g)
			return err
		})
		if a.pause == nil || err != nil {
			break
		}
		if g.Unlocked(func() { err = a.pause() }); err != nil {
			break
		}
		a.pause = nil
	}
	if a.room != nil {
		a.room.Drop()
	}
	return l, changed, err
}

// once is grant, unless it sets pause.
func (a *granting) once(ctx context.Context, g *py.GIL) (l contract.Lease, changed bool, err error) {
	p, s := a.program, &standing{path: a.path, req: a.req}
	if (a.hurry || a.req.NoCode) && a.runsCode(g) {
		return l, false, errCode
	}
	p.separate(g) //nolint:contextcheck // it outlives the call
	s.forks.Store(p.published.Forks())
	s.changes.Store(p.published.Changes())
	t, err := p.findArray(g, a.path)
	if err != nil {
		return l, false, err
	}
	defer t.close()
	if pub := t.publication; pub != nil && pub.Scalar != nil {
		return a.scalar(s, pub) //nolint:contextcheck // it outlives the call
	}
	s.base = t.path
	f, r, err := p.read(g, &t, s) //nolint:contextcheck // it outlives the call
	switch {
	case errors.Is(err, errOvertaken), errors.Is(err, errMoving):
		err = a.overtaken(err)
	case errors.Is(err, program.ErrGivenAway):
		err = a.awaitNext(err)
	}
	if err != nil || a.pause != nil {
		return l, false, about("lease", "", f.name, err)
	}
	defer r.drop(g)
	if err := t.part(r); err != nil {
		dropWatch(g, s.watch)
		return l, false, err
	}
	s.publication, a.shown = t.publication, f.shown
	place, err := a.place(ctx, g, &t, f, r)
	if err = a.confirm(r, t.publication, &place, err); err != nil || a.pause != nil {
		dropWatch(g, s.watch)
		return l, false, about("lease", "", f.name, err)
	}
	if same, fence := a.same(s, r, &place); same {
		dropWatch(g, s.watch)
		a.before.forks.Store(s.forks.Load())
		a.before.changes.Store(s.changes.Load())
		return a.stands(fence), false, nil
	}
	s.take(g, r, &place)
	l, _, err = p.enter(f, r, place.Placement, a.req.Writable, s) //nolint:contextcheck // it outlives the call
	return l, true, err
}

// unnamed is once for an object without a name.
func (a *granting) unnamed(ctx context.Context, g *py.GIL) (l contract.Lease, changed bool, err error) {
	p := a.program
	p.separate(g) //nolint:contextcheck // it outlives the call
	t := target{object: a.object}
	f, plan, err := p.plan(g, a.object)
	var r *reading
	if err == nil {
		rd := p.reader(f, &plan)
		r, err = rd.read(g, a.object)
	}
	if err != nil {
		return l, false, about("lease", "", f.name, err)
	}
	defer r.drop(g)
	place, err := a.place(ctx, g, &t, f, r)
	if err = a.confirm(r, nil, &place, err); err != nil || a.pause != nil {
		return l, false, about("lease", "", f.name, err)
	}
	l, _, err = p.enter(f, r, place.Placement, false, nil) //nolint:contextcheck // it outlives the call
	return l, true, err
}

// confirm sees to it that what was copied, or was kept from being used again, was the array's own memory to the end;
// err is what became of that. It may set pause, as copy does.
func (a *granting) confirm(r *reading, pub *published.Publication, place *placed, err error) error {
	if r.still == nil || r.array.OnGPU || a.pause != nil {
		return err
	}
	still, failed := r.still()
	if err == nil && (failed != nil || !still) {
		_ = place.GiveUp() // of what was not used
	}
	switch {
	case failed != nil:
		return failed
	case !still:
		return a.overtaken(errMoving)
	case err != nil:
		return err
	case contract.Copied(place.Route) && a.copiedBefore(r, place.Reason, pub) && a.before.copy.Take(place.Copied):
		// Only now it is in the memory that the host looks at.
		place.Drop()
		*place = placed{copiedAgain: true}
	}
	return nil
}

// stands is the lease before with another fence.
func (a *granting) stands(fence contract.Fence) contract.Lease {
	l := a.before.lease
	l.Fence = fence
	return l
}

// scalar is once for a number of Python's own.
func (a *granting) scalar(s *standing, pub *published.Publication) (contract.Lease, bool, error) {
	if a.before != nil && a.before.publication.Is(pub) {
		return a.stands(contract.Ready{}), false, nil
	}
	s.publication = pub
	want := routes.Want{Writable: a.req.Writable, NoCopy: a.req.Copy == contract.CopyNever, Reason: contract.ReasonConverted}
	if _, _, err := a.program.router.Share(routes.Array{Layout: pub.Array.Layout}, want); err != nil {
		return contract.Lease{}, false, err
	}
	place, err := a.program.router.Put(pub.Scalar, pub.Array.Layout, contract.ReasonConverted)
	if err != nil {
		return contract.Lease{}, false, err
	}
	l, _, err := a.program.enter(owner{shown: scalarFramework}, &reading{}, place, false, s)
	return l, true, err
}

// same reports whether the array is where the lease before says, and described as it says. Then it gives the
// placement up, but for the fence.
func (a *granting) same(s *standing, r *reading, place *placed) (same bool, fence contract.Fence) {
	if place.copiedAgain {
		return true, contract.Ready{}
	}
	b := a.before
	if b == nil || !b.publication.Is(s.publication) || contract.Copied(place.Route) || place.Route != b.lease.Route || b.lease.Framework != a.shown ||
		!a.program.leases.Stands(b.lease.ID, place.Memory, place.Layout) || !slices.Equal(r.quirks, b.lease.Quirks) {
		return false, nil
	}
	// The lease takes the memory over, of which it has most already, for the sake of the fence.
	if fence, same = a.program.leases.Refence(b.lease.ID, place.Memory); same && place.Drop != nil {
		place.Drop()
	}
	return same, fence
}

// take makes a standing lease of what was read and placed.
func (s *standing) take(g *py.GIL, r *reading, place *placed) {
	s.copy, s.spared = place.Copied, r.spared != "" && place.Reason == r.spared
	if !r.temporary {
		s.addr, s.described = r.full.Addr, r.full.Layout
	}
	if s.watch == nil {
		return
	}
	l := r.full.Layout
	small := place.Layout.NBytes() <= py.MaxCopy
	keep := !r.temporary && s.watch.Describes(r.full.Addr, l.Shape(), l.Strides(), l.DType().Size()) && g.Same(s.watch)
	switch o := &r.order; {
	case r.array.OnGPU:
		keep = keep && place.Reason == r.spared && o.Stream == 0 && (!o.Framework || s.watch.Itself())
		if keep && !o.Framework {
			s.pointer, s.marked = r.array.Pointer, o.Mark != nil
		}
	case r.array.Pointer != nil:
		keep = false // a GPU may be writing it each time
	case place.Route == contract.RouteStaged:
		keep = keep && small
	default:
		keep = keep && place.Route == contract.RouteSharedHeap
	}
	if !keep {
		dropWatch(g, s.watch)
		s.watch = nil
		return
	}
	if s.copy != nil {
		if from, to, size, ok := s.copy.Direct(r.array.Array); ok && size <= py.MaxCopy {
			s.direct = py.Copy{From: from, To: to, Size: size}
		}
	}
}

// enter makes a lease of a placement, which s describes if it is one for the host. What it holds in Python, if
// that is anything, is given back with the lease, unless somebody has taken it before.
func (p *Program) enter(f owner, r *reading, place routes.Placement, writable bool, s *standing) (contract.Lease, *holds.Kept, error) {
	l := contract.Lease{
		Layout: place.Layout, Fence: contract.Ready{}, Framework: f.shown, Route: place.Route, Reason: place.Reason,
		Quirks: r.quirks, Writable: writable,
	}
	var things []holds.Hold
	if r.hold && place.Reason == r.spared && place.Route != contract.RouteEmpty { // what was copied by us has another reason
		things, r.holds = r.holds, nil
	}
	if s != nil {
		if s.watch != nil {
			things = append(things, holds.Hold{Watch: s.watch})
		}
		if s.publication != nil {
			l.Version, l.Published = s.publication.Version, s.publication.At
		}
	}
	var kept *holds.Kept
	drop := place.Drop
	if memory := place.Drop; len(things) > 0 { // place itself stays on the stack
		kept = holds.Keep(things)
		drop = func() {
			if memory != nil {
				memory()
			}
			p.holds.Add(kept.Take())
		}
	}
	l, err := p.leases.Grant(l, place.Memory, drop)
	if err == nil && s != nil {
		s.lease = l
		p.leasing.add(s)
	}
	return l, kept, err
}

func dropWatch(g *py.GIL, w *py.Watch) {
	if w != nil {
		w.Drop(g)
	}
}

// rebound publishes an object anew whose memory is not what was published any more, though its name still has it.
// As long as the memory is the same, the array is what was published, whatever its object is now. Only an offer
// keeps memory: without one, the object may have other memory at the same address, as an allocator gives it again.
func (p *Program) rebound(g *py.GIL, name string, t *target, r *reading) error {
	pub := t.publication
	if pub == nil || r.temporary {
		return nil
	}
	was, is, offered := pub.Array.Layout, r.array.Layout, pub.Offer.ID != 0
	there := pub.Array.Addr == r.array.Addr && was.Device() == is.Device()
	switch {
	case there && offered && within(was, is):
		r.array.Layout = was
		return nil
	case there && !offered && alongside(was, is):
		if was.ReadOnly() { // what was not may be by now
			r.array.Layout = was
		}
		return nil
	}
	next, err := p.newPublication(g, pub, pub.Object)
	if err != nil {
		return err
	}
	if p.published.Last(name) != pub { // the program's own code has run meanwhile
		p.endPublication(g, next)
		return errOvertaken
	}
	p.put(g, map[string]*published.Publication{name: next})
	t.publication = next
	return nil
}

// errOvertaken says that the program has published something else while it was asked what it had published.
var errOvertaken = &core.Error{
	Kind: core.ErrUnavailable, Err: errors.New("the program publishes the name anew at each look"), Remedy: "look again",
}

// alongside reports whether two arrays that begin at the same address have the same elements in the same places.
func alongside(a, b core.Layout) bool {
	return a.DType() == b.DType() && slices.Equal(a.Shape(), b.Shape()) && slices.Equal(a.Strides(), b.Strides())
}

// within reports whether an array takes no more memory than another one that begins at the same address.
func within(a, b core.Layout) bool {
	lo, hi := a.Span()
	from, to := b.Span()
	return lo-a.Offset() >= from-b.Offset() && hi-a.Offset() <= to-b.Offset()
}
