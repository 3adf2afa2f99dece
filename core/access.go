package core

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Bytes returns the bytes of all elements as a slice that aliases the memory. The rules of [Slice] hold, but every
// element type will do, opaque and packed ones included. The elements must be contiguous (ErrLayout: use
// [CopyBytes]).
func (v *View) Bytes() ([]byte, error) {
	switch {
	case !v.open.Load():
		return nil, v.fail("bytes", ErrClosed, nil)
	case v.n == 0:
		return []byte{}, nil
	case v.root.bytes == nil:
		return nil, v.unreadable("bytes")
	case !v.contiguous:
		return nil, v.notDense("bytes")
	}
	return v.root.bytes[v.lo:v.hi:v.hi], nil
}

// Touch waits until the memory may be touched, as [View.Wait] does, and calls f with the whole memory, in which the
// elements lie as v.Layout says. Only the bytes of [Layout.Span] are the view's, and f must not keep any. Touch is for
// packages that read elements where they lie, on several goroutines at a time, without a copy.
//
// Close waits for f. If the file behind the memory was truncated, reading the missing bytes ends f, and Touch returns
// an error that wraps ErrPointer. The host must be able to read the memory (ErrDevice). For a view without elements,
// memory may be nil. Any other error is that of f.
func (v *View) Touch(ctx context.Context, f func(memory []byte) error) (err error) {
	if err := v.wait(ctx, "touch"); err != nil {
		return err
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	switch {
	case !v.open.Load():
		return v.fail("touch", ErrClosed, nil)
	case v.n == 0:
		return f(nil)
	case v.root.bytes == nil:
		return v.unreadable("touch")
	}
	defer v.trap("touch", debug.SetPanicOnFault(true), &err)
	return f(v.root.bytes)
}

// hold keeps the memory open until drop, even if v is closed meanwhile.
func (v *View) hold(op string) (*root, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if !v.open.Load() {
		return nil, v.fail(op, ErrClosed, nil)
	}
	v.root.users.Add(1)
	return v.root, nil
}

// drop ends hold. An error of giving the memory back here has nobody to go to: Close was called, and did
// not wait.
func (r *root) drop() { _ = r.done() }

// trap is deferred around what touches memory, with the goroutine's former setting of
// debug.SetPanicOnFault. It turns a fault inside the memory of v into an error; other panics go on.
func (v *View) trap(op string, panicked bool, err *error) {
	debug.SetPanicOnFault(panicked)
	r := recover()
	if r == nil {
		return
	}
	fault, ok := r.(interface {
		runtime.Error
		Addr() uintptr
	})
	base := addrOf(v.root.bytes)
	if !ok || fault.Addr() < base || fault.Addr()-base >= uintptr(len(v.root.bytes)) {
		panic(r)
	}
	*err = &Error{
		Op: op, Object: v.Name(), Kind: ErrPointer,
		Err:    fmt.Errorf("byte %d of the memory's %d bytes is not there any more", fault.Addr()-base, len(v.root.bytes)),
		Remedy: "the file behind the memory was truncated; take a new view",
	}
}

// fail makes the error of an operation on v.
func (v *View) fail(op string, kind, cause error) *Error {
	return &Error{Op: op, Object: v.Name(), Kind: kind, Err: cause}
}

// wrap says of which operation on which array an error of the layout is; nil stays nil.
func (v *View) wrap(op string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		named := *e
		named.Op, named.Object = op, v.Name()
		return &named
	}
	return err
}

func (v *View) wrongType(op string, want DType) error {
	e := v.fail(op, ErrDType, fmt.Errorf("want %v, have %v", want, v.dtype))
	if v.dtype.Opaque() && v.tag != "" {
		e.Err = fmt.Errorf("want %v, have %s", want, v.tag)
	}
	if v.dtype.Opaque() {
		e.Remedy = "use Bytes, or say with As what the elements are"
	}
	return e
}

func (v *View) unreadable(op string) error {
	e := v.fail(op, ErrDevice, fmt.Errorf("the host cannot read memory of %v", v.device))
	e.Remedy = "use Copy, CopyBytes or Put"
	return e
}

func (v *View) notDense(op string) error {
	e := v.fail(op, ErrLayout, fmt.Errorf("not contiguous: shape %v, strides %v", v.shape, v.strides))
	e.Remedy = "use Values, Strided, Copy or CopyBytes"
	return e
}

func (v *View) notWritable(op string) error {
	e := v.fail(op, ErrReadOnly, errors.New("the view was not asked for to write"))
	e.Remedy = "take the view with hostplugin.Writable()"
	switch {
	case v.readOnly && v.root.Writable:
		e.Err, e.Remedy = errors.New("the view was made by AsReadOnly"), "write through the view that it was made of"
	case v.readOnly:
		e.Err, e.Remedy = errors.New("the array itself is read-only"), ""
	}
	return e
}

func (v *View) misaligned(op string) error {
	e := v.fail(op, ErrLayout, fmt.Errorf("%v elements are not aligned", v.dtype))
	e.Remedy = "use Values or Copy"
	return e
}
