package core

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Bytes gives the bytes of all elements as a slice that aliases the memory, under the rules of
// [Slice]. Any element type will do, opaque and packed ones included; the elements must be contiguous
// (ErrLayout: use [CopyBytes]).
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

// Float32s is Slice[float32].
func (v *View) Float32s() ([]float32, error) { return Slice[float32](v) }

// Float64s is Slice[float64].
func (v *View) Float64s() ([]float64, error) { return Slice[float64](v) }

// Int32s is Slice[int32].
func (v *View) Int32s() ([]int32, error) { return Slice[int32](v) }

// Int64s is Slice[int64].
func (v *View) Int64s() ([]int64, error) { return Slice[int64](v) }

// Uint8s is Slice[uint8].
func (v *View) Uint8s() ([]uint8, error) { return Slice[uint8](v) }

// CopyBytes copies the bytes of the elements of v, in row-major order and whatever the strides, to
// dst, and returns how many there are: v.NBytes. It takes any element type. Of packed elements that do
// not fill the last byte, its other bits are written as zeros.
//
// The host must be able to read the memory (ErrDevice), and dst must have room for v.NBytes bytes
// (ErrLayout). Memory that has gone, since the file behind it was truncated, is an error that wraps
// ErrPointer; dst is partly written then.
func CopyBytes(dst []byte, v *View) (n int, err error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	n = int(v.denseBytes())
	switch {
	case !v.open.Load():
		return 0, v.fail("copy", ErrClosed, nil)
	case v.n == 0:
		return 0, nil
	case v.root.bytes == nil:
		return 0, v.unreadable("copy")
	case len(dst) < n:
		return 0, v.fail("copy", ErrLayout, fmt.Errorf("room for %d bytes of %d", len(dst), n))
	}
	defer v.trap("copy", debug.SetPanicOnFault(true), &err)
	gather(dst[:n], v.root.bytes, v.layout)
	if bits := v.n * v.dtype.Bits() * v.dtype.Lanes() % 8; bits != 0 && v.dtype.Packed() {
		dst[n-1] &= 1<<bits - 1
	}
	return n, nil
}

// hold keeps the memory open for a loop, even if v is closed meanwhile. The loop ends with drop.
func (v *View) hold(op string) *root {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if !v.open.Load() {
		panic(v.fail(op, ErrClosed, nil))
	}
	v.root.users.Add(1)
	return v.root
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
	e.Remedy = "use Copy, CopyBytes or Put of package cuda"
	return e
}

func (v *View) notDense(op string) error {
	e := v.fail(op, ErrLayout, fmt.Errorf("not contiguous: shape %v, strides %v", v.shape, v.strides))
	e.Remedy = "use Values, Copy or CopyBytes"
	return e
}

func (v *View) notWritable(op string) error {
	e := v.fail(op, ErrReadOnly, errors.New("the view was not asked for to write"))
	e.Remedy = "take the view with hostplugin.Writable()"
	if v.readOnly {
		e.Err, e.Remedy = errors.New("the array itself is read-only"), ""
	}
	return e
}

func (v *View) misaligned(op string) error {
	e := v.fail(op, ErrLayout, fmt.Errorf("%v elements are not aligned", v.dtype))
	e.Remedy = "use Values or Copy"
	return e
}
