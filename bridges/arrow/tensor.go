package arrow

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/tensor"
	"github.com/ndbridge/ndbridge/core"
)

// Tensor returns a view as a tensor of Arrow's over the same memory, of the same shape and strides: crops and transposed
// views, too. Errors wrap core.ErrDType for elements other than integers, float32 and float64, and core.ErrLayout for negative
// strides and for those that are no multiple of an element's size. Other errors are those of Array. The caller calls
// Release; see the package's comment.
func Tensor(v *core.View) (tensor.Interface, error) {
	number, ok := numbers[v.DType()]
	if !ok || v.DType() == core.Bool || v.DType() == core.Float16 {
		remedy := ""
		if ok {
			remedy = "use Array"
		}
		return nil, &core.Error{Op: "tensor", Object: v.Name(), Kind: core.ErrDType, Err: fmt.Errorf("elements of Arrow's tensors are never %v", v.Layout()), Remedy: remedy}
	}
	strides := make([]int64, v.Rank())
	for axis := range strides {
		strides[axis] = int64(v.Stride(axis))
		if v.Dim(axis) > 1 && v.Len() > 0 && (strides[axis] < 0 || strides[axis]%int64(v.DType().Size()) != 0) {
			return nil, &core.Error{Op: "tensor", Object: v.Name(), Kind: core.ErrLayout, Err: fmt.Errorf("strides %v", v.Strides()), Remedy: "use Copy"}
		}
	}
	if v.Layout().Contiguous() {
		strides = nil // Arrow knows them
	}
	buffer, err := borrow("tensor", v)
	if err != nil {
		return nil, err
	}
	defer buffer.Release()
	data := array.NewData(number, buffer.Len()/v.DType().Size(), []*memory.Buffer{nil, buffer}, nil, 0, 0)
	defer data.Release()
	return tensor.New(data, int64s(v.Layout().Shape()), strides, nil), nil
}

func int64s(shape []int) []int64 {
	out := make([]int64, len(shape))
	for i, dim := range shape {
		out[i] = int64(dim)
	}
	return out
}

// tensorType is Arrow's "arrow.fixed_shape_tensor", which its library for Go does not have: each element is an array of one
// shape, in row-major order.
type tensorType struct {
	arrow.ExtensionBase
	shape []int
}

func newTensorType(number arrow.DataType, shape []int, n int32) *tensorType {
	return &tensorType{arrow.ExtensionBase{Storage: arrow.FixedSizeListOf(n, number)}, shape}
}

// tensorArray is an array of a tensorType.
type tensorArray struct{ array.ExtensionArrayBase }

func (a *tensorArray) String() string        { return a.Storage().String() }
func (a *tensorArray) ValueStr(i int) string { return a.Storage().ValueStr(i) }

func (*tensorType) ArrayType() reflect.Type { return reflect.TypeFor[tensorArray]() }
func (*tensorType) ExtensionName() string   { return "arrow.fixed_shape_tensor" }

func (t *tensorType) String() string {
	return fmt.Sprintf("extension<%s%v>", t.ExtensionName(), t.shape)
}

func (t *tensorType) ExtensionEquals(other arrow.ExtensionType) bool {
	o, ok := other.(*tensorType)
	return ok && slices.Equal(t.shape, o.shape) && arrow.TypeEqual(t.Storage, o.Storage)
}

// Serialize gives the shape, as the format wants it.
func (t *tensorType) Serialize() string {
	text, err := json.Marshal(map[string][]int{"shape": t.shape})
	if err != nil {
		panic(err) // numbers can be written
	}
	return string(text)
}

// Deserialize implements arrow.ExtensionType. Nobody calls it: the type is not registered, for a program may have one of its own.
func (*tensorType) Deserialize(arrow.DataType, string) (arrow.ExtensionType, error) {
	return nil, core.ErrUnsupported
}
