package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"weak"
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
//
// The zero View is a closed one without a description. A closed View can be opened again: see
// [View.Open]. A View must not be copied.
type View struct {
	layout
	root     *root
	mu       sync.RWMutex  // read-held while memory is touched, held to open and to close
	state    atomic.Uint64 // odd while it is open; goes up by one with each Open and each Close
	spent    atomic.Uint64 // the state in which root is of use to nobody else: Open may use it anew
	watch    *watch        // nil if nobody has looked for leaks since it was made
	referred sync.Once     // self is made, which only views need that somebody refers to
	self     weak.Pointer[View]
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
	mem    Memory
	bytes  []byte // of mem; nil if the host cannot read it
	users  atomic.Int64
	shared atomic.Bool // a view was derived from its first one
}

// NewView makes a View of the memory m: see [View.Open].
func NewView(l Layout, m Memory, opts *ViewOptions) (*View, error) {
	v := new(View)
	if err := v.fill(&l, m, opts); err != nil {
		return nil, err
	}
	return v, nil
}

// Open makes v, which is zero or closed, a View of the memory m, of which it takes possession: Close
// calls opts.Release, if there is one, and then m.Close, once each, when the last view of the memory is
// closed. A nil opts is the zero ViewOptions. A View that is opened and closed again and again, without
// views derived from it that outlive that, makes no garbage.
//
// If Open fails, v is as it was and the caller still owns memory and lease. Open proves that every byte
// that the layout spans lies inside the memory; the error for a span that does not wraps ErrPointer. A
// layout without elements needs no memory: m may be nil. Writable views of read-only layouts are refused
// with ErrReadOnly, and a View that is open with ErrConfig.
//
// What belongs to the time before stays as it was: views derived from v keep their memory, and so does a
// loop over [Values] or [Rows] that still runs; one that begins later panics, as after Close. Open must
// not run beside other calls for v, but for Close and that of a [Ref].
func (v *View) Open(l Layout, m Memory, opts *ViewOptions) error { return v.fill(&l, m, opts) }

