package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// CopyBytes is [Copy] for any element type, opaque and packed ones included: it copies the bytes of the
// elements and returns their number, v.NBytes. If packed elements do not fill the last byte, CopyBytes writes
// its other bits as zeros. dst must have room for v.NBytes bytes (ErrLayout).
func CopyBytes(ctx context.Context, dst []byte, v *View) (n int, err error) {
	n = int(v.denseBytes())
	if len(dst) < n && v.open.Load() {
		return 0, v.fail("copy", ErrLayout, fmt.Errorf("room for %d bytes of %d", len(dst), n))
	}
	if err := v.copyOut(ctx, dst[:min(n, len(dst))]); err != nil {
		return 0, err
	}
	if bits := v.n * v.dtype.Bits() * v.dtype.Lanes() % 8; bits != 0 {
		dst[n-1] &= 1<<bits - 1
	}
	return n, nil
}

// fits says whether v is open and of an element type, and refuses what is said not to fit its length.
func (v *View) fits(op string, want DType, unfit bool, format string, have int) error {
	switch {
	case !v.open.Load():
		return v.fail(op, ErrClosed, nil)
	case v.dtype != want:
		return v.wrongType(op, want)
	case unfit:
		return v.fail(op, ErrLayout, fmt.Errorf(format, have, v.n))
	}
	return nil
}

// copyOut waits for the memory and copies the elements to dst, which has their size.
func (v *View) copyOut(ctx context.Context, dst []byte) error {
	return v.move(ctx, "copy", func(c Copier) error { return c.CopyOut(ctx, dst, v.layout) },
		func(memory []byte) { gather(dst, memory, v.layout) })
}

// copyIn waits for the memory and copies src, which has their size, over the elements.
func (v *View) copyIn(ctx context.Context, src []byte) error {
	return v.move(ctx, "put", func(c Copier) error { return c.CopyIn(ctx, v.layout, src) },
		func(memory []byte) { scatter(memory, v.layout, src) })
}

// move waits for the memory and calls the function that can copy it: there, which has the memory itself copy, or here,
// which is given the memory.
func (v *View) move(ctx context.Context, op string, there func(Copier) error, here func(memory []byte)) (err error) {
	if err := v.wait(ctx, op); err != nil {
		return err
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	switch {
	case !v.open.Load():
		return v.fail(op, ErrClosed, nil)
	case v.n == 0:
		return nil
	case v.root.bytes == nil:
		return v.through(ctx, op, there)
	}
	defer v.trap(op, debug.SetPanicOnFault(true), &err)
	here(v.root.bytes)
	return nil
}

// through has the memory itself copy.
func (v *View) through(ctx context.Context, op string, f func(Copier) error) error {
	c, ok := v.root.mem.(Copier)
	if !ok {
		e := v.fail(op, ErrDevice, fmt.Errorf("nothing here can copy this memory of %v", v.device))
		e.Remedy = "copy it with what made it"
		return e
	}
	return v.ended(ctx, op, f(c))
}

// ended says of which operation on v an error of its memory is, and that ctx ended if that is the cause.
func (v *View) ended(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return v.fail(op, ctx.Err(), context.Cause(ctx))
	}
	if e, ok := err.(*Error); ok { //nolint:errorlint // a wrapped one is a cause
		named := *e
		named.Op, named.Object = op, v.Name()
		named.Kind = cmp.Or(e.Kind, categoryOf(e.Err), ErrUnavailable)
		return &named
	}
	return v.fail(op, cmp.Or(categoryOf(err), ErrUnavailable), err)
}
