package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// layout lets a View have the methods of its Layout without a field that could be assigned.
type layout = Layout

// View is an array that can be looked at: a Layout over memory that stays valid until Close. It has
// the methods of its [Layout]. Those that derive another array of the same elements (Sub, Select, Step,
// Transpose, As, AsReadOnly) give a View.
//
// A View is live memory. Unless the memory is a copy (see [View.Copied]), the next look sees what the program
// has written. Only what the program and its host agree upon orders the two. Elements that are read while the program writes
// them can be of different moments, but each number was there at some moment: no function of this module reads or copies half of
// one. That holds for numbers of up to 8 bytes that lie where their type wants them, and for each part of a complex number;
// unaligned and longer numbers can be half old and half new.
//
// A View never changes what it is a view of. All methods are safe for concurrent use, Close included: it
// waits for running calls of Copy, Put, At, Set and CopyBytes. Slices that alias the memory (of Slice, Strided,
// Rows and Bytes) die with Close: touching one afterwards may fault. After Close, every method that returns
// an error returns one that wraps ErrClosed; the description stays readable.
//
// The zero View is a closed one without a description. A View must not be copied.
type View struct {
	layout
	root    *root
	mu      sync.RWMutex // read-held while memory is touched, held to close
	open    atomic.Bool
	derived bool   // of another view
	watch   *watch // nil if nobody looked for leaks when it was made
}

// ViewOptions says what a View is and what it may do. The zero value means a read-only view without a
// name whose memory is no copy.
type ViewOptions struct {
	Name      string    // the array's name
	Framework string    // whose array it is: "numpy"
	Route     Route     // how the memory got here
	Reason    Reason    // why it was copied; "": it was not
	Quirks    []QuirkID // quirks that took part
	Writable  bool      // the memory is mapped for writing
	Version   uint64    // of the name, from 1, if the program published the array; else 0
	Published time.Time // when the program published that version
	Lender    Lender    // who lent the memory; nil: nobody
}

// Lender lends the memory of a view and knows whether it is live. All methods are safe for concurrent use.
type Lender interface {
	// Live answers [View.Live] for an open view.
	Live() bool
	// Release ends the lease. It is called once, when the last view of the memory is closed, before the memory
	// is closed.
	Release() error
}

// root is what a view and all views derived from it share.
type root struct {
	ViewOptions
	mem   Memory
	bytes []byte // of mem; nil if the host cannot read it
	users atomic.Int64
	first atomic.Bool // the view that was made first is open
	hold  func()      // keeps the pages of mem what they are; nil: they always are
	let   func()      // is drop, and ends one hold
}

// NewView makes a View of the memory m and owns m from then on: when the last view of the memory is closed, it
// calls opts.Lender.Release, if there is a lender, and then m.Close, once each. A nil opts means the zero
// ViewOptions.
//
// NewView proves that every byte that the layout spans lies inside the memory; if one does not, the error wraps
// ErrPointer. A layout without elements needs no memory: m may be nil. A writable view of a read-only layout
// is an error that wraps ErrReadOnly. After an error the caller still owns the memory and the lease.
func NewView(l Layout, m Memory, opts *ViewOptions) (*View, error) {
	if opts == nil {
		opts = new(ViewOptions)
	}
	bytes, err := inside(&l, m, opts)
	if err != nil {
		return nil, err
	}
	v := &View{layout: l, root: &root{ViewOptions: *opts, mem: m, bytes: bytes}}
	v.root.Quirks, v.root.let = slices.Clone(opts.Quirks), v.root.drop
	if h, ok := m.(holder); ok {
		r := v.root // not v, which can be forgotten
		r.hold, r.let = h.Hold, func() { h.Let(); r.drop() }
	}
	v.root.users.Store(1)
	v.root.first.Store(true)
	v.observe(1)
	v.open.Store(true)
	return v, nil
}

