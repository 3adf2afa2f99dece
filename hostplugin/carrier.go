package hostplugin

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/internal/leases"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/gpu/imports"
)

// carrier is a request with the arrays that it carries. It is used again.
type carrier struct {
	session  *Session
	ctx      context.Context //nolint:containedctx // of the one call
	request  calls.Request
	releases []func()
	users    atomic.Int32                    // who made it, and whoever still looks at the request
	add      func(v *core.View) (int, error) // is array
	over     func()                          // is done
}

// maxKeptForm is how large a form may be whose memory is used again, in bytes.
const maxKeptForm = 64 << 10

// carrier gives one without a request. What its views will show stays until done is called, and until the request that was sent is over.
func (s *Session) carrier(ctx context.Context) *carrier {
	c, ok := s.carriers.Get().(*carrier)
	if !ok {
		c = &carrier{session: s}
		c.add, c.over = c.array, c.done
	}
	c.ctx = ctx
	c.users.Store(1)
	return c
}

// sent gives the request, to be sent once.
func (c *carrier) sent() *calls.Request {
	c.users.Add(1)
	c.request.Over = c.over
	return &c.request
}

// done is called once by who made it.
func (c *carrier) done() {
	if c.users.Add(-1) > 0 {
		return
	}
	for _, release := range c.releases {
		release()
	}
	clear(c.releases)
	clear(c.request.Arrays)
	form := c.request.Values[:0]
	if cap(form) > maxKeptForm {
		form = nil
	}
	c.request = calls.Request{Ended: c.request.Ended[:0], Arrays: c.request.Arrays[:0], Values: form}
	c.ctx, c.releases = nil, c.releases[:0]
	c.session.carriers.Put(c)
}

// output adds the view that the result is written into.
func (c *carrier) output(v *core.View) error {
	const what = "the array for the result"
	if v == nil {
		return &core.Error{Kind: core.ErrConfig, Err: errors.New(what + " is nil")}
	}
	if !v.Writable() || v.Layout().ReadOnly() {
		return &core.Error{Kind: core.ErrReadOnly, Err: errors.New(what + " cannot be written to"), Remedy: "pass an array of Session.New"}
	}
	m, _, release, err := v.Hold()
	if err != nil {
		return err
	}
	release()
	if m != nil && ownFile(m) == nil {
		return &core.Error{Kind: core.ErrUnsupported, Err: errors.New(what + " is not the host's"), Remedy: "pass an array of Session.New"}
	}
	_, err = c.array(v)
	return err
}

// array adds a view to the request, and gives its index there.
func (c *carrier) array(v *core.View) (int, error) {
	m, _, release, err := v.Hold()
	if err != nil {
		return 0, err
	}
	a := calls.Argument{Layout: v.Layout(), ReadOnly: !v.Writable()}
	if onGPU, ok := m.(*imports.Memory); ok {
		if err := onGPU.Settle(c.ctx); err != nil {
			release()
			return 0, err
		}
	}
	own := ownFile(m)
	lease, _ := v.Lender().(*leases.Lease)
	object, owns := c.session.leases.Object(lease)
	switch {
	case m == nil: // no elements
		a.Segment, err = c.session.space.Empty(c.ctx)
		a.Word = a.Segment
	case own != nil:
		a.Segment, err = c.session.space.Segment(c.ctx, own, v.Writable())
		a.Word = a.Segment
	case owns:
		a.Lease = object
	default:
		var over func()
		if onGPU, _ := m.(*imports.Memory); onGPU != nil {
			release, err = c.reading(onGPU, lease, release)
		}
		if err == nil {
			over, err = c.lend(v, m, &a, release)
		}
		if err == nil {
			release = over
		}
	}
	c.releases = append(c.releases, release)
	if err != nil {
		return 0, err
	}
	c.request.Arrays = append(c.request.Arrays, a)
	return len(c.request.Arrays) - 1, nil
}

// reading begins a read of another program's memory on a GPU, whose work before is done then. The function that it returns, also with an
// error, ends it, and calls release.
func (c *carrier) reading(m *imports.Memory, l *leases.Lease, release func()) (func(), error) {
	if c.session.leases.Has(l) {
		return release, &core.Error{
			Kind: core.ErrUnsupported, Err: errors.New("memory of a GPU of the program's own, and no object that could be passed"),
			Remedy: "pass a view of a name, or copy it into an array of Session.NewOn",
		}
	}
	end, err := m.Read(c.ctx)
	if err != nil {
		return release, err
	}
	return func() { end(); release() }, nil
}

// lend lends the program memory that is mapped here: of another program, or its own, which has no object for the view.
// over takes the place of release, which gives the memory back.
func (c *carrier) lend(v *core.View, m core.Memory, a *calls.Argument, release func()) (over func(), err error) {
	file, layout, err := leases.Lendable(c.ctx, m, v)
	if file == nil && err == nil {
		err = &core.Error{
			Kind: core.ErrUnsupported, Err: fmt.Errorf("memory of %v is not the host's", v.Device()),
			Remedy: "copy it into an array of Session.New, and pass that",
		}
	}
	if err == nil {
		a.Layout = layout
		a.Segment, err = c.session.space.Segment(c.ctx, file, v.Writable())
	}
	if err == nil {
		a.Word, over, err = c.session.space.Lend(c.ctx, release)
	}
	return over, err
}
