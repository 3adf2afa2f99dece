package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/names"
)

// How often a name that is not there yet is looked up. Published names and the program's end are
// noticed at once; only assignments to variables have to be looked for.
const (
	firstPoll = time.Millisecond
	lastPoll  = 50 * time.Millisecond
)

// Lease implements [contract.Producer].
func (p *Program) Lease(ctx context.Context, name string, req contract.Request) (contract.Lease, error) {
	path, err := names.Parse(name)
	if err != nil {
		return contract.Lease{}, about("lease", "", "", err)
	}
	l, _, err := p.lease(ctx, "lease", name, path, req, nil)
	return l, err
}

// lease is [Program.grant] from any goroutine, which waits for a name that is not there yet. Errors have op and name.
func (p *Program) lease(
	ctx context.Context, op, name string, path names.Path, req contract.Request, before *standing,
) (l contract.Lease, changed bool, err error) {
	err = p.await(ctx, op, name, req.NoWait, func(ctx context.Context) error {
		l, changed, err = p.tryLease(ctx, path, req, before)
		return err
	})
	return l, changed, err
}

// await calls try until what has the name is there. Errors have op and name.
func (p *Program) await(ctx context.Context, op, name string, noWait bool, try func(context.Context) error) error {
	ctx, cancel := patience(ctx)
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var missing *missingError // what the last look at the program has found
	for delay := firstPoll; ; delay = min(2*delay, lastPoll) {
		ended, changed, endErr := p.state.watch()
		if endErr != nil {
			return about(op, name, "", endErr)
		}
		err := try(ctx)
		switch now, isMissing := errors.AsType[*missingError](err); {
		case isMissing && (ended || noWait):
			return about(op, name, "", notFound(err))
		case isMissing:
			missing = now
		case errors.Is(err, errCrowded) && ctx.Err() == nil:
		case err != nil && missing != nil && ctx.Err() != nil: // while the program was asked once more
			return gaveUp(ctx, op, name, missing)
		default:
			return about(op, name, "", p.orEnd(err))
		}
		timer.Reset(delay)
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
			if missing == nil {
				return about(op, name, "", crowded(ctx.Err()))
			}
			return gaveUp(ctx, op, name, missing)
		}
	}
}

// gaveUp is the error of a wait that the caller's patience has ended.
func gaveUp(ctx context.Context, op, name string, missing *missingError) error {
	return &core.Error{
		Op: op, Object: name, Kind: ctx.Err(),
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
	if _, _, end := p.state.watch(); end != nil {
		return end
	}
	return err
}

// tryLease does without waiting for a name.
func (p *Program) tryLease(ctx context.Context, path names.Path, req contract.Request, before *standing) (contract.Lease, bool, error) {
	var lease contract.Lease
	var changed bool
	err := p.interp.Do(ctx, func(g *py.GIL) error {
		if before != nil {
			// Here, because this may be done when the caller has gone.
			looks := p.leasing.begin(nil, before.lease.ID)
			if looks[0] == nil {
				return errEnded()
			}
			defer p.looked(looks) //nolint:contextcheck // it outlives the call
		}
		l, isNew, err := p.grant(ctx, g, path, req, before, false)
		if err != nil {
			return err
		}
		if !g.Commit() { // nobody waits for it any more
			if isNew {
				return p.Release(ctx, l.ID)
			}
			return nil
		}
		lease, changed = l, isNew
		return nil
	})
	if err != nil {
		return contract.Lease{}, false, err
	}
	return lease, changed, nil
}

// copyPolicy gives what holds for a request.
func (p *Program) copyPolicy(f owner, asked contract.CopyPolicy) contract.CopyPolicy {
	if asked != "" || f.framework == nil {
		return asked
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return f.copy
}

// Descriptor implements [contract.Producer].
func (p *Program) Descriptor(ctx context.Context, id contract.SegmentID, writable bool) (*os.File, error) {
	return p.leases.Descriptor(ctx, id, writable)
}

// Release implements [contract.Producer]. The ID of an offer says that the host has let go of it.
func (p *Program) Release(ctx context.Context, ids ...contract.LeaseID) error {
	ids = slices.DeleteFunc(slices.Clone(ids), p.published.Offered)
	ids = p.leasing.remove(ids)
	for _, over := range p.published.Ended() {
		p.holds.Add(p.giveUp(over)) //nolint:contextcheck // it outlives the call
	}
	return p.leases.Release(ctx, ids...)
}
