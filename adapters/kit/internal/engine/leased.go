package engine

import (
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/calls"
)

// leased gives the program's own object that a lease is on.
func (w *worker) leased(g *py.GIL, a *calls.Argument) (py.Object, error) {
	s := w.leasing.get(a.Lease)
	if s == nil {
		if _, pub := w.published.OfOffer(a.Lease); pub != nil {
			g.Share(pub.Object)
			return pub.Object, nil
		}
		return 0, &core.Error{
			Kind: core.ErrUnsupported, Err: errors.New("the view is of what is not leased any more"),
			Remedy: "pass a view of a name, or an array of Session.New",
		}
	}
	t, err := w.Program.find(g, s.path)
	if err != nil {
		return 0, notFound(err)
	}
	defer t.close()
	if !s.lease.Layout.Equal(a.Layout) && a.Layout.Device() == s.lease.Layout.Device() {
		return 0, &core.Error{
			Kind: core.ErrUnsupported, Err: fmt.Errorf("the view shows a part of %s", s.path), Remedy: "pass the whole view, and take the part in the function",
		}
	}
	if err := w.stands(g, s, &t); err != nil {
		return 0, err
	}
	return w.whole(g, &t)
}

// stands reports by an error that a name leads to another array than the one that was leased.
func (p *Program) stands(g *py.GIL, s *standing, t *target) error {
	other := &core.Error{
		Kind: core.ErrUnsupported, Err: fmt.Errorf("%s leads to another array now than the view shows", s.path),
		Remedy: "refresh the view, or copy it into an array of Session.New and pass that",
	}
	if !s.publication.Is(t.publication) {
		return other
	}
	if s.addr == 0 || s.publication != nil || s.watch != nil && g.Same(s.watch) {
		return nil
	}
	if s.spared { // to read the array would have the framework copy it again, to other memory
		return other
	}
	f, plan, err := p.plan(g, t.object)
	if err != nil {
		return other
	}
	rd := p.reader(f, &plan)
	r, err := rd.read(g, t.object)
	if err != nil {
		return other
	}
	defer r.drop(g)
	if r.array.Addr != s.addr || !alongside(r.array.Layout, s.described) {
		return other
	}
	return nil
}
