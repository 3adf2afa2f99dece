package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit"
	"github.com/ndbridge/ndbridge/adapters/kit/program/failure"
	"github.com/ndbridge/ndbridge/adapters/kit/program/holds"
	"github.com/ndbridge/ndbridge/adapters/kit/program/lookup"
	"github.com/ndbridge/ndbridge/adapters/kit/program/names"
	"github.com/ndbridge/ndbridge/adapters/kit/program/published"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
)

// How often a name that is not there yet is looked up. Published names and the program's end are
// noticed at once; only assignments to variables have to be looked for.
const (
	firstPoll = time.Millisecond
	lastPoll  = 50 * time.Millisecond
)

// maxLockedCopy is how much is copied with the GIL held: giving it back and taking it again can cost
// more than the copy, if the program is busy.
const maxLockedCopy = 64 << 10

// Lease implements [core.Producer].
func (p *Program) Lease(ctx context.Context, name string, req core.Request) (core.Lease, error) {
	path, err := names.Parse(name)
	if err != nil {
		return core.Lease{}, failure.About("lease", "", "", err)
	}
	ctx, cancel := patience(ctx)
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var missing *lookup.MissingError // what it has waited for until now
	for delay := firstPoll; ; delay = min(2*delay, lastPoll) {
		ended, changed, endErr := p.state.Watch()
		if endErr != nil {
			return core.Lease{}, failure.About("lease", name, "", endErr)
		}
		lease, err := p.tryLease(ctx, path, req)
		switch now, isMissing := errors.AsType[*lookup.MissingError](err); {
		case isMissing && (ended || req.NoWait):
			return core.Lease{}, failure.About("lease", name, "", lookup.NotFound(err))
		case isMissing:
			missing = now
		case err != nil && missing != nil && ctx.Err() != nil: // while the program was asked once more
			return core.Lease{}, gaveUp(ctx, name, missing)
		default:
			return lease, failure.About("lease", name, "", p.orEnd(err))
		}
		timer.Reset(delay)
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
			return core.Lease{}, gaveUp(ctx, name, missing)
		}
	}
}

// gaveUp is the error of a wait that the caller's patience has ended.
func gaveUp(ctx context.Context, name string, missing *lookup.MissingError) error {
	return &core.Error{
		Op: "lease", Array: name, Kind: ctx.Err(),
		Err: fmt.Errorf("waited for what is not there yet: %w", missing), Remedy: missing.Remedy,
	}
}

// patience ends a little before ctx's deadline. The caller is in another process, and should hear what
// is missing, or keeps Python busy, before it gives up itself.
func patience(ctx context.Context) (context.Context, context.CancelFunc) {
	const enough = 100 * time.Millisecond
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-min(enough, time.Until(deadline)/4)))
}

// orEnd gives the reason why the program has ended instead of an error that merely says that it has.
func (p *Program) orEnd(err error) error {
	if !errors.Is(err, core.ErrUnavailable) {
		return err
	}
	if _, _, end := p.state.Watch(); end != nil {
		return end
	}
	return err
}

// tryLease does without waiting for a name.
func (p *Program) tryLease(ctx context.Context, path names.Path, req core.Request) (core.Lease, error) {
	var lease core.Lease
	err := p.interp.Do(ctx, func(g *py.GIL) error {
		p.board.WithdrawStale(g, &p.published) //nolint:contextcheck // what has ended, ends
		t, err := p.find(g, path)
		if err != nil {
			return err
		}
		defer t.Close()
		granted, err := p.grant(ctx, g, t, req, nil)
		if err != nil {
			return err
		}
		if !g.Commit() { // nobody waits for it any more
			return p.leases.Release(ctx, granted.ID)
		}
		lease = granted
		return nil
	})
	if err != nil {
		return core.Lease{}, err
	}
	return lease, nil
}

