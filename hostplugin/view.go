package hostplugin

import (
	"context"
	"errors"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/internal/gpus"
	"github.com/ndbridge/ndbridge/hostplugin/internal/lessor"
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
	return s.take(ctx, s.lessor.Named(name), name, opts)
}

// take gives a view of a source.
func (s *Session) take(ctx context.Context, source *lessor.Source, name string, opts []ViewOption) (*core.View, error) {
	const op = "view"
	var req core.Request
	for _, o := range opts {
		o.applyView(&req)
	}
	if err := s.alive(op, name); err != nil {
		return nil, err
	}
	lease, err := s.lessor.Lease(ctx, source, req)
	if err != nil {
		return nil, s.wrap(op, name, err)
	}
	v, err := s.view(ctx, name, lease)
	if err != nil {
		return nil, s.wrap(op, name, err)
	}
	return v, nil
}

// view makes a view of a lease. After an error the lease is given back.
func (s *Session) view(ctx context.Context, name string, lease core.Lease) (*core.View, error) {
	if err := s.views.Reserve(lease.ID); err != nil {
		return nil, err
	}
	opts := core.ViewOptions{
		Name: name, Framework: lease.Framework, Route: lease.Route, Reason: lease.Reason,
		Quirks: lease.Quirks, Writable: lease.Writable, Fence: lease.Fence,
		Release: func() error { s.release(lease.ID); return nil },
	}
	memory, layout, err := s.memory.Map(ctx, lease, func() { s.release(lease.ID) })
	if err != nil {
		s.release(lease.ID)
		return nil, err
	}
	if _, onGPU := gpus.Of(lease.Handle); onGPU {
		opts.Release = nil // the memory gives the lease back, when the GPU is done with it
	}
	v, err := core.NewView(layout, memory, &opts)
	if err != nil {
		if memory != nil {
			err = errors.Join(err, memory.Close())
		}
		if opts.Release != nil {
			err = errors.Join(err, opts.Release())
		}
		return nil, err
	}
	if !s.views.Register(lease.ID, v) {
		return nil, errors.Join(&core.Error{Kind: core.ErrClosed}, v.Close())
	}
	return v, nil
}

// release gives a lease back, when the last view on it was closed.
func (s *Session) release(id core.LeaseID) {
	s.views.Remove(id)
	s.lessor.Release(id)
}

// stray gives back a lease that nobody waited for any more, unless it is that of a view.
func (s *Session) stray(id core.LeaseID) {
	if s.views.Reserve(id) == nil {
		s.release(id)
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
