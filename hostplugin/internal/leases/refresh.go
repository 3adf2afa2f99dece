package leases

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/handoff"
)

// of gives the lease that a view stands on, if it is open and one of this client's for the source.
func (c *Client) of(s *Source, v *core.View) (*Lease, error) {
	l, ok := v.Lender().(*Lease)
	if !ok && v.Name() == s.Name {
		_, _, release, closed := v.Acquire()
		if closed != nil {
			return nil, closed
		}
		release()
		return nil, &core.Error{
			Kind: core.ErrConfig, Err: fmt.Errorf("a view of %q that was derived from the source's, or is of other origin", v.Name()),
			Remedy: "pass the view that the source has given, and derive again from what comes back",
		}
	}
	if !ok || l.client != c || l.source.Name != s.Name {
		return nil, &core.Error{
			Kind: core.ErrConfig, Err: fmt.Errorf("a view of %q, which is not this source's", v.Name()),
			Remedy: "pass a view that the same source, or a source of the same name and session, has given",
		}
	}
	if !l.followed.Load() { // a store takes longer, at each look
		l.followed.Store(true)
	}
	return l, nil
}

// Refresh looks at the name of a view again. If it leads to the same memory, the result is v, and changed is
// false; otherwise it is a new view, and v is closed. Without v it is View. After an error v stands.
func (c *Client) Refresh(ctx context.Context, s *Source, v *core.View, req contract.Request) (_ *core.View, changed bool, err error) {
	if v == nil {
		v, err = c.View(ctx, s, req)
		return v, err == nil, err
	}
	l, err := c.of(s, v)
	if err != nil {
		return v, false, err
	}
	switch {
	case l.fixed && c.current(l):
		return v, false, nil
	case l.id == 0:
		return c.replace(v, func() (*core.View, error) { return c.View(ctx, s, l.req) })
	}
	var results [1]handoff.Look
	forks := c.forks()
	leases, ids, reqs := [1]*Lease{l}, [1]contract.LeaseID{l.id}, [1]contract.Request{l.req}
	if err := c.look(ctx, leases[:], ids[:], reqs[:], results[:], forks); err != nil {
		return v, false, err
	}
	return c.apply(ctx, v, l, &results[0], forks)
}

// look has the mailbox look at leases again: those that gRPC is to be asked about have no answer. Before that it renews those that a fork
// has made private: otherwise the program would be asked about each, and share the array in other memory.
func (c *Client) look(
	ctx context.Context, leases []*Lease, ids []contract.LeaseID, requests []contract.Request, results []handoff.Look, forks uint64,
) error {
	if c.Handoff == nil {
		return nil
	}
	ask := func(leases []*Lease, ids []contract.LeaseID, requests []contract.Request, results []handoff.Look) error {
		copied := slices.ContainsFunc(leases, func(l *Lease) bool { return l.copied })
		err := broken(c.Handoff.Refresh(ctx, ids, requests, false, copied, results))
		if errors.Is(err, handoff.ErrAsk) {
			return nil
		}
		return err
	}
	if err := ask(leases, ids, requests, results); err != nil {
		return err
	}
	var private []int
	for i, l := range leases {
		if results[i].Status == handoff.Ask && l.due(forks) {
			private = append(private, i)
		}
	}
	if len(private) == 0 {
		return nil
	}
	due, dueIDs, reqs, looks := pick(leases, private), pick(ids, private), pick(requests, private), make([]handoff.Look, len(private))
	c.renewDue(ctx, due, forks)
	if ask(due, dueIDs, reqs, looks) == nil { // otherwise gRPC says what is wrong
		for n, i := range private {
			results[i] = looks[n]
		}
	}
	return nil
}

// pick gives some of all.
func pick[T any](all []T, some []int) []T {
	picked := make([]T, 0, len(some))
	for _, i := range some {
		picked = append(picked, all[i])
	}
	return picked
}

// apply does what the mailbox says of a lease.
func (c *Client) apply(ctx context.Context, v *core.View, l *Lease, look *handoff.Look, forks uint64) (*core.View, bool, error) {
	switch look.Status {
	case handoff.Unchanged:
		return c.unchanged(ctx, v, l, forks)
	case handoff.Fenced:
		l.renewed(forks)
		return v, false, c.refence(ctx, l, look.Fence)
	case handoff.Changed:
		return c.replace(v, func() (*core.View, error) { return c.open(ctx, l.source, l.req, *look.Lease, forks) })
	default:
		return c.askAgain(ctx, v, l)
	}
}

// unchanged is what comes of a view whose lease is on the array's memory.
func (c *Client) unchanged(ctx context.Context, v *core.View, l *Lease, forks uint64) (*core.View, bool, error) {
	if renewal := l.behind.Load(); renewal != nil { // the lease is, and the view is not yet
		select {
		case <-*renewal:
		case <-ctx.Done():
			return v, false, &core.Error{Kind: ctx.Err(), Err: context.Cause(ctx)}
		}
	}
	if l.behind.Load() != nil {
		return c.replace(v, func() (*core.View, error) { return c.View(ctx, l.source, l.req) })
	}
	l.renewed(forks)
	return v, false, nil
}

