package hostplugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"weak"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin/internal/gpus"
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
	const op = "view"
	var req core.Request
	for _, o := range opts {
		o.applyView(&req)
	}
	if err := s.alive(op, name); err != nil {
		return nil, err
	}
	lease, err := s.conn.client.Lease(ctx, name, req)
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
	if err := s.reserve(lease.ID); err != nil {
		return nil, err
	}
	opts := core.ViewOptions{
		Name: name, Framework: lease.Framework, Route: lease.Route, Reason: lease.Reason,
		Quirks: lease.Quirks, Writable: lease.Writable, Fence: lease.Fence,
		Release: func() error { s.release(lease.ID); return nil },
	}
	memory, layout, err := s.memory(ctx, lease)
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
	if !s.register(lease.ID, v) {
		return nil, errors.Join(&core.Error{Kind: core.ErrClosed}, v.Close())
	}
	return v, nil
}

// memory maps what a lease's handle names: nil for an array without elements. The layout is the lease's,
// on the device as the host counts. After an error the lease stands; else memory of a GPU ends it.
func (s *Session) memory(ctx context.Context, lease core.Lease) (core.Memory, core.Layout, error) {
	if gpu, ok := gpus.Of(lease.Handle); ok {
		return s.gpuMemory(ctx, lease, gpu)
	}
	switch handle := lease.Handle.(type) {
	case nil:
		return nil, lease.Layout, nil
	case core.Segment:
		m, err := s.cache.Map(ctx, handle, lease.Writable)
		if err != nil {
			return nil, core.Layout{}, err // not m: a nil *Memory would be a core.Memory
		}
		return m, lease.Layout, nil
	default:
		return nil, core.Layout{}, fmt.Errorf("a handle of type %T", handle)
	}
}

// gpuMemory is memory for a lease on a GPU.
func (s *Session) gpuMemory(ctx context.Context, lease core.Lease, gpu core.UUID) (core.Memory, core.Layout, error) {
	if !slices.Contains(s.gpus, gpu) {
		return nil, core.Layout{}, &core.Error{
			Kind: core.ErrProtocol, Err: fmt.Errorf("memory of %v, which is none of the host's GPUs", gpu),
		}
	}
	memory, device, err := s.gpuCache.Memory(ctx, lease, func() { s.release(lease.ID) })
	if err != nil {
		return nil, core.Layout{}, err
	}
	spec := lease.Layout.Spec()
	spec.Device = device
	layout, err := core.NewLayout(spec)
	return memory, layout, err // never: only the device is another
}

// reserve makes room for a view in the list of those that the session closes. A lease that is in the
// list already belongs to another view, and stays with it.
func (s *Session) reserve(id core.LeaseID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.views[id]; twice {
		return &core.Error{Kind: core.ErrProtocol, Err: fmt.Errorf("lease %d was granted twice", id)}
	}
	s.views[id] = weak.Pointer[core.View]{}
	return nil
}

// register makes v a view that the session closes, or reports false if it has closed all others
// already. The list is weak, so that a forgotten view is found by the garbage collector, and reported.
func (s *Session) register(id core.LeaseID, v *core.View) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.views[id] = weak.Make(v)
	return true
}

// release gives a lease back, when the last view on it was closed.
func (s *Session) release(id core.LeaseID) {
	s.mu.Lock()
	delete(s.views, id)
	s.mu.Unlock()
	s.releases.Add(id)
}

// closeViews closes all views, and lets no more be made.
func (s *Session) closeViews() {
	s.mu.Lock()
	s.closed = true
	views := make([]*core.View, 0, len(s.views))
	for _, p := range s.views {
		if v := p.Value(); v != nil {
			views = append(views, v)
		}
	}
	s.mu.Unlock()
	for _, v := range views {
		_ = v.Close() // fails only if the memory was not mapped
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
