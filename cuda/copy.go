package cuda

import (
	"context"
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/gpu/imports"
)

// Copy waits until the view's memory is ready, and copies its elements to dst, in row-major order
// whatever the strides. It returns their number. Copy is [core.Copy] for views wherever they lie: the
// CPU copies those that it can read.
//
// T must be the element type of v (core.ErrDType), and dst must have room for v.Len elements
// (core.ErrLayout). The error wraps core.ErrUnavailable if the program ended before the memory was
// ready or before the copy was done, core.ErrDevice for GPU memory that is not a program's, or
// core.ErrClosed; or it is that of ctx. After an error dst may be partly written.
func Copy[T core.Element](ctx context.Context, dst []T, v *core.View) (int, error) {
	switch {
	case v.DType() != core.DTypeOf[T]():
		return core.Copy(dst, v) // whose refusal says it best
	case len(dst) < v.Len():
		return 0, tooSmall(v, "elements", len(dst), v.Len())
	case v.Device().HostReadable():
		if err := v.Wait(ctx); err != nil {
			return 0, err
		}
		return core.Copy(dst, v)
	}
	raw := rawBytes(dst[:v.Len()])
	if _, err := CopyBytes(ctx, raw, v); err != nil {
		return 0, err
	}
	if v.DType() == core.Bool {
		for i, b := range raw {
			raw[i] = min(b, 1) // a bool of another byte than 0 or 1 must not get into Go
		}
	}
	return v.Len(), nil
}

// CopyBytes is [Copy] for any element type: it copies the bytes of the elements, and returns their
// number, v.NBytes. If packed elements do not fill the last byte, CopyBytes writes its other bits as
// zeros.
func CopyBytes(ctx context.Context, dst []byte, v *core.View) (int, error) {
	const op = "copy"
	n := int(v.NBytes())
	if len(dst) < n {
		return 0, tooSmall(v, "bytes", len(dst), n)
	}
	if err := v.Wait(ctx); err != nil {
		return 0, err
	}
	if v.Device().HostReadable() {
		return core.CopyBytes(dst, v)
	}
	err := useImported(v, func(m *imports.Memory) error {
		return m.CopyOut(ctx, dst[:n], v.Layout())
	})
	if err != nil {
		return 0, copyError(ctx, op, v, err)
	}
	if bits := v.Len() * v.DType().Bits() * v.DType().Lanes() % 8; bits != 0 && v.DType().Packed() {
		dst[n-1] &= 1<<bits - 1
	}
	return n, nil
}

// Put waits until the view's memory is ready, and copies src over its elements, in row-major order
// whatever the strides. It returns their number when the copy is done. Put is [core.Put] for views
// wherever they lie. The view must be writable (core.ErrReadOnly), and src must have exactly v.Len
// elements (core.ErrLayout). The other errors are those of [Copy]. After an error v may be partly
// written.
func Put[T core.Element](ctx context.Context, v *core.View, src []T) (int, error) {
	const op = "put"
	switch {
	case v.DType() != core.DTypeOf[T]():
		return core.Put(v, src) // whose refusal says it best
	case !v.Writable():
		return 0, &core.Error{Op: op, Object: v.Name(), Kind: core.ErrReadOnly}
	case len(src) != v.Len():
		return 0, &core.Error{
			Op: op, Object: v.Name(), Kind: core.ErrLayout, Err: fmt.Errorf("%d elements for %d", len(src), v.Len()),
		}
	}
	if err := v.Wait(ctx); err != nil {
		return 0, err
	}
	if v.Device().HostReadable() {
		return core.Put(v, src)
	}
	err := useImported(v, func(m *imports.Memory) error {
		return m.CopyIn(ctx, v.Layout(), rawBytes(src))
	})
	if err != nil {
		return 0, copyError(ctx, op, v, err)
	}
	return len(src), nil
}

// useImported calls f with the view's memory if the view has elements. The memory must be a program's;
// if the program ends before f returns, the outcome is an error.
func useImported(v *core.View, f func(*imports.Memory) error) error {
	return v.Use(func(mem core.Memory, _ int) error {
		if mem == nil || v.Len() == 0 {
			return nil
		}
		m, ok := mem.(*imports.Memory)
		if !ok {
			return &core.Error{
				Kind: core.ErrDevice, Err: fmt.Errorf("memory of %v that no session has opened", v.Device()),
				Remedy: "copy it with the library that made it",
			}
		}
		if err := m.Usable(); err != nil {
			return err
		}
		if err := f(m); err != nil {
			return err
		}
		return m.Usable()
	})
}

func copyError(ctx context.Context, op string, v *core.View, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return &core.Error{Op: op, Object: v.Name(), Kind: ctx.Err(), Err: context.Cause(ctx)}
	}
	return about(op, v.Name(), err)
}

func tooSmall(v *core.View, what string, room, need int) error {
	return &core.Error{
		Op: "copy", Object: v.Name(), Kind: core.ErrLayout, Err: fmt.Errorf("room for %d %s of %d", room, what, need),
	}
}
