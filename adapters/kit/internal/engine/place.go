package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/published"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/routes"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// placed is how an array reaches the host.
type placed struct {
	routes.Placement
	copiedAgain bool // into the memory of the lease before
}

// place finds the array's way to the host. The GIL is given back only for what is held by its framework meanwhile,
// on a GPU.
func (a *granting) place(ctx context.Context, g *py.GIL, t *target, f owner, r *reading) (placed, error) {
	p := a.program
	want := routes.Want{
		Writable: a.req.Writable, NoCopy: p.copyPolicy(f, a.req.Copy) == contract.CopyNever, Spared: r.spared,
		Kept: func() bool { return p.kept(g, t.object) },
	}
	if r.temporary {
		want.Reason = contract.ReasonConverted
	}
	if r.array.OnGPU {
		order := r.takeOrder()
		order.Awaited = slices.Contains(a.awaited, r.array.Pointer.Device.Index)
		place, rest, err := p.router.ShareGPU(r.array, want, order) //nolint:contextcheck // what looks after words outlives this
		if rest != nil {
			g.Unlocked(func() { err = a.slowly(ctx, func(ctx context.Context) error { place, err = rest(ctx); return err }) })
		}
		return placed{Placement: place}, err
	}
	if err := a.await(ctx, r); err != nil || a.pause != nil {
		return placed{}, err
	}
	if r.array.Layout.Device().Kind == core.CUDAManaged && want.Reason == "" {
		want.Reason = contract.ReasonNotExportable // pages that move are no file's
	}
	place, reason, err := p.router.Share(r.array.Array, want)
	if why := refusal(reason, err); a.canPromote(r, why) && p.router.Promotable(r.array.Array, why, want) {
		return placed{}, a.promote(r.array.Array)
	}
	if err != nil || reason == "" {
		return placed{Placement: place}, err
	}
	copied, err := a.copy(ctx, g, t, r, reason)
	if err == nil && a.pause == nil {
		p.router.Copied(r.array.Array, reason)
	}
	return copied, err
}

// refusal is why memory cannot be shared, as the router says it with an error or without; "" for other errors.
func refusal(reason core.Reason, err error) core.Reason {
	if e, ok := errors.AsType[*core.Error](err); ok {
		return e.Reason
	}
	return reason
}

// canPromote reports whether to try to make an array's memory shareable, which for this reason it is not. A device that
// knows the memory may be writing there. In a hurry, what was refused since the last fork is not tried again. An array that has come in the place of
// one that was to be promoted is a new one.
func (a *granting) canPromote(r *reading, why core.Reason) bool {
	b := a.before
	refused := why == contract.ReasonFrozen && b != nil && b.lease.Reason == why && b.forks.Load() == a.program.published.Forks()
	again := a.promoted == r.array.Addr || a.promoted != 0 && a.tries >= maxAttempts
	return !again && r.array.Pointer == nil && (!a.hurry || !refused)
}

// promote has the memory made shareable again, and then the array read anew.
func (a *granting) promote(array routes.Array) error {
	if a.hurry {
		return errLong
	}
	a.promoted = array.Addr
	a.pause = func() error {
		a.program.router.Promote(array) // if not, the array is copied
		return nil
	}
	return nil
}

// copy copies an array while the GIL is held, so that nobody frees what is read. A large copy waits until its
// pages are there.
func (a *granting) copy(ctx context.Context, g *py.GIL, t *target, r *reading, reason core.Reason) (placed, error) {
	array := r.array.Array
	lo, hi := array.Layout.Span()
	if a.hurry && hi-lo > smallCopy {
		return placed{}, errLong
	}
	if b := a.before; r.still == nil && a.copiedBefore(r, reason, t.publication) && g.Commit() {
		// The host looks at that memory: what has begun is finished, whoever waits for it.
		if ok, err := b.copy.Again(context.WithoutCancel(ctx), array); ok || err != nil {
			return placed{copiedAgain: ok}, err
		}
	}
	if hi-lo > smallCopy && a.room == nil {
		if a.tries < maxAttempts {
			a.pause = func() (err error) {
				a.room, err = a.program.router.Reserve(array)
				return err
			}
			return placed{}, nil
		}
	}
	room := a.room
	a.room = nil
	place, err := a.program.router.Stage(ctx, array, reason, room)
	return placed{Placement: place}, err
}

// copiedBefore reports whether the lease before is on a copy, for the same reason, of an array that was read in the same way.
func (a *granting) copiedBefore(r *reading, reason core.Reason, pub *published.Publication) bool {
	b := a.before
	return b != nil && b.copy != nil && b.lease.Reason == reason && b.publication.Is(pub) && b.lease.Framework == a.shown &&
		slices.Equal(b.lease.Quirks, r.quirks)
}
