// Package gomlx hands views to GoMLX, and its results to views.
//
//	x, err := gomlx.Tensor(ctx, backend, samples)
//	...
//	y, err := model.Exec1(x)
//	...
//	err = gomlx.Store(ctx, scores, y) // of a view that was taken with hostplugin.Writable()
//
// GoMLX computes in buffers that its backends allocate; none takes memory of others. So there is one copy on the way in and one on
// the way out, and no more: with a backend whose buffers the host can touch, as those of "simplego" in pure Go, the elements go straight
// from the program's memory into the buffer, and from the buffer into the program's memory. With others GoMLX adds the
// transfers to its device.
//
// As the elements are copied, views may be of any layout and on any device from which core.Copy can copy. A tensor has nothing to
// do with its view any more, which may be closed.
package gomlx

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/ndbridge/ndbridge/core"
)

// Tensor returns a tensor with the elements of a view, on the first device of a backend. Errors wrap core.ErrDType for elements that
// GoMLX does not have, are those of core.Copy, or the backend's. The caller may call FinalizeAll on the tensor when it is not
// needed any more; else the garbage collector does.
func Tensor(ctx context.Context, backend backends.Backend, v *core.View) (*tensors.Tensor, error) {
	k, ok := kinds[v.DType()]
	if !ok {
		return nil, &core.Error{Op: "tensor", Object: v.Name(), Kind: core.ErrDType, Err: fmt.Errorf("GoMLX has no %v", v.Layout())}
	}
	shape := shapes.Make(k.dtype, v.Layout().Shape()...)
	if !backend.HasSharedBuffers() || v.Len() == 0 {
		t := tensors.FromShape(shape)
		var copied error
		err := t.MutableFlatData(func(flat any) { copied = k.take(ctx, flat, v) })
		return t, errors.Join(err, copied)
	}
	buffer, flat, err := backend.NewSharedBuffer(0, shape)
	if err != nil {
		return nil, err
	}
	if err := k.take(ctx, flat, v); err != nil {
		return nil, errors.Join(err, backend.BufferFinalize(buffer))
	}
	return tensors.FromBuffer(backend, buffer)
}

// Store copies a tensor over the elements of a writable view (core.ErrReadOnly) of the same type (core.ErrDType) and shape
// (core.ErrLayout). Other errors are those of core.Put, or the backend's.
func Store(ctx context.Context, v *core.View, t *tensors.Tensor) error {
	k, ok := kinds[v.DType()]
	if !ok || t.DType() != k.dtype {
		return &core.Error{Op: "store", Object: v.Name(), Kind: core.ErrDType, Err: fmt.Errorf("a tensor of %v for elements of %v", t.DType(), v.DType()), Remedy: "convert the tensor (graph.ConvertDType)"}
	}
	if shape := t.Shape().Dimensions; !slices.Equal(shape, v.Layout().Shape()) {
		return &core.Error{Op: "store", Object: v.Name(), Kind: core.ErrLayout, Err: fmt.Errorf("a tensor of shape %v for a view of %v", shape, v.Layout().Shape())}
	}
	var stored error
	err := t.ConstFlatData(func(flat any) { stored = k.give(ctx, v, flat) })
	return errors.Join(err, stored)
}

// kind is how elements of a type are copied to and from a slice of GoMLX's.
type kind struct {
	dtype dtypes.DType
	take  func(ctx context.Context, flat any, v *core.View) error
	give  func(ctx context.Context, v *core.View, flat any) error
}

func kindOf[T core.Element](d dtypes.DType) kind {
	return kind{
		dtype: d,
		take: func(ctx context.Context, flat any, v *core.View) error {
			_, err := core.Copy(ctx, elements[T](flat), v)
			return err
		},
		give: func(ctx context.Context, v *core.View, flat any) error {
			_, err := core.Put(ctx, v, elements[T](flat))
			return err
		},
	}
}

var kinds = map[core.DType]kind{
	core.Bool: kindOf[bool](dtypes.Bool),
	core.Int8: kindOf[int8](dtypes.Int8), core.Int16: kindOf[int16](dtypes.Int16), core.Int32: kindOf[int32](dtypes.Int32), core.Int64: kindOf[int64](dtypes.Int64),
	core.Uint8: kindOf[uint8](dtypes.Uint8), core.Uint16: kindOf[uint16](dtypes.Uint16), core.Uint32: kindOf[uint32](dtypes.Uint32), core.Uint64: kindOf[uint64](dtypes.Uint64),
	core.Float16: kindOf[core.F16](dtypes.Float16), core.BFloat16: kindOf[core.BF16](dtypes.BFloat16),
	core.Float32: kindOf[float32](dtypes.Float32), core.Float64: kindOf[float64](dtypes.Float64),
	core.Complex64: kindOf[complex64](dtypes.Complex64), core.Complex128: kindOf[complex128](dtypes.Complex128),
}
