package leases

import (
	"context"
	"errors"
	"slices"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/handoff"
	"github.com/ndbridge/ndbridge/internal/offers"
)

// Group is several names that are looked at together. Its methods exclude each other: the caller sees to that.
type Group struct {
	client  *Client
	Sources []*Source
	Views   []*core.View // one for each source, or nil
	Errs    []error      // what became of each at the last Refresh

	req     contract.Request
	changed bool

	// The memory of one look.
	fresh    []int // sources without a view
	again    []int // sources whose leases are looked at again: these
	leases   []*Lease
	ids      []contract.LeaseID
	requests []contract.Request
	results  []handoff.Look
}

// Group makes a group without views.
func (c *Client) Group(sources []*Source) *Group {
	return &Group{client: c, Sources: sources, Views: make([]*core.View, len(sources))}
}

// Refresh is that of several sources, with one question to the program for all that it has to be asked about. After
// an error each view stands that was not replaced; the number is that of the first source that has one. If nothing has
// changed it makes no garbage.
func (g *Group) Refresh(ctx context.Context, req contract.Request) (changed bool, failed int, err error) {
	c := g.client
	g.req, g.changed = req, false
	g.fresh, g.again, g.leases, g.ids, g.requests = g.fresh[:0], g.again[:0], g.leases[:0], g.ids[:0], g.requests[:0]
	g.Errs = slices.Grow(g.Errs[:0], len(g.Sources))[:len(g.Sources)]
	clear(g.Errs)
	for i, v := range g.Views {
		if v == nil {
			g.fresh = append(g.fresh, i)
			continue
		}
		l, err := c.of(g.Sources[i], v)
		switch {
		case err != nil:
			g.Errs[i] = err
		case l.fixed && c.current(l):
		case l.id == 0:
			g.fresh = append(g.fresh, i)
		default:
			g.again, g.leases = append(g.again, i), append(g.leases, l)
			g.ids, g.requests = append(g.ids, l.id), append(g.requests, l.req)
		}
	}
	g.lookAgain(ctx)
	g.take(ctx)
	for i, err := range g.Errs {
		if err != nil {
			return g.changed, i, err
		}
	}
	return g.changed, none, nil
}

// lookAgain refreshes the views that stand on leases.
func (g *Group) lookAgain(ctx context.Context) {
	if len(g.ids) == 0 {
		return
	}
	c, forks := g.client, g.client.forks()
	g.results = slices.Grow(g.results[:0], len(g.ids))[:len(g.ids)]
	clear(g.results)
	if err := c.look(ctx, g.leases, g.ids, g.requests, g.results, forks); err != nil {
		g.fail(g.again, err)
		return
	}
	for n, i := range g.again {
		next, changed, err := c.apply(ctx, g.Views[i], g.leases[n], &g.results[n], forks)
		g.Views[i], g.Errs[i], g.changed = next, err, g.changed || changed
	}
}

// fail gives sources an error.
func (g *Group) fail(sources []int, err error) {
	for _, i := range sources {
		g.Errs[i] = err
	}
}

// take takes views that were not there, or are of offers that are no longer current.
func (g *Group) take(ctx context.Context) {
	c := g.client
	left := g.fresh[:0]
	for _, i := range g.fresh {
		v, err := g.one(ctx, i)
		switch {
		case err == nil && v == nil:
			left = append(left, i)
		case err == nil:
			g.Errs[i] = g.put(i, v)
		default:
			g.Errs[i] = err
		}
	}
	if len(left) == 0 {
		return
	}
	names, results, forks := make([]string, 0, len(left)), make([]handoff.Look, len(left)), c.forks()
	for _, i := range left {
		names = append(names, g.Sources[i].Name)
	}
	if err := c.askAll(ctx, names, g.req, results); err != nil && !errors.Is(err, handoff.ErrAsk) {
		g.fail(left, err)
		return
	}
	for n, i := range left {
		var v *core.View
		var err error
		if results[n].Status == handoff.Changed {
			v, err = c.open(ctx, g.Sources[i], g.req, *results[n].Lease, forks)
		} else {
			v, err = c.ask(ctx, g.Sources[i], g.req)
		}
		if err == nil {
			err = g.put(i, v)
		}
		g.Errs[i] = err
	}
}

// one takes a view without asking the program together with others: nil if that has to be.
func (g *Group) one(ctx context.Context, i int) (*core.View, error) {
	if v := g.Views[i]; v != nil {
		if l, ok := v.Lender().(*Lease); ok {
			return g.client.View(ctx, g.Sources[i], l.req) // as it was asked for
		}
	}
	return g.client.takeOffer(ctx, g.Sources[i], g.req)
}

// put gives a source another view.
func (g *Group) put(i int, v *core.View) error {
	before := g.Views[i]
	g.Views[i], g.changed = v, true
	if before == nil {
		return nil
	}
	return closeFor(v, before)
}

// Next waits for a version newer than that of the view of any source, or for any version where there is no
// view, and then for views of all sources that are of one moment: so that what the program has published at
// once comes at once. The number is that of the source that the error concerns, or negative.
func (g *Group) Next(ctx context.Context, req contract.Request) (failed int, err error) {
	c := g.client
	g.req, g.changed = req, false
	done, sequence, failed, err := g.catchUp(ctx)
	if done || err != nil {
		return failed, err
	}
	there, w := c.watch(ctx, g.Sources...)
	var over error
	for !done && err == nil && over == nil {
		over = c.waitAny(there, sequence)
		if over == nil || finished(there) { // what the script published last is still given
			done, sequence, failed, err = g.catchUp(ctx)
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
func (g *Group) catchUp(ctx context.Context) (done bool, sequence uint64, failed int, err error) {
	for again := false; ; again = true {
		if again && ctx.Err() != nil { // the program may publish faster than views of all can be taken
			return false, 0, none, &core.Error{Kind: ctx.Err(), Err: context.Cause(ctx)}
		}
		table := g.client.use()
		if table == nil {
			return false, 0, none, errNoTable()
		}
		sequence, behind, complete := g.client.behind(table, g.Sources, g.Views)
		g.client.Handoff.Unuse()
		if !complete || len(behind) == 0 {
			return complete && g.changed, sequence, none, nil
		}
		for _, i := range behind {
			before := g.Views[i]
			v, changed, err := g.client.Latest(ctx, g.Sources[i], before, g.req)
			if errors.Is(err, core.ErrNotFound) {
				break // unpublished meanwhile
			}
			if err != nil {
				return false, 0, i, err
			}
			g.Views[i], g.changed = v, g.changed || changed && !sameVersion(before, v)
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