// askAgain is Refresh by gRPC.
func (c *Client) askAgain(ctx context.Context, v *core.View, l *Lease) (*core.View, bool, error) {
	forks := c.forks()
	lease, changed, err := c.Program.Refresh(ctx, l.id)
	switch {
	case errors.Is(err, core.ErrUnsupported):
		return c.compare(ctx, v, l)
	case err != nil:
		if !l.copied && handoff.Elsewhere(err) { // as Live would find out, unless the program is too busy then; the error says it
			l.stale.Store(true)
		}
		return v, false, err
	case !changed && l.onGPU:
		l.renewed(forks)
		return v, false, c.refence(ctx, l, lease.Fence)
	case !changed:
		return c.unchanged(ctx, v, l, forks)
	}
	if err := lease.Check(l.req); err != nil {
		c.releases.add(lease.ID)
		return v, false, &core.Error{Kind: core.ErrProtocol, Err: err}
	}
	return c.replace(v, func() (*core.View, error) { return c.open(ctx, l.source, l.req, lease, forks) })
}

// compare is Refresh of a program that cannot look again: a new lease may be on the same memory.
func (c *Client) compare(ctx context.Context, v *core.View, l *Lease) (*core.View, bool, error) {
	next, err := c.ask(ctx, l.source, l.req)
	if err != nil {
		return v, false, err
	}
	other, _ := next.Lender().(*Lease) // it always is one
	same := !next.Copied() && next.Layout().Equal(v.Layout()) && next.Version() == v.Version() &&
		other.memory == l.memory && !l.onGPU
	if same {
		return v, false, next.Close()
	}
	return c.replace(v, func() (*core.View, error) { return next, nil })
}

// replace closes v when there is another view in its place.
func (c *Client) replace(v *core.View, take func() (*core.View, error)) (*core.View, bool, error) {
	next, err := take()
	if err != nil {
		return v, false, err
	}
	return next, true, closeFor(next, v)
}

// closeFor closes a view that has found a successor.
func closeFor(next, v *core.View) error {
	if l, ok := next.Lender().(*Lease); ok {
		l.followed.Store(true)
	}
	return v.Close()
}

// renewed notes that the program has said, when it had forked so often, that a lease's memory is the array's: it may have
// mapped something over another array.
func (l *Lease) renewed(forks uint64) {
	if l.forks.Load() != forks {
		l.forks.Store(forks)
		l.stale.Store(false)
		l.frozen.Store(false)
	}
}

// refence gives a view's memory the fence of now.
func (c *Client) refence(ctx context.Context, l *Lease, fence contract.Fence) error {
	return c.GPU.Refence(ctx, l.memory, fence)
}

// Live implements [core.Lender].
func (l *Lease) Live() bool {
	c := l.client
	if l.stale.Load() {
		return false
	}
	select {
	case <-c.Gone:
		return false
	default:
	}
	if l.heap && c.forks() != l.forks.Load() {
		c.Forked()
		return false
	}
	if l.lease() == 0 && !c.current(l) {
		l.turnStale(StaleRebound, nil)
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), liveWait)
	defer cancel()
	switch changed := c.changed(ctx, l); {
	case l.heap && c.forks() != l.forks.Load(): // by now, which may be why
		c.Forked()
		return false
	case changed:
		l.turnStale(StaleRebound, nil)
	}
	return !l.stale.Load()
}

// Left reports whether a view of memory that is shared shows what a program that is gone has left there: not if it has forked since the host
// had its last answer about the memory, which may have been private to it then.
func (l *Lease) Left() bool {
	return !l.copied && !l.stale.Load() && !l.due(l.client.forks())
}

// changed reports whether the program says that the name of a lease leads to other memory.
func (c *Client) changed(ctx context.Context, l *Lease) bool {
	if c.Handoff != nil {
		var results [1]handoff.Look
		ids, reqs := [1]contract.LeaseID{l.lease()}, [1]contract.Request{l.req}
		if ids[0] == 0 {
			ids[0] = contract.LeaseID(l.hold.Ticket)
		}
		if c.Handoff.Refresh(ctx, ids[:], reqs[:], true, false, results[:]) == nil && results[0].Status != handoff.Ask {
			return results[0].Status == handoff.Changed
		}
	}
	if l.lease() == 0 {
		return false // what the table tells is all that is known
	}
	// To look again waits for a name that is not there, so it is asked for first.
	req := l.req
	req.NoWait, req.Copy = true, contract.CopyNever
	probe, err := c.Program.Lease(ctx, l.source.Name, req)
	if err != nil {
		return handoff.Elsewhere(err)
	}
	c.releases.add(probe.ID)
	lease, changed, err := c.Program.Refresh(ctx, l.lease())
	if err == nil && changed {
		c.releases.add(lease.ID) // it was not asked for
	}
	return err == nil && changed || handoff.Elsewhere(err)
}

// turnStale says once that a view is not live any more.
func (l *Lease) turnStale(why Staleness, err error) {
	if !l.stale.Swap(true) && l.client.Stale != nil {
		l.client.Stale(l.source.Name, l.followed.Load(), why, err)
	}
}

// lease gives the ID by which the program is asked about the array; 0 for an offer that stands as such.
func (l *Lease) lease() contract.LeaseID {
	if l.id != 0 {
		return l.id
	}
	return contract.LeaseID(l.also.Load())
}

// Object gives the ID by which the program finds the object that a view was taken of. ok is false if there is none: the lease
// is nil, or another program's, or on what a function has returned, or on a version that is not the newest.
func (c *Client) Object(l *Lease) (id contract.LeaseID, ok bool) {
	if l == nil || l.client != c || l.unnamed {
		return 0, false
	}
	if id := l.lease(); id != 0 {
		return id, true
	}
	table := c.use()
	if table == nil {
		return 0, false
	}
	defer c.Handoff.Unuse()
	return contract.LeaseID(l.hold.Ticket), c.newest(table, l)
}

// Has reports whether a lease is on an array of this program.
func (c *Client) Has(l *Lease) bool { return l != nil && l.client == c }
