package views

import (
	"context"
	"errors"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/internal/gpus"
	"github.com/ndbridge/ndbridge/hostplugin/internal/memory"
	"github.com/ndbridge/ndbridge/internal/handoff"
)

// Open makes v, which is closed, a view of what was granted, by the name that was asked for. last is what
// the source of the grant had before. After an error the lease is given back.
func (s *Set) Open(
	ctx context.Context, m *memory.Mapper, v *core.View, name string, grant handoff.Grant, last *memory.Last,
) error {
	lease, err := s.Add(grant.ID)
	if err != nil {
		return err
	}
	l := grant.Lease
	opts := core.ViewOptions{
		Name: name, Framework: l.Framework, Route: l.Route, Reason: l.Reason,
		Quirks: l.Quirks, Writable: l.Writable, Fence: grant.Fence,
	}
	if _, onGPU := gpus.Of(l.Handle); onGPU {
		return s.openGPU(ctx, m, v, grant.Whole(), lease, &opts)
	}
	opts.Release = lease.Release
	mapped, err := m.Host(ctx, l, last)
	if err != nil {
		return errors.Join(err, lease.Release())
	}
	if err := v.Open(l.Layout, mapped, &opts); err != nil {
		if mapped != nil {
			err = errors.Join(err, mapped.Close())
		}
		return errors.Join(err, lease.Release())
	}
	return s.lend(lease, grant.ID, v)
}

// openGPU is Open for memory of a GPU, which gives the lease back itself, when the GPU is done with it.
func (s *Set) openGPU(
	ctx context.Context, m *memory.Mapper, v *core.View, l core.Lease, lease *Lease, opts *core.ViewOptions,
) error {
	release := func() { _ = lease.Release() } // it never fails
	mapped, layout, err := m.OfGPU(ctx, l, release)
	if err != nil {
		return errors.Join(err, lease.Release())
	}
	if err := v.Open(layout, mapped, opts); err != nil {
		return errors.Join(err, mapped.Close())
	}
	return s.lend(lease, l.ID, v)
}

// lend lets v be closed by Close. Others may have closed it already: then the Lease is free, or of another ID.
func (s *Set) lend(l *Lease, id core.LeaseID, v *core.View) error {
	view := v.Ref()
	s.mu.Lock()
	if l.ID == id {
		l.view = view
	}
	s.mu.Unlock()
	if s.closed.Load() { // Close may have looked at the set before
		return errors.Join(&core.Error{Kind: core.ErrClosed}, v.Close())
	}
	return nil
}