// grant leases an object: to n, who is in a hurry, or to anybody if n is nil.
func (p *Program) grant(ctx context.Context, g *py.GIL, t published.Target, req core.Request, n *prepared) (core.Lease, error) {
	f, r, err := p.read(g, t, n)
	if err != nil {
		return core.Lease{}, failure.About("lease", "", f.name, err)
	}
	defer r.drop(g)
	want := kit.Want{Writable: req.Writable, NoCopy: p.copyPolicy(f, req.Copy) == core.CopyNever}
	if r.temporary {
		want.Reason = core.ReasonConverted
	}
	place, err := p.place(ctx, g, r, want, n != nil)
	if err != nil {
		return core.Lease{}, failure.About("lease", "", f.name, err)
	}
	if n != nil {
		n.recognise(g, t.Object, r, place)
	}
	lease, _, err := p.enter(f, r, place, req.Writable) //nolint:contextcheck // nothing of it waits
	if n != nil && n.seen != nil && n.copiesAnew(place.Route) {
		n.copied = &copied{r.array.Array, lease, req}
	}
	return lease, err
}

// enter makes a lease of a placement. What it holds in Python, if that is anything, is given back with the
// lease, unless somebody has taken it before.
func (p *Program) enter(f owner, r *reading, place kit.Placement, writable bool) (core.Lease, *holds.Kept, error) {
	var kept *holds.Kept
	drop := place.Drop
	if r.hold && (r.holdCopied || !place.Route.Copied()) && place.Route != core.RouteEmpty {
		kept = holds.Keep(r.holds)
		r.holds = nil
		drop = func() {
			if place.Drop != nil {
				place.Drop()
			}
			p.holds.Add(kept.Take())
		}
	}
	lease, err := p.leases.GrantMemory(core.Lease{
		Layout:    place.Layout,
		Fence:     core.Ready{},
		Framework: f.shown,
		Route:     place.Route,
		Reason:    place.Reason,
		Quirks:    r.quirks,
		Writable:  writable,
	}, place.Memory, drop)
	return lease, kept, err
}

// place finds the array's way to the host, and gives the GIL back while that takes time; in a hurry, a
// large copy is refused.
func (p *Program) place(ctx context.Context, g *py.GIL, r *reading, want kit.Want, hurry bool) (kit.Placement, error) {
	if r.array.OnGPU {
		place, rest, err := p.router.ShareGPU(r.array, want, r.takeOrder()) //nolint:contextcheck // what looks after words outlives this
		if rest != nil {
			g.Unlocked(func() { place, err = rest(ctx) })
		}
		return place, err
	}
	if err := p.await(ctx, g, r); err != nil {
		return kit.Placement{}, err
	}
	if r.array.Layout.Device().Kind == core.CUDAManaged && want.Reason == core.ReasonNone {
		want.Reason = core.ReasonNotExportable // pages that move are no file's
	}
	a := r.array.Array
	place, reason, err := p.router.Share(a, want)
	if err != nil || reason == core.ReasonNone {
		return place, err
	}
	if lo, hi := a.Layout.Span(); hi-lo <= maxLockedCopy {
		return p.router.Stage(ctx, a, reason)
	}
	if hurry {
		return kit.Placement{}, errLong
	}
	g.Unlocked(func() { place, err = p.router.Stage(ctx, a, reason) })
	return place, err
}

// await waits for GPUs that may be writing host memory.
func (p *Program) await(ctx context.Context, g *py.GIL, r *reading) error {
	if r.array.Pointer == nil {
		return nil
	}
	wait, err := p.router.Await(r.array, r.takeOrder())
	if wait != nil {
		g.Unlocked(func() { err = wait(ctx) })
	}
	return err
}

// copyPolicy gives what holds for a request.
func (p *Program) copyPolicy(f owner, asked core.CopyPolicy) core.CopyPolicy {
	if asked != core.CopyDefault {
		return asked
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return f.copy
}

// Descriptor implements [core.Producer].
func (p *Program) Descriptor(ctx context.Context, id core.SegmentID, writable bool) (*os.File, error) {
	return p.leases.Descriptor(ctx, id, writable)
}

// Release implements [core.Producer].
func (p *Program) Release(ctx context.Context, ids ...core.LeaseID) error {
	return p.leases.Release(ctx, ids...)
}
