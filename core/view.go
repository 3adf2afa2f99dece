package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// layout lets a View have the methods of its Layout without a field that could be assigned.
type layout = Layout

// View is an array that can be looked at: a Layout over memory that stays valid until Close. It has
// the methods of its [Layout]; those that make another array of the same elements (Sub, Select, Step,
// Transpose, As) make a View.
//
// A view is live memory. Unless it was copied (see [View.Copied]), what the program writes is what
// the next look sees, and nothing orders the two but what the program and its host agree upon.
//
// All methods are safe for concurrent use. Close is safe beside every other call: Copy, Put, At, Set
// and CopyBytes are waited for. But slices that alias the memory (of Slice, Rows, Bytes and the
// Float32s family) die with Close: touching one afterwards may fault. After Close, methods that can
// return an error return one that wraps ErrClosed; the description stays readable.
type View struct {
	layout
	root    *root
	mu      sync.RWMutex // read-held while memory is touched, held to close
	closed  atomic.Bool
	watched bool
	cleanup runtime.Cleanup
}

// ViewOptions says what a View is and what it may do. The zero value is a read-only view without a
// name that was not copied.
type ViewOptions struct {
	Name      string       // the array's name
	Framework string       // whose array it is: "numpy"
	Route     Route        // how the memory got here
	Reason    Reason       // why it was copied
	Quirks    []QuirkID    // quirks that took part
	Writable  bool         // the memory is mapped for writing
	Fence     Fence        // what must have happened before the memory may be touched; nil: nothing
	Release   func() error // gives the lease back
}

// root is what a view and all views derived from it share.
type root struct {
	ViewOptions
	mem   Memory
	bytes []byte // of mem; nil if the host cannot read it
	users atomic.Int64
}

// NewView makes a View of the memory m, of which it takes possession: Close calls opts.Release, if
// there is one, and then m.Close, once each, when the last view of the memory is closed. If NewView
// fails, the caller still owns both. A nil opts is the zero ViewOptions.
//
// NewView proves that every byte that the layout spans lies inside the memory; the error for a span
// that does not wraps ErrPointer. A layout without elements needs no memory: m may be nil. Writable
// views of read-only layouts are refused with ErrReadOnly.
func NewView(l Layout, m Memory, opts *ViewOptions) (*View, error) {
	r := &root{mem: m}
	if opts != nil {
		r.ViewOptions = *opts
		r.Quirks = slices.Clone(opts.Quirks)
	}
	fail := func(kind error, format string, args ...any) (*View, error) {
		return nil, &Error{Op: "view", Array: r.Name, Kind: kind, Err: fmt.Errorf(format, args...)}
	}
	switch lo, hi := l.Span(); {
	case !l.DType().Valid():
		return fail(ErrLayout, "the zero Layout describes no array")
	case r.Writable && l.ReadOnly():
		return fail(ErrReadOnly, "a writable view of a read-only array")
	case l.Len() == 0:
	case m == nil:
		return fail(ErrPointer, "no memory for %d elements", l.Len())
	case lo < 0 || int64(hi) > m.Size():
		return fail(ErrPointer, "bytes %d to %d are not inside memory of %d bytes", lo, hi, m.Size())
	case l.Device().HostReadable():
		if r.bytes = m.Bytes(); len(r.bytes) < hi {
			return fail(ErrPointer, "bytes %d to %d are not inside the %d bytes that can be read",
				lo, hi, len(r.bytes))
		}
	}
	r.users.Store(1)
	v := &View{layout: l, root: r}
	v.watch()
	return v, nil
}

// size is the number of bytes of the memory.
func (r *root) size() int64 {
	if r.mem == nil {
		return 0
	}
	return r.mem.Size()
}

// done gives the memory back if this was its last user.
func (r *root) done() error {
	if r.users.Add(-1) > 0 {
		return nil
	}
	var errs []error
	if r.Release != nil {
		errs = append(errs, r.Release())
	}
	if r.mem != nil {
		errs = append(errs, r.mem.Close())
	}
	return errors.Join(errs...)
}

// Layout is where the elements lie.
func (v *View) Layout() Layout { return v.layout }

// Name is the array's name, or "".
func (v *View) Name() string { return v.root.Name }

// Framework is the name of the framework whose array it is, or "".
func (v *View) Framework() string { return v.root.Framework }

// Route says how the memory got here.
func (v *View) Route() Route { return v.root.Route }

// Reason says why the memory was copied; ReasonNone if it was not.
func (v *View) Reason() Reason { return v.root.Reason }

// Quirks lists the quirks that took part. The slice is a copy.
func (v *View) Quirks() []QuirkID { return slices.Clone(v.root.Quirks) }

// Copied reports whether the memory is a copy of the program's own, so that neither side sees what
// the other writes.
func (v *View) Copied() bool { return v.root.Route.Copied() }

// Writable reports whether the memory may be written through this view. If not, writing to a slice of
// it faults.
func (v *View) Writable() bool { return v.root.Writable }

// Fence is what must have happened before the memory may be touched.
func (v *View) Fence() Fence {
	if v.root.Fence == nil {
		return Ready{}
	}
	return v.root.Fence
}

// Wait returns when the memory may be touched: at once for [Ready] memory. Work on a GPU need not be
// waited for so: package cuda lets its own stream wait. Wait obeys ctx and reports its end as the
// context's error. An error that wraps ErrUnavailable says that the memory will never be ready, since
// the program that was to fill it is gone.
func (v *View) Wait(ctx context.Context) error {
	if v.closed.Load() {
		return v.fail("wait", ErrClosed, nil)
	}
	if err := ctx.Err(); err != nil {
		return v.fail("wait", err, context.Cause(ctx))
	}
	m, ok := v.root.mem.(Fenced)
	if !ok {
		return nil
	}
	err := m.Ready(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return v.fail("wait", ctx.Err(), context.Cause(ctx))
	default:
		return v.fail("wait", cmp.Or(categoryOf(err), ErrUnavailable), err)
	}
}

// Use calls f while the view cannot be closed: with its memory, nil if it has no elements, and the
// offset of the element with index [0, ..., 0] in it. It is for packages that know more of the memory
// than core does, as package cuda does of a GPU's. Close waits for f, so f must not close the view. The
// error is that of f, or one that wraps ErrClosed.
func (v *View) Use(f func(m Memory, offset int) error) error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.closed.Load() {
		return v.fail("use", ErrClosed, nil)
	}
	return f(v.root.mem, v.offset)
}

// Addr is the address, on the host or on the device, of the element with index [0, ..., 0], or 0 if
// there are no elements or the view is closed. It means nothing after Close.
func (v *View) Addr() uintptr {
	if v.closed.Load() || v.n == 0 {
		return 0
	}
	return v.root.mem.Addr() + uintptr(v.offset)
}

// Close ends the use of the memory by this view. When the last view of the memory is closed, its
// lease is released and the memory given back; the error is that of giving it back. Further calls do
// nothing and return nil. Close waits for the functions that copy, not for slices: see [View].
func (v *View) Close() error {
	v.mu.Lock()
	first := v.closed.CompareAndSwap(false, true)
	v.mu.Unlock()
	if !first {
		return nil
	}
	if v.watched {
		v.cleanup.Stop()
	}
	err := v.root.done()
	if _, ok := errors.AsType[*Error](err); ok || err == nil {
		return err
	}
	return v.fail("close", cmp.Or(categoryOf(err), ErrUnavailable), err)
}
