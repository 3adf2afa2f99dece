package leases

import (
	"context"
	"errors"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/offers"
)

// template is what all offers of a description have in common.
type template struct {
	index       int // of the name's entry in the table
	description uint64
	lease       contract.Lease
}

// use keeps the table mapped until the caller calls Unuse; nil if there is none.
func (c *Client) use() *offers.Reader {
	if c.Handoff == nil || c.Handoff.Offers == nil || !c.Handoff.Use() {
		return nil
	}
	return c.Handoff.Offers
}

// forks gives the table's Forks, or 0.
func (c *Client) forks() uint64 {
	if c.Handoff == nil {
		return 0
	}
	return c.Handoff.Forks()
}

// letGo gives a hold back, and reports whether the program is to be told.
func (c *Client) letGo(h offers.Hold) bool {
	table := c.use()
	if table == nil {
		return false
	}
	defer c.Handoff.Unuse()
	return table.Release(h)
}

// entry finds a name in the table.
func entry(table *offers.Reader, s *Source) (index int, ok bool) {
	if t := s.template.Load(); t != nil && table.Is(t.index, s.Name) {
		return t.index, true
	}
	names := table.Names()
	if s.absent.Load() == names+1 {
		return 0, false
	}
	index, ok = table.Find(s.Name)
	if !ok {
		s.absent.Store(names + 1)
		return 0, false
	}
	if t := s.template.Load(); t == nil || t.index != index {
		s.template.Store(&template{index: index})
	}
	return index, true
}

// read gives the entry of a name as it was at one moment. Between the look for the name and that moment the entry
// may have gone to another name. A name that has the entry afterwards, under the same Publication, had it then.
func read(table *offers.Reader, s *Source) (index int, e offers.Entry, ok bool) {
	index, ok = entry(table, s)
	if !ok {
		return 0, e, false
	}
	var entries [1]offers.Entry
	_, ok = table.Read(entries[:], index)
	return index, entries[0], ok && table.Is(index, s.Name)
}

// publication gives the number of the publication that a lease is on, or 0 if the table tells of another version;
// fixed says that the array is offered, so that the table tells of all changes.
func (c *Client) publication(s *Source, version uint64) (number uint64, fixed bool) {
	table := c.use()
	if table == nil {
		return 0, false
	}
	defer c.Handoff.Unuse()
	_, e, ok := read(table, s)
	if !ok || e.Version != version {
		return 0, false
	}
	return e.Publication, e.Ticket != 0
}

// describe gives what is known of an entry's offer, which is read anew only when it is described anew.
func (c *Client) describe(table *offers.Reader, s *Source, index int, e *offers.Entry) (*template, bool) {
	t := s.template.Load()
	if t != nil && t.index == index && t.description == e.Description {
		return t, true
	}
	text, ok := table.Body(index, e)
	if !ok {
		return nil, false
	}
	l, err := c.Handoff.Described(text, contract.Request{})
	if err != nil {
		return nil, false
	}
	t = &template{index: index, description: e.Description, lease: l}
	s.template.Store(t)
	return t, true
}

// takeOffer takes a view of what is offered under a name, without asking the program. Without an offer the
// view is nil, and so is the error.
func (c *Client) takeOffer(ctx context.Context, s *Source, req contract.Request) (*core.View, error) {
	if req.Writable {
		return nil, nil //nolint:nilnil // see above
	}
	table := c.use()
	if table == nil {
		return nil, nil //nolint:nilnil // see above
	}
	lease, l, ok := c.take(table, s, req)
	c.Handoff.Unuse()
	if !ok {
		return nil, nil //nolint:nilnil // see above
	}
	if err := c.add(lease); err != nil {
		return nil, err
	}
	v, err := c.view(ctx, lease, &l)
	if err != nil {
		return nil, errors.Join(err, c.end(lease))
	}
	return v, nil
}

