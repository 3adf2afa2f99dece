package hostplugin

import (
	"context"
	"errors"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/internal/gpus"
	"github.com/ndbridge/ndbridge/hostplugin/internal/lessor"
	"github.com/ndbridge/ndbridge/hostplugin/internal/memory"
	"github.com/ndbridge/ndbridge/hostplugin/internal/views"
	"github.com/ndbridge/ndbridge/internal/handoff"
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
		err = s.open(ctx, v, grant)
	}
	if err != nil {
		return s.session.wrap(op, s.name, err)
	}
	return nil
}

// open makes v a view of what was granted. After an error the lease is given back.
func (s *Source) open(ctx context.Context, v *core.View, grant handoff.Grant) error {
	lease, err := s.session.views.Add(grant.ID)
	if err != nil {
		return err
	}
	if _, onGPU := gpus.Of(grant.Lease.Handle); onGPU {
		return s.openGPU(ctx, v, grant, lease)
	}
	mapped, err := s.session.memory.Host(ctx, grant.Lease, &s.last)
	if err != nil {
		return errors.Join(err, lease.Release())
	}
	opts := s.describe(grant)
	opts.Release = lease.Release
	if err := v.Open(grant.Lease.Layout, mapped, &opts); err != nil {
		if mapped != nil {
			err = errors.Join(err, mapped.Close())
		}
		return errors.Join(err, lease.Release())
	}
	return s.session.lend(lease, v)
}

// openGPU is open for memory of a GPU, which gives the lease back itself, when the GPU is done with it.
func (s *Source) openGPU(ctx context.Context, v *core.View, grant handoff.Grant, lease *views.Lease) error {
	release := func() { _ = lease.Release() } // it never fails
	mapped, layout, err := s.session.memory.OfGPU(ctx, grant.Whole(), release)
	if err != nil {
		return errors.Join(err, lease.Release())
	}
	opts := s.describe(grant)
	if err := v.Open(layout, mapped, &opts); err != nil {
		return errors.Join(err, mapped.Close())
	}
	return s.session.lend(lease, v)
}

// describe says what a view of a grant is.
func (s *Source) describe(grant handoff.Grant) core.ViewOptions {
	l := grant.Lease
	return core.ViewOptions{
		Name: s.name, Framework: l.Framework, Route: l.Route, Reason: l.Reason,
		Quirks: l.Quirks, Writable: l.Writable, Fence: grant.Fence,
	}
}
