package leases

import (
	"context"
	"errors"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// Next waits for a version of the name that is newer than v's, and for any if v is nil. It closes v.
func (c *Client) Next(ctx context.Context, s *Source, v *core.View, req contract.Request) (*core.View, error) {
	if v != nil {
		l, err := c.of(s, v)
		if err != nil {
			return v, err
		}
		req = l.req
	}
	next, seen, err := c.newer(ctx, s, v, publicationOf(v), req)
	if next == nil && err == nil {
		next, err = c.await(ctx, s, v, seen, req)
	}
	switch {
	case err != nil:
		return v, err
	case v == nil:
		return next, nil
	default:
		return next, closeFor(next, v)
	}
}

// await is Next when the table tells of no other publication than seen.
func (c *Client) await(ctx context.Context, s *Source, v *core.View, seen uint64, req contract.Request) (next *core.View, err error) {
	there, w := c.watch(ctx, s)
	var over error
	for next == nil && err == nil && over == nil {
		over = c.wait(there, s, seen)
		if over == nil || finished(there) { // what the script published last is still given
			next, seen, err = c.newer(ctx, s, v, seen, req)
		}
	}
	known := w.end()
	if next == nil && err == nil {
		_, err = w.why(ctx, over, known)
	}
	return next, err
}

// newer takes a view of another version than v's if the publication is another one than seen, which it gives
// otherwise. A publication may be of the same version: one whose offer a fork has taken away, for instance. And
// of a lease that was granted while the table could not be read, nobody knows which publication it is of.
func (c *Client) newer(
	ctx context.Context, s *Source, v *core.View, seen uint64, req contract.Request,
) (next *core.View, publication uint64, err error) {
	table := c.use()
	if table == nil {
		return nil, 0, errNoTable()
	}
	index, ok := entry(table, s)
	if ok {
		publication = table.Publication(index)
	}
	c.Handoff.Unuse()
	if !ok || publication == seen && seen != 0 {
		return nil, seen, nil
	}
	next, err = c.View(ctx, s, req)
	if errors.Is(err, core.ErrNotFound) {
		return nil, seen, nil // unpublished meanwhile
	}
	if err != nil || !sameVersion(v, next) && next.Version() != 0 {
		return next, publication, err
	}
	return nil, publication, next.Close()
}

// sameVersion reports whether two views are of one version of a name.
func sameVersion(a, b *core.View) bool {
	return a != nil && b != nil && a.Version() == b.Version() && a.Published().Equal(b.Published())
}

// publicationOf gives the number of the publication that a view is of, or 0 if that is not known.
func publicationOf(v *core.View) uint64 {
	if v == nil {
		return 0
	}
	if l, ok := v.Lender().(*Lease); ok {
		return l.publication
	}
	return 0
}

// wait returns when there may be another publication than what was seen.
func (c *Client) wait(ctx context.Context, s *Source, seen uint64) error {
	table := c.use()
	if table == nil {
		return errNoTable()
	}
	defer c.Handoff.Unuse()
	sequence := table.Sequence()
	index, ok := entry(table, s)
	if !ok {
		return table.WaitAny(ctx, sequence, c.Spin)
	}
	return table.Wait(ctx, index, seen, c.Spin)
}

// waitAny returns when something may have been published after sequence.
func (c *Client) waitAny(ctx context.Context, sequence uint64) error {
	table := c.use()
	if table == nil {
		return errNoTable()
	}
	defer c.Handoff.Unuse()
	return table.WaitAny(ctx, sequence, c.Spin)
}
