package leases

import (
	"context"
	"errors"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/offers"
)

// RefreshAll is Refresh of several sources, with one question to the program for all that it has to be asked
// about. views has one for each source, or nil, and is changed. After an error each view stands that was not
// replaced; the number is that of the source concerned.
func (c *Client) RefreshAll(ctx context.Context, sources []*Source, views []*core.View, req core.Request) (changed bool, failed int, err error) {
	a := all{client: c, sources: sources, views: views, req: req}
	return a.refresh(ctx)
}

// all is one look at several names.
type all struct {
	client  *Client
	sources []*Source
	views   []*core.View
	req     core.Request

	changed bool
	fresh   []int // sources without a view
	again   []int // sources whose leases are looked at again: these
	leases  []*Lease
}

func (a *all) refresh(ctx context.Context) (changed bool, failed int, err error) {
	c := a.client
	var ids []core.LeaseID
	var reqs []core.Request
	for i, v := range a.views {
		if v == nil {
			a.fresh = append(a.fresh, i)
			continue
		}
		l, err := c.of(a.sources[i], v)
		switch {
		case err != nil:
			return false, i, err
		case l.fixed && c.current(l):
		case l.id == 0:
			a.fresh = append(a.fresh, i)
		default:
			a.again, a.leases = append(a.again, i), append(a.leases, l)
			ids, reqs = append(ids, l.id), append(reqs, l.req)
		}
	}
	if failed, err := a.lookAgain(ctx, ids, reqs); err != nil {
		return a.changed, failed, err
	}
	failed, err = a.take(ctx)
	return a.changed, failed, err
}

// lookAgain refreshes the views that stand on leases.
func (a *all) lookAgain(ctx context.Context, ids []core.LeaseID, reqs []core.Request) (failed int, err error) {
	if len(ids) == 0 {
		return 0, nil
	}
	c, results, forks := a.client, make([]handoff.Look, len(ids)), a.client.forks()
	if c.Handoff != nil {
		if err := broken(c.Handoff.Refresh(ctx, ids, reqs, false, results)); err != nil && !errors.Is(err, handoff.ErrAsk) {
			return a.again[0], err
		}
	}
	for n, i := range a.again {
		next, changed, e := c.apply(ctx, a.views[i], a.leases[n], &results[n], forks)
		a.views[i], a.changed = next, a.changed || changed
		if e != nil && err == nil {
			failed, err = i, e
		}
	}
	return failed, err
}

// take takes views that were not there, or are of offers that are no longer current.
func (a *all) take(ctx context.Context) (failed int, err error) {
	c := a.client
	left := a.fresh[:0]
	for _, i := range a.fresh {
		v, e := a.one(ctx, i)
		switch {
		case e == nil && v == nil:
			left = append(left, i)
			continue
		case e == nil:
			e = a.put(i, v)
		}
		if e != nil && err == nil {
			failed, err = i, e
		}
	}
	names, results, forks := make([]string, 0, len(left)), make([]handoff.Look, len(left)), c.forks()
	for _, i := range left {
		names = append(names, a.sources[i].Name)
	}
	if len(left) > 0 {
		if err := c.askAll(ctx, names, a.req, results); err != nil && !errors.Is(err, handoff.ErrAsk) {
			return left[0], err
		}
	}
	for n, i := range left {
		var v *core.View
		var e error
		if results[n].Status == handoff.Changed {
			v, e = c.open(ctx, a.sources[i], a.req, results[n].Lease, forks)
		} else if err == nil {
			v, e = c.ask(ctx, a.sources[i], a.req)
		}
		if e == nil && v != nil {
			e = a.put(i, v)
		}
		if e != nil && err == nil {
			failed, err = i, e
		}
	}
	return failed, err
}

// one takes a view without asking the program together with others: nil if that has to be.
func (a *all) one(ctx context.Context, i int) (*core.View, error) {
	if v := a.views[i]; v != nil {
		if l, ok := v.Lender().(*Lease); ok {
			return a.client.View(ctx, a.sources[i], l.req) // as it was asked for
		}
	}
	return a.client.takeOffer(ctx, a.sources[i], a.req)
}

// put gives a source another view.
func (a *all) put(i int, v *core.View) error {
	before := a.views[i]
	a.views[i], a.changed = v, true
	if before == nil {
		return nil
	}
	return before.Close()
}

// NextAll waits for a version newer than that of the view of any source, or for any version where there is no
// view, and then for views of all sources that are of one moment: so that what the program has published at
// once comes at once. The number is that of the source that the error concerns, or negative.
func (c *Client) NextAll(ctx context.Context, sources []*Source, views []*core.View, req core.Request) (failed int, err error) {
	a := all{client: c, sources: sources, views: views, req: req}
	done, sequence, failed, err := a.catchUp(ctx)
	if done || err != nil {
		return failed, err
	}
	there, w := c.watch(ctx, sources...)
	var over error
	for !done && err == nil && over == nil {
		over = c.waitAny(there, sequence)
		if over == nil || finished(there) { // what the script published last is still given
			done, sequence, failed, err = a.catchUp(ctx)
		}
	}
	known := w.end()
	if !done && err == nil {
		return w.why(ctx, over, known)
	}
	return failed, err
}

// catchUp takes views of the newest versions. done says that one was newer than the view before, and that all are of one
// moment; otherwise what is waited for comes after sequence.
func (a *all) catchUp(ctx context.Context) (done bool, sequence uint64, failed int, err error) {
	for {
		table := a.client.use()
		if table == nil {
			return false, 0, none, errNoTable()
		}
		sequence, behind, complete := a.client.behind(table, a.sources, a.views)
		a.client.Handoff.Unuse()
		if !complete || len(behind) == 0 {
			return complete && a.changed, sequence, none, nil
		}
		for _, i := range behind {
			before := a.views[i]
			v, changed, err := a.client.Latest(ctx, a.sources[i], before, a.req)
			if errors.Is(err, core.ErrNotFound) {
				break // unpublished meanwhile
			}
			if err != nil {
				return false, 0, i, err
			}
			a.views[i], a.changed = v, a.changed || changed && !sameVersion(before, v)
		}
	}
}

// behind gives the sources whose views are not of the newest version, as it was at one moment. complete is
// false if not all are published.
func (c *Client) behind(table *offers.Reader, sources []*Source, views []*core.View) (sequence uint64, behind []int, complete bool) {
	sequence = table.Sequence()
	indexes := make([]int, len(sources))
	for i, s := range sources {
		var ok bool
		if indexes[i], ok = entry(table, s); !ok {
			return sequence, nil, false
		}
	}
	entries := make([]offers.Entry, len(sources))
	moment, ok := table.Read(entries, indexes...)
	for i, s := range sources {
		if !table.Is(indexes[i], s.Name) {
			return sequence, nil, false // it has gone since; what has come since is after sequence, too
		}
		if entries[i].Publication == 0 {
			ok = false
		}
		if publicationOf(views[i]) != entries[i].Publication {
			behind = append(behind, i)
		}
	}
	return moment, behind, ok
}
