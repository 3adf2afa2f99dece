package hostplugin

import (
	"context"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/internal/lessor"
	"github.com/ndbridge/ndbridge/hostplugin/internal/memory"
)

// Source is an array of a program that is looked at again and again. All methods are safe for concurrent
// use. It needs no Close.
type Source struct {
	session *Session
	name    string
	source  *lessor.Source
	last    memory.Last
}

// Source prepares a name for many views: it travels to the program once, and what the program says
// about the array is read anew only when it has changed. The array need not exist yet. The error wraps
// core.ErrUnavailable or core.ErrClosed.
func (s *Session) Source(name string) (*Source, error) {
	if err := s.alive("source", name); err != nil {
		return nil, err
	}
	return &Source{session: s, name: name, source: s.lessor.Source(name)}, nil
}

// Name is the name that the source was made of.
func (s *Source) Name() string { return s.name }

// View gives a view of what the name means now, as [Session.View] does.
func (s *Source) View(ctx context.Context, opts ...ViewOption) (*core.View, error) {
	v := new(core.View)
	if err := s.Into(ctx, v, opts...); err != nil {
		return nil, err
	}
	return v, nil
}

// Into is View for those who look all the time: it opens v, which is the zero View or was closed, instead
// of making one. When the program's answer is the same as the last time, and its memory is still mapped
// here, that and v.Close make no garbage:
//
//	var v core.View
//	for range ticker.C {
//		if err := src.Into(ctx, &v); err != nil {
//			return err
//		}
//		// look at v
//		if err := v.Close(); err != nil {
//			return err
//		}
//	}
//
// Views that were derived from v before (by Sub, Transpose and the like) and are still open keep what they
// are views of. Each View may be filled from any source, of any session, but by one goroutine at a time:
// see [core.View.Open].
//
// After an error v is closed, and may be filled again. The errors are those of [Session.View], and one that
// wraps core.ErrConfig for a view that is open, which stays as it is.
func (s *Source) Into(ctx context.Context, v *core.View, opts ...ViewOption) error {
	const op = "view"
	var req core.Request
	for _, o := range opts {
		req = o.applyView(req)
	}
	if err := s.session.alive(op, s.name); err != nil {
		return err
	}
	if !v.Closed() {
		return s.session.wrap(op, s.name, v.Open(core.Layout{}, nil, nil))
	}
	grant, err := s.session.lessor.Lease(ctx, s.source, req)
	if err == nil {
		err = s.session.views.Open(ctx, &s.session.memory, v, s.name, grant, &s.last)
	}
	if err != nil {
		return s.session.wrap(op, s.name, err)
	}
	return nil
}
