package hostplugin

import (
	"context"
	"errors"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/internal/gpus"
	"github.com/ndbridge/ndbridge/hostplugin/internal/lessor"
	"github.com/ndbridge/ndbridge/hostplugin/internal/views"
	"github.com/ndbridge/ndbridge/internal/handoff"
)

// View gives a view of one array of the program: its own memory, or, if that cannot be shared and
// copying is allowed, a copy that says so (View.Copied, View.Reason). The name is a Python name with
// attributes and items behind it (`frame`, `model.weight`, `batch["x"]`, `frames[0]`), a name that
// the program published, or whatever names the plugin has.
//
// A name that does not exist yet is waited for, until ctx ends, as long as the script still runs.
// The memory is mapped for reading unless [Writable] asks for more.
//
// The caller closes the view. It stays readable, even after the end of the program, until it is
// closed, or the session is.
//
// The errors wrap core.ErrNotFound, core.ErrNotShared, core.ErrReadOnly, core.ErrDType,
// core.ErrLayout, core.ErrUnsupported or core.ErrPython (what the program's side says about the
// array), core.ErrUnavailable (the program is gone), core.ErrProtocol or core.ErrPointer (its plugin
// answered what cannot be), core.ErrClosed, or the error of ctx.
func (s *Session) View(ctx context.Context, name string, opts ...ViewOption) (*core.View, error) {
	return s.view(ctx, s.lessor.Named(name), name, opts)
}

// view gives a new view of a source.
func (s *Session) view(ctx context.Context, source *lessor.Source, name string, opts []ViewOption) (*core.View, error) {
	v := new(core.View)
	if err := s.into(ctx, v, source, name, opts); err != nil {
		return nil, err
	}
	return v, nil
}

// into makes v a view of a source.
func (s *Session) into(ctx context.Context, v *core.View, source *lessor.Source, name string, opts []ViewOption) error {
	const op = "view"
	var req core.Request
	for _, o := range opts {
		req = o.applyView(req)
	}
	if err := s.alive(op, name); err != nil {
		return err
	}
	if !v.Closed() {
		return s.wrap(op, name, v.Open(core.Layout{}, nil, nil))
	}
	grant, err := s.lessor.Lease(ctx, source, req)
	if err == nil {
		err = s.open(ctx, v, name, grant)
	}
	if err != nil {
		return s.wrap(op, name, err)
	}
	return nil
}

// open makes v a view of what was granted. After an error the lease is given back.
func (s *Session) open(ctx context.Context, v *core.View, name string, grant handoff.Grant) error {
	lease, err := s.views.Add(grant.ID)
	if err != nil {
		return err
	}
	if _, onGPU := gpus.Of(grant.Lease.Handle); onGPU {
		return s.openGPU(ctx, v, name, grant, lease)
	}
	mapped, err := s.memory.Host(ctx, grant.Lease)
	if err != nil {
		return errors.Join(err, lease.Release())
	}
	opts := describe(name, grant)
	opts.Release = lease.Release
	if err := v.Open(grant.Lease.Layout, mapped, &opts); err != nil {
		if mapped != nil {
			err = errors.Join(err, mapped.Close())
		}
		return errors.Join(err, lease.Release())
	}
	return s.lend(lease, v)
}

// openGPU is open for memory of a GPU, which gives the lease back itself, when the GPU is done with it.
func (s *Session) openGPU(
	ctx context.Context, v *core.View, name string, grant handoff.Grant, lease *views.Lease,
) error {
	mapped, layout, err := s.memory.OfGPU(ctx, grant.Whole(), func() { _ = lease.Release() }) // it never fails
	if err != nil {
		return errors.Join(err, lease.Release())
	}
	opts := describe(name, grant)
	if err := v.Open(layout, mapped, &opts); err != nil {
		return errors.Join(err, mapped.Close())
	}
	return s.lend(lease, v)
}

// describe says what a view of a grant is.
func describe(name string, grant handoff.Grant) core.ViewOptions {
	l := grant.Lease
	return core.ViewOptions{
		Name: name, Framework: l.Framework, Route: l.Route, Reason: l.Reason,
		Quirks: l.Quirks, Writable: l.Writable, Fence: grant.Fence,
	}
}

// lend lets v be closed with the session.
func (s *Session) lend(lease *views.Lease, v *core.View) error {
	if !s.views.Lend(lease, v) {
		return errors.Join(&core.Error{Kind: core.ErrClosed}, v.Close())
	}
	return nil
}

// stray gives back a lease that nobody waited for any more, unless it is that of a view.
func (s *Session) stray(id core.LeaseID) {
	if lease, err := s.views.Add(id); err == nil {
		_ = lease.Release() // it never fails
	}
}

// wrap makes err an error about one array, whatever step of the work it comes from.
func (s *Session) wrap(op, array string, err error) error {
	e, ok := errors.AsType[*core.Error](err)
	if !ok {
		kind := core.ErrProtocol
		if errors.Is(err, context.Canceled) {
			kind = context.Canceled
		} else if errors.Is(err, context.DeadlineExceeded) {
			kind = context.DeadlineExceeded
		}
		return &core.Error{Op: op, Program: s.launch.program.Name, Array: array, Kind: kind, Err: err}
	}
	about := *e
	about.Op, about.Program, about.Array = op, s.launch.program.Name, array
	return &about
}
