package leases

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

const (
	// settleTime is how long a program has forked no more when it is asked: forks in a row count as one.
	settleTime = 20 * time.Millisecond
	settleMost = 100 * time.Millisecond
	// renewRest is how much longer than renewals the pauses between them are, once they have taken renewBurst in a row: a program that forks
	// all the time does not spend its time with them. But no pause is longer than renewRestMost, however large the arrays are.
	renewRest     = 4
	renewBurst    = 200 * time.Millisecond
	renewRestMost = time.Second
	// renewMost leases at most, of renewBytes bytes if they are several, are renewed at once: a view is live again, and a look at it goes on,
	// when all of these are.
	renewMost  = 16
	renewBytes = 4 << 20
	// heldTime is how long memory that somebody holds waits.
	heldTime = 10 * time.Millisecond
)

// Forked is told that the program has forked, or has mapped something over arrays. Views whose memory that has made private become
// live again soon, or say that they cannot.
func (c *Client) Forked() {
	select {
	case c.forked <- struct{}{}:
	default: // there is one
	}
}

// renewals does what Forked promises, until the client is closed.
func (c *Client) renewals() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	pause := func(d time.Duration) bool {
		timer.Reset(d)
		select {
		case <-timer.C:
			return true
		case <-c.over.Done():
			return false
		}
	}
	var rested time.Time // when there will have been enough pauses
	for {
		select {
		case <-c.forked:
		case <-c.over.Done():
			return
		}
		for until, n := time.Now().Add(settleMost), uint64(0); n != c.forks() && time.Now().Before(until); {
			n = c.forks()
			if !pause(settleTime) {
				return
			}
		}
		begun := time.Now()
		if c.renewAll(c.over) {
			c.Forked()
		}
		if soonest := begun.Add(-renewRest * renewBurst); rested.Before(soonest) {
			rested = soonest
		}
		rested = rested.Add(renewRest * time.Since(begun))
		if !pause(min(max(time.Until(rested), heldTime), renewRestMost)) {
			return
		}
	}
}

// renewal is a lease that is renewed, and what becomes of it.
type renewal struct {
	*Lease
	view *core.View
	err  error
}

// due reports whether a lease needs to be renewed, since the program has forked so often.
func (l *Lease) due(forks uint64) bool {
	return l.heap && (!l.stale.Load() || l.frozen.Load()) && l.forks.Load() != forks
}

// renewAll renews the leases that need it. It reports whether there is more to do.
func (c *Client) renewAll(ctx context.Context) (again bool) {
	var due []renewal
	forks := c.forks()
	c.mu.Lock()
	for l := range c.leases {
		if l.due(forks) {
			if v := l.view.Value(); v != nil {
				due = append(due, renewal{Lease: l, view: v})
			}
		}
	}
	c.mu.Unlock()
	for batch := range batches(due) {
		c.renew(ctx, batch, forks)
		for _, r := range batch {
			switch {
			case ctx.Err() != nil:
				return false
			case r.err == nil, !c.stands(r.Lease): // it is why
			case errors.Is(r.err, errHeld):
				again = true
			case c.forks() != forks: // that may be why
				return true
			case errors.Is(r.err, core.ErrUnavailable) && c.going():
				return false
			default:
				r.frozen.Store(true) // until another fork
				r.turnStale(c.whyPrivate(r.Lease, r.view.Version(), r.err))
			}
		}
	}
	return again || c.forks() != forks
}

// renewDue renews leases before their views are looked at, and waits for those that are being renewed. What cannot be renewed stays
// as it is: the look, or renewAll, says why.
func (c *Client) renewDue(ctx context.Context, leases []*Lease, forks uint64) {
	due := make([]renewal, 0, len(leases))
	for _, l := range leases {
		if v := l.view.Value(); v != nil {
			due = append(due, renewal{Lease: l, view: v})
		}
	}
	for batch := range batches(due) {
		c.renew(ctx, batch, forks)
	}
	for _, r := range due {
		if renewal := r.behind.Load(); renewal != nil {
			select {
			case <-*renewal:
			case <-ctx.Done():
			}
		}
	}
}

// batches gives leases as they are renewed, the small ones first.
func batches(due []renewal) iter.Seq[[]renewal] {
	slices.SortFunc(due, func(a, b renewal) int { return cmp.Compare(a.view.NBytes(), b.view.NBytes()) })
	return func(yield func([]renewal) bool) {
		for left := due; len(left) > 0; {
			n, bytes := 1, left[0].view.NBytes()
			for n < min(len(left), renewMost) {
				if bytes += left[n].view.NBytes(); bytes > renewBytes {
					break
				}
				n++
			}
			if !yield(left[:n]) {
				return
			}
			left = left[n:]
		}
	}
}