// fill is Open. It is called by what the reports of leaks leave out.
func (v *View) fill(l *Layout, m Memory, opts *ViewOptions) error {
	if opts == nil {
		opts = new(ViewOptions)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	state := v.state.Load()
	if state%2 == 1 {
		return &Error{Op: "view", Array: opts.Name, Kind: ErrConfig, Err: errors.New("the View is in use"), Remedy: "close it first"}
	}
	bytes, err := inside(l, m, opts)
	if err != nil {
		return err
	}
	r := v.root
	if r == nil || v.spent.Load() != state {
		r = new(root)
		r.users.Store(1)
		v.root = r
	}
	// One by one: a copy of the whole would wait until what the caller has just written of it has settled.
	r.Name, r.Framework, r.Route, r.Reason = opts.Name, opts.Framework, opts.Route, opts.Reason
	r.Quirks = append(r.Quirks[:0], opts.Quirks...)
	r.Writable, r.Fence, r.Release = opts.Writable, opts.Fence, opts.Release
	r.mem, r.bytes, v.layout = m, bytes, *l
	v.observe(2)
	v.state.Store(state + 1)
	return nil
}

// inside proves that the elements of l lie inside m, and gives what of m the host can read.
func inside(l *Layout, m Memory, opts *ViewOptions) (bytes []byte, err error) {
	fail := func(kind error, format string, args ...any) ([]byte, error) {
		return nil, &Error{Op: "view", Array: opts.Name, Kind: kind, Err: fmt.Errorf(format, args...)}
	}
	switch lo, hi := l.lo, l.hi; {
	case !l.dtype.Valid():
		return fail(ErrLayout, "the zero Layout describes no array")
	case opts.Writable && l.readOnly:
		return fail(ErrReadOnly, "a writable view of a read-only array")
	case l.n == 0:
	case m == nil:
		return fail(ErrPointer, "no memory for %d elements", l.n)
	case lo < 0 || int64(hi) > m.Size():
		return fail(ErrPointer, "bytes %d to %d are not inside memory of %d bytes", lo, hi, m.Size())
	case l.device.HostReadable():
		if bytes = m.Bytes(); len(bytes) < hi {
			return fail(ErrPointer, "bytes %d to %d are not inside the %d bytes that can be read",
				lo, hi, len(bytes))
		}
	}
	return bytes, nil
}

// opened reports whether v is open.
func (v *View) opened() bool { return v.state.Load()%2 == 1 }

// Closed reports whether v is closed, or was never opened.
func (v *View) Closed() bool { return !v.opened() }

// size is the number of bytes of the memory.
func (r *root) size() int64 {
	if r.mem == nil {
		return 0
	}
	return r.mem.Size()
}

// done gives the memory back if this was its last user. One who is alone stays so, since others come from
// open views, and need not count.
func (r *root) done() (alone bool, err error) {
	if alone = r.users.Load() == 1; !alone && r.users.Add(-1) > 0 {
		return false, nil
	}
	if r.Release != nil {
		err = r.Release()
	}
	if r.mem != nil {
		if closed := r.mem.Close(); closed != nil {
			err = errors.Join(err, closed)
		}
	}
	return alone, err
}

// options is the description; of a zero View, an empty one.
func (v *View) options() *ViewOptions {
	if v.root == nil {
		return new(ViewOptions)
	}
	return &v.root.ViewOptions
}

// Layout is where the elements lie.
func (v *View) Layout() Layout { return v.layout }

// Name is the array's name, or "".
func (v *View) Name() string { return v.options().Name }

// Framework is the name of the framework whose array it is, or "".
func (v *View) Framework() string { return v.options().Framework }

// Route says how the memory got here.
func (v *View) Route() Route { return v.options().Route }

// Reason says why the memory was copied; ReasonNone if it was not.
func (v *View) Reason() Reason { return v.options().Reason }

// Quirks lists the quirks that took part. The slice is a copy.
func (v *View) Quirks() []QuirkID { return slices.Clone(v.options().Quirks) }

// Copied reports whether the memory is a copy of the program's own, so that neither side sees what
// the other writes.
func (v *View) Copied() bool { return v.options().Route.Copied() }

// Writable reports whether the memory may be written through this view. If not, writing to a slice of
// it faults.
func (v *View) Writable() bool { return v.options().Writable }

// Fence is what must have happened before the memory may be touched.
func (v *View) Fence() Fence {
	if f := v.options().Fence; f != nil {
		return f
	}
	return Ready{}
}

// Wait returns when the memory may be touched: at once for [Ready] memory. Work on a GPU need not be
// waited for so: package cuda lets its own stream wait. Wait obeys ctx and reports its end as the
// context's error. An error that wraps ErrUnavailable says that the memory will never be ready, since
// the program that was to fill it is gone.
func (v *View) Wait(ctx context.Context) error {
	if !v.opened() {
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
	if !v.opened() {
		return v.fail("use", ErrClosed, nil)
	}
	return f(v.root.mem, v.offset)
}

// Addr is the address, on the host or on the device, of the element with index [0, ..., 0], or 0 if
// there are no elements or the view is closed. It means nothing after Close.
func (v *View) Addr() uintptr {
	if !v.opened() || v.n == 0 {
		return 0
	}
	return v.root.mem.Addr() + uintptr(v.offset)
}

// Close ends the use of the memory by this view. When the last view of the memory is closed, its
// lease is released and the memory given back; the error is that of giving it back. Further calls do
// nothing and return nil. Close waits for the functions that copy, not for slices: see [View].
func (v *View) Close() error { return v.close(v.state.Load()) }

// close is Close if v is open and in the given state.
func (v *View) close(state uint64) error {
	v.mu.Lock()
	if state%2 == 0 || v.state.Load() != state {
		v.mu.Unlock()
		return nil
	}
	r, name := v.root, v.root.Name
	if v.watch != nil {
		v.watch.open.Store(false)
	}
	v.state.Store(state + 1)
	v.mu.Unlock()
	alone, err := r.done()
	if alone && !r.shared.Load() {
		v.spent.Store(state + 1)
	}
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return &Error{Op: "close", Array: name, Kind: cmp.Or(categoryOf(err), ErrUnavailable), Err: err}
}

// Ref refers to a View as it is open now: see [View.Ref]. The zero Ref refers to none.
type Ref struct {
	view  weak.Pointer[View]
	state uint64
}

// Ref gives a reference to v as it is open now. It does not keep v from being forgotten. Of a closed View
// it refers to none.
func (v *View) Ref() Ref {
	v.referred.Do(func() { v.self = weak.Make(v) }) // once: to make it takes locks of the runtime
	return Ref{v.self, v.state.Load()}
}

// Close closes the View, unless that was done, be it that it is open again, or unless the View is gone.
// It is for those who lend memory, and may have to take it back. It is safe beside every other call.
func (r Ref) Close() error {
	if v := r.view.Value(); v != nil {
		return v.close(r.state)
	}
	return nil
}
