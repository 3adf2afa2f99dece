package leases

import (
	"cmp"
	"context"
	"errors"
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

// renewAll renews the leases that need it, the small ones first. It reports whether there is more to do.
func (c *Client) renewAll(ctx context.Context) (again bool) {
	type due struct {
		*Lease
		view *core.View
	}
	var leases []due
	forks := c.forks()
	c.mu.Lock()
	for l := range c.leases {
		if l.heap && (!l.stale.Load() || l.frozen.Load()) && l.forks.Load() != forks {
			if v := l.view.Value(); v != nil {
				leases = append(leases, due{l, v})
			}
		}
	}
	c.mu.Unlock()
	slices.SortFunc(leases, func(a, b due) int { return cmp.Compare(a.view.NBytes(), b.view.NBytes()) })
	for _, l := range leases {
		switch err := c.renew(ctx, l.Lease, l.view); {
		case ctx.Err() != nil:
			return false
		case err == nil:
			l.renewed(forks)
		case !c.stands(l.Lease): // it is why
		case errors.Is(err, errHeld):
			again = true
		case c.forks() != forks: // that may be why
			return true
		case errors.Is(err, core.ErrUnavailable) && c.going():
			return false
		default:
			l.frozen.Store(true) // until another fork
			l.turnStale(c.whyPrivate(l.Lease, l.view.Version(), err))
		}
	}
	return again || c.forks() != forks
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

// renew maps the memory of a lease, which lies elsewhere now, where the view shows it.
func (c *Client) renew(ctx context.Context, l *Lease, v *core.View) error {
	m, ok := l.memory.(*segmentMemory)
	if !ok || m.again(ctx) == nil {
		return nil // the view is closed
	}
	defer m.Close() //nolint:errcheck // one use of several
	ended := make(chan struct{})
	defer close(ended)
	l.behind.Store(&ended)
	segment, offset, err := c.where(ctx, l, v)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, core.ErrUnavailable) { // otherwise the program may have done it
			l.behind.Store(nil)
		}
		return err
	}
	if err := m.move(ctx, segment, offset, v.Layout()); err != nil {
		return err
	}
	l.behind.Store(nil)
	return nil
}

// where has the program say where the memory of a lease lies now.
func (c *Client) where(ctx context.Context, l *Lease, v *core.View) (s contract.Segment, offset int, err error) {
	if id := l.lease(); id != 0 {
		return c.Program.Renew(ctx, id)
	}
	return c.whereOffered(ctx, l, v)
}

// whereOffered is where for an offer: a fork takes all offers on the heap's memory away, so the view comes to stand on a lease, too.
func (c *Client) whereOffered(ctx context.Context, l *Lease, v *core.View) (s contract.Segment, offset int, err error) {
	req := l.req
	req.NoWait, req.Copy = true, contract.CopyNever
	lease, err := c.Program.Lease(ctx, l.source.Name, req)
	if err != nil {
		return s, 0, err
	}
	s, ok := lease.Handle.(contract.Segment)
	here, err := at(lease.Layout, v.Offset())
	if err != nil || !ok || lease.Route != contract.RouteSharedHeap || lease.Version != v.Version() || !here.Equal(v.Layout()) {
		c.releases.add(lease.ID)
		return s, 0, violation("version %d of %q is another array now", v.Version(), l.source.Name)
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
		return s, 0, &core.Error{Kind: core.ErrClosed}
	}
	return s, lease.Layout.Offset(), nil
}