// inside proves that the elements of l lie inside m, and gives what of m the host can read.
func inside(l *Layout, m Memory, opts *ViewOptions) (bytes []byte, err error) {
	fail := func(kind error, format string, args ...any) ([]byte, error) {
		return nil, &Error{Op: "view", Object: opts.Name, Kind: kind, Err: fmt.Errorf(format, args...)}
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

// done gives the memory back if this was its last user.
func (r *root) done() (err error) {
	if r.users.Add(-1) > 0 {
		return nil
	}
	if r.Lender != nil {
		err = r.Lender.Release()
	}
	if r.mem != nil {
		err = errors.Join(err, r.mem.Close())
	}
	if err == nil {
		return nil
	}
	kind := categoryOf(err)
	if _, ok := errors.AsType[*Error](err); ok && kind != nil {
		return err
	}
	return &Error{Op: "close", Object: r.Name, Kind: cmp.Or(kind, ErrUnavailable), Err: err}
}

// options is the description; of a zero View, an empty one.
func (v *View) options() *ViewOptions {
	if v.root == nil {
		return new(ViewOptions)
	}
	return &v.root.ViewOptions
}

// Layout says where the elements lie in the memory.
func (v *View) Layout() Layout { return v.layout }

// Name returns the array's name, or "".
func (v *View) Name() string { return v.options().Name }

// Framework names the framework whose array it is, or is "".
func (v *View) Framework() string { return v.options().Framework }

// Route says how the memory got here.
func (v *View) Route() Route { return v.options().Route }

// Reason says why the memory was copied; it is "" if it was not.
func (v *View) Reason() Reason { return v.options().Reason }

// Quirks lists the quirks that took part in the hand-over. The slice is a copy.
func (v *View) Quirks() []QuirkID { return slices.Clone(v.options().Quirks) }

// Copied reports whether the memory is a copy of the program's memory. Neither side sees what the other writes
// then.
func (v *View) Copied() bool { return v.options().Reason != "" }

// Writable reports whether the host may write through this view. If not, writing to a slice of it faults.
func (v *View) Writable() bool { return v.options().Writable && !v.readOnly }

// Version counts what the program published under the view's name with ndbridge.publish; it is 0 if the array was not
// published. Of two views of the same name and session, the one with the greater version is newer. The first
// version is 1 and each further one is greater by 1, except after ndbridge.unpublish: if the name comes again, its
// versions continue at some number above all that it had.
func (v *View) Version() uint64 { return v.options().Version }

// Published says when the program published the view's version, by the clock of the machine. It is the zero
// Time if the array was not published.
func (v *View) Published() time.Time { return v.options().Published }

// Lender returns the lender that v was made with. It is nil if there is none, if v was derived, and if v is closed.
func (v *View) Lender() Lender {
	if v.derived || !v.open.Load() {
		return nil
	}
	return v.root.Lender
}

// Live reports whether the view shows what the program writes to the array now. It is false
//
//   - for a copy and for a closed view,
//   - after a fork of the program has made the memory private, until it is shared again: if that is possible, after some milliseconds,
//   - after the name has come to lead to other memory: the program gave the name to another array, or the
//     framework replaced the memory behind the object,
//   - after the program is gone.
//
// The view then shows what the array was. Live may ask the program. That takes as long as hostplugin's Refresh,
// but no longer than a tenth of a second: if the program is too busy to answer, Live says what was known last.
func (v *View) Live() bool {
	if !v.open.Load() || v.Copied() {
		return false
	}
	return v.root.Lender == nil || v.root.Lender.Live()
}

// Wait returns when the memory may be touched. Host memory is ready at once. For memory of a GPU, a stream of
// package cuda can wait instead. When ctx ends, Wait reports that as the context's error. An error that wraps
// ErrUnavailable says that the memory will never be ready because the program that was to fill it is gone.
func (v *View) Wait(ctx context.Context) error { return v.wait(ctx, "wait") }

func (v *View) wait(ctx context.Context, op string) error {
	if !v.open.Load() {
		return v.fail(op, ErrClosed, nil)
	}
	if err := ctx.Err(); err != nil {
		return v.fail(op, err, context.Cause(ctx))
	}
	if m, ok := v.root.mem.(Fenced); ok {
		return v.ended(ctx, op, m.Ready(ctx))
	}
	return nil
}

// Acquire gives the memory of v, which is nil if v has no elements, and the offset of the element with index
// [0, ..., 0] in it. The memory stays until release is called, and on the same pages, even if v is closed meanwhile; release may
// be called more than once. Acquire is for packages that know more of the memory than core does, as package
// cuda does of a GPU's. The error wraps ErrClosed.
func (v *View) Acquire() (m Memory, offset int, release func(), err error) {
	m, offset, release, err = v.Hold()
	if err != nil {
		return m, offset, release, err
	}
	return m, offset, sync.OnceFunc(release), nil
}

// holder is a [Memory] that may come to lie on other pages, with the same elements, unless somebody holds it.
type holder interface {
	Hold()
	Let()
}

// Hold is [View.Acquire] for who needs memory so often that it must not allocate: release is to be called exactly once, or memory goes that
// others use.
func (v *View) Hold() (m Memory, offset int, release func(), err error) {
	r, err := v.hold("acquire")
	if err != nil {
		return nil, 0, func() {}, err
	}
	if r.hold != nil {
		r.hold()
	}
	return r.mem, v.offset, r.let, nil
}

// Addr returns the address, on the host or on the device, of the element with index [0, ..., 0]. It is 0 if the
// view has no elements or is closed. The address means nothing after Close: use [View.Acquire] to keep the memory.
func (v *View) Addr() uintptr {
	if !v.open.Load() || v.n == 0 {
		return 0
	}
	return v.root.mem.Addr() + uintptr(v.offset)
}

// Close ends this view's use of the memory. Closing the last view of the memory releases the lease and closes
// the memory; the error is that of doing so. Further calls do nothing and return nil. Close waits for functions
// that copy, not for slices: see [View].
func (v *View) Close() error {
	v.mu.Lock()
	was := v.open.Swap(false)
	v.mu.Unlock()
	if !was {
		return nil
	}
	if v.watch != nil {
		v.watch.open.Store(false)
	}
	if v.derived {
		return v.root.done()
	}
	return v.root.Close()
}

// Forgotten returns a Closer for a [Lender] that ends a loan whose view was forgotten: nobody can close a view that
// the garbage collector has found unreachable. The Closer gives up v's hold on the memory, as v.Close would. It
// neither keeps v reachable nor closes v, and it is idempotent. The Closer of a derived view does nothing.
func (v *View) Forgotten() io.Closer {
	if v.derived || v.root == nil {
		return io.NopCloser(nil)
	}
	return v.root
}

// Close is that of the view that was made first.
func (r *root) Close() error {
	if !r.first.CompareAndSwap(true, false) {
		return nil
	}
	return r.done()
}