// whyPrivate says why a view is not live, whose memory could not be mapped anew after a fork: err is the reason, unless the name had
// gone to another array before, as it has where the program has freed the memory.
func (c *Client) whyPrivate(l *Lease, version uint64, err error) (Staleness, error) {
	if c.superseded(l, version) {
		return StaleRebound, nil
	}
	if e, ok := errors.AsType[*core.Error](err); ok && e.Remote && errors.Is(e, core.ErrPointer) {
		return StaleRebound, err
	}
	return StaleFork, err
}

// stands reports whether a lease's view is open.
func (c *Client) stands(l *Lease) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.leases[l]
	return ok
}

// going reports whether the program is gone, of which another connection may hear a little later.
func (c *Client) going() bool {
	select {
	case <-c.Gone:
		return true
	case <-time.After(liveWait):
		return false
	}
}

// renew maps the memory of leases, which lies elsewhere now, where their views show it. The program had forked so often before. One that is
// being renewed already has errHeld.
func (c *Client) renew(ctx context.Context, batch []renewal, forks uint64) {
	ended := make(chan struct{})
	defer close(ended)
	var asked []contract.Renewal
	var settle []func(*contract.Renewal) // one for each
	for i := range batch {
		r := &batch[i]
		if !r.due(forks) {
			continue // it was renewed meanwhile
		}
		m, ok := r.memory.(*segmentMemory)
		if !ok || m.again(ctx) == nil {
			r.renewed(forks) // there is nothing to do, or the view is closed
			continue
		}
		defer m.Close() //nolint:errcheck // one use of several
		if !r.claim(&ended) {
			r.err = errHeld
			continue
		}
		finish := func(a *contract.Renewal) {
			if r.err = r.settle(ctx, m, a); r.err == nil {
				r.renewed(forks)
			}
		}
		if r.lease() == 0 {
			if err := c.leaseOffered(ctx, r.Lease, r.view); err != nil {
				finish(&contract.Renewal{Err: err})
				continue
			}
		}
		has := m.partOf(r.view.Layout()).segment.ID
		asked, settle = append(asked, contract.Renewal{Lease: r.lease(), Has: has, Writable: m.Writable()}), append(settle, finish)
	}
	if len(asked) > 0 {
		c.Program.Renew(ctx, asked)
	}
	for i := range asked {
		settle[i](&asked[i])
	}
}

// claim begins a renewal, which ends when ended is closed, unless one is under way.
func (l *Lease) claim(ended *chan struct{}) bool {
	before := l.behind.Load()
	if before != nil {
		select {
		case <-*before:
		default:
			return false
		}
	}
	return l.behind.CompareAndSwap(before, ended)
}

// settle does what the program says of a lease.
func (r *renewal) settle(ctx context.Context, m *segmentMemory, a *contract.Renewal) error {
	if a.File != nil {
		defer a.File.Close() //nolint:errcheck // the mapping does not need it, and nothing was written
	}
	err := a.Err
	if err == nil {
		err = m.move(ctx, a.Segment, a.Offset, r.view.Layout(), a.File)
	}
	unasked := a.Segment.ID == 0 && ctx.Err() == nil && !errors.Is(err, core.ErrUnavailable) // otherwise the program may have done it
	if err == nil || unasked {
		r.behind.Store(nil)
	}
	return err
}

// leaseOffered has the view of an offer stand on a lease, too: a fork takes all offers on the heap's memory away.
func (c *Client) leaseOffered(ctx context.Context, l *Lease, v *core.View) error {
	req := l.req
	req.NoWait, req.Copy = true, contract.CopyNever
	lease, err := c.Program.Lease(ctx, l.source.Name, req)
	if err != nil {
		return err
	}
	here, err := at(lease.Layout, v.Offset())
	if err != nil || lease.Route != contract.RouteSharedHeap || lease.Version != v.Version() || !here.Equal(v.Layout()) {
		c.releases.add(lease.ID)
		return violation("version %d of %q is another array now", v.Version(), l.source.Name)
	}
	c.mu.Lock()
	_, stands := c.leases[l]
	if stands {
		l.also.Store(uint64(lease.ID))
		c.ids[lease.ID] = struct{}{}
	}
	c.mu.Unlock()
	if !stands {
		c.releases.add(lease.ID)
		return &core.Error{Kind: core.ErrClosed}
	}
	return nil
}
