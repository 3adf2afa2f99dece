// Package onnxruntime hands views to ONNX Runtime without a copy, as tensors that it reads and as tensors that it writes its results to. It is for
// programs that use github.com/yalue/onnxruntime_go, which needs cgo, and the library that belongs to its version.
//
//	x, err := onnxruntime.Input(samples)
//	...
//	defer x.Destroy()
//	y, err := onnxruntime.Output(scores) // of a view that was taken with hostplugin.Writable()
//	...
//	defer y.Destroy()
//	err = session.Run([]ort.Value{x}, []ort.Value{y}) // from one array of the program to another
//
// A tensor holds the memory of its view: it stays until the view is closed and Destroy was called, in any order. What the program
// writes to an array while a model runs may be seen in part.
package onnxruntime

import (
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
	ort "github.com/yalue/onnxruntime_go"
)

// Tensor is an ort.Value over the memory of a view. Destroy must be called when it is not needed any more.
type Tensor struct {
	*ort.CustomDataTensor
	release func()
}

var _ ort.Value = (*Tensor)(nil)

// Input returns a view as a tensor that ONNX Runtime reads. The elements must be contiguous and aligned, there must be some, and
// at least one axis (core.ErrLayout: use core.Copy), and the host must be able to read them (core.ErrDevice). An error wraps core.ErrDType for
// elements that ONNX Runtime does not have, and core.ErrUnavailable before ort.InitializeEnvironment was called.
func Input(v *core.View) (*Tensor, error) { return tensor("input", v) }

// Output returns a writable view (core.ErrReadOnly) as a tensor that ONNX Runtime writes to. Its shape must be that of the
// model's output. Other errors are those of Input.
func Output(v *core.View) (*Tensor, error) {
	if !v.Writable() {
		return nil, fail("output", v, core.ErrReadOnly, errors.New("a model writes to it, and the view is not writable"), "take the view with hostplugin.Writable()")
	}
	return tensor("output", v)
}

// Destroy gives up the tensor and its hold on the memory. It may be called more than once, but not while a model runs
// with it.
func (t *Tensor) Destroy() error {
	defer t.release()
	return t.CustomDataTensor.Destroy()
}

// types says what ONNX Runtime calls element types.
var types = map[core.DType]ort.TensorElementDataType{
	core.Bool: ort.TensorElementDataTypeBool,
	core.Int8: ort.TensorElementDataTypeInt8, core.Int16: ort.TensorElementDataTypeInt16, core.Int32: ort.TensorElementDataTypeInt32, core.Int64: ort.TensorElementDataTypeInt64,
	core.Uint8: ort.TensorElementDataTypeUint8, core.Uint16: ort.TensorElementDataTypeUint16, core.Uint32: ort.TensorElementDataTypeUint32, core.Uint64: ort.TensorElementDataTypeUint64,
	core.Float16: ort.TensorElementDataTypeFloat16, core.BFloat16: ort.TensorElementDataTypeBFloat16,
	core.Float32: ort.TensorElementDataTypeFloat, core.Float64: ort.TensorElementDataTypeDouble,
}

func tensor(op string, v *core.View) (*Tensor, error) {
	dtype, ok := types[v.DType()]
	switch {
	case !ok:
		return nil, fail(op, v, core.ErrDType, fmt.Errorf("no tensors of %v", v.Layout()), "")
	case v.Rank() == 0 || v.Len() == 0:
		return nil, fail(op, v, core.ErrLayout, fmt.Errorf("no tensors of shape %v", v.Layout().Shape()), "")
	case !ort.IsInitialized():
		return nil, fail(op, v, core.ErrUnavailable, errors.New("the library is not loaded"), "call ort.InitializeEnvironment")
	}
	_, _, release, err := v.Acquire()
	if err != nil {
		return nil, err
	}
	bytes, err := v.Bytes()
	if err != nil {
		release()
		return nil, refused(op, err)
	}
	if v.Addr()%uintptr(v.DType().Size()) != 0 {
		release()
		return nil, fail(op, v, core.ErrLayout, fmt.Errorf("%v elements are not aligned", v.DType()), "use core.Copy")
	}
	shape := make(ort.Shape, v.Rank())
	for axis := range shape {
		shape[axis] = int64(v.Dim(axis))
	}
	t, err := ort.NewCustomDataTensor(shape, bytes, dtype)
	if err != nil {
		release()
		return nil, fail(op, v, core.ErrUnsupported, err, "")
	}
	return &Tensor{t, release}, nil
}

// refused says of which function an error of core is, and what can be done about a layout here.
func refused(op string, err error) error {
	e, ok := errors.AsType[*core.Error](err)
	if !ok {
		return err
	}
	said := *e
	if said.Op = op; errors.Is(err, core.ErrLayout) {
		said.Remedy = "use core.Copy"
	}
	return &said
}

func fail(op string, v *core.View, kind, cause error, remedy string) error {
	return &core.Error{Op: op, Object: v.Name(), Kind: kind, Err: cause, Remedy: remedy}
}