// take takes an offer.
func (c *Client) take(table *offers.Reader, s *Source, req contract.Request) (*Lease, contract.Lease, bool) {
	const attempts = 8 // each ends because another version has come
	for range attempts {
		index, e, ok := read(table, s)
		if !ok || e.Ticket == 0 {
			break
		}
		t, ok := c.describe(table, s, index, &e)
		if !ok {
			continue
		}
		l, err := t.offered(&e)
		if err != nil || l.Check(req) != nil {
			break // the program says why
		}
		hold, ok := table.Take(index, &e)
		if ok {
			lease := &Lease{client: c, source: s, req: req, hold: hold, publication: e.Publication, heap: e.Forks != 0, fixed: true}
			lease.forks.Store(e.Forks)
			return lease, l, true
		}
		if hold.Ticket != 0 {
			c.releases.add(contract.LeaseID(hold.Ticket))
		}
		if e.Forks != 0 && e.Forks != table.Forks() {
			break
		}
	}
	return nil, contract.Lease{}, false
}

// offered gives the lease of an entry that has the template's description.
func (t *template) offered(e *offers.Entry) (contract.Lease, error) {
	l := t.lease
	segment, ok := l.Handle.(contract.Segment)
	if !ok {
		return l, errors.New("no memory")
	}
	segment.ID, segment.Size = contract.SegmentID(e.Segment), e.Size
	l.ID, l.Handle, l.Version, l.Published = 0, segment, e.Version, time.Unix(0, e.Published)
	var err error
	l.Layout, err = at(l.Layout, int(e.Offset))
	return l, err
}

// at gives the layout of the same array in memory where its first element is at an offset.
func at(l core.Layout, offset int) (core.Layout, error) {
	if l.Offset() == offset {
		return l, nil
	}
	spec := l.Spec()
	spec.Offset = offset
	return core.NewLayout(spec)
}

// current reports whether an offer that was taken is the newest version of its name, and forks have not taken
// its memory away.
func (c *Client) current(l *Lease) bool {
	table := c.use()
	if table == nil {
		return false
	}
	defer c.Handoff.Unuse()
	return (!l.heap || table.Forks() == l.forks.Load()) && c.newest(table, l)
}

// newest reports whether no newer version of what was leased is published.
func (c *Client) newest(table *offers.Reader, l *Lease) bool {
	t := l.source.template.Load()
	return l.publication != 0 && t != nil && table.Publication(t.index) == l.publication
}

// superseded reports whether the table tells of another version of what was leased, or of none any more.
func (c *Client) superseded(l *Lease, version uint64) bool {
	table := c.use()
	if table == nil {
		return false
	}
	defer c.Handoff.Unuse()
	if l.publication == 0 {
		return false
	}
	if _, found := entry(table, l.source); !found {
		return true
	}
	_, e, ok := read(table, l.source)
	return ok && e.Version != version
}

// Latest is Refresh without a question to the program if nothing was published since. The error wraps
// core.ErrNotFound if nothing is published under the name.
func (c *Client) Latest(ctx context.Context, s *Source, v *core.View, req contract.Request) (*core.View, bool, error) {
	var l *Lease
	if v != nil {
		var err error
		if l, err = c.of(s, v); err != nil {
			return v, false, err
		}
		req = l.req
	}
	table := c.use()
	if table == nil {
		return v, false, errNoTable()
	}
	newest := l != nil && c.newest(table, l)
	published := newest
	if !newest {
		_, published = entry(table, s)
	}
	c.Handoff.Unuse()
	switch {
	case newest:
		return v, false, nil
	case !published:
		return v, false, notPublished()
	}
	take := func() (*core.View, error) {
		now := req
		now.NoWait = true // unpublished meanwhile, it may never come again
		next, err := c.View(ctx, s, now)
		if errors.Is(err, core.ErrNotFound) {
			err = notPublished()
		}
		if err == nil && next.Version() == 0 { // unpublished meanwhile, and this is a variable
			_ = next.Close() // fails only if the memory was not mapped
			return nil, notPublished()
		}
		if err == nil {
			l, _ := next.Lender().(*Lease)
			l.req = req
		}
		return next, err
	}
	if v == nil {
		v, err := take()
		return v, err == nil, err
	}
	return c.replace(v, take)
}

func notPublished() *core.Error {
	return &core.Error{
		Kind: core.ErrNotFound, Err: errors.New("nothing is published under that name"),
		Remedy: "have the program call ndbridge.publish, or use Refresh for a variable",
	}
}

func errNoTable() *core.Error {
	return &core.Error{
		Kind: core.ErrUnsupported, Err: errors.New("the program and its host have no shared memory for versions"),
		Remedy: "leave handoff on, and use a Python program",
	}
}
