package arrow

import (
	"context"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/ndbridge/ndbridge/core"
)

// Type says what arrays of a layout are to Arrow.
//
//   - With one axis, integers and floats are arrays of Arrow's type of the same size, and booleans are "arrow.bool8", whose
//     elements have a byte each. Without an axis they are arrays of one element.
//   - With several axes, the first one becomes the rows, and each row is an element of "arrow.fixed_shape_tensor". Booleans
//     are uint8 there.
//
// Errors wrap core.ErrDType for elements that Arrow does not have, and core.ErrLayout for rows of no elements or of more than
// 2³¹-1.
func Type(l core.Layout) (arrow.DataType, error) {
	return typeOf("type", "", l)
}

func typeOf(op, name string, l core.Layout) (arrow.DataType, error) {
	number, ok := numbers[l.DType()]
	if !ok {
		return nil, &core.Error{
			Op: op, Object: name, Kind: core.ErrDType, Err: fmt.Errorf("elements of Arrow are never %v", l), Remedy: "convert the array in Python (in Go: say with View.As what the elements are)",
		}
	}
	if l.Rank() < 2 {
		if l.DType() == core.Bool {
			return extensions.NewBool8Type(), nil
		}
		return number, nil
	}
	row := l.Shape()[1:]
	n := 1
	for _, dim := range row {
		if n *= dim; n == 0 || n > math.MaxInt32 {
			return nil, &core.Error{Op: op, Object: name, Kind: core.ErrLayout, Err: fmt.Errorf("rows of %v elements; they have 1 to %d", row, math.MaxInt32)}
		}
	}
	return newTensorType(number, row, int32(n)), nil
}

// numbers is what Arrow calls element types; booleans are the bytes that they are stored in.
var numbers = map[core.DType]arrow.DataType{
	core.Bool: arrow.PrimitiveTypes.Uint8,
	core.Int8: arrow.PrimitiveTypes.Int8, core.Int16: arrow.PrimitiveTypes.Int16, core.Int32: arrow.PrimitiveTypes.Int32, core.Int64: arrow.PrimitiveTypes.Int64,
	core.Uint8: arrow.PrimitiveTypes.Uint8, core.Uint16: arrow.PrimitiveTypes.Uint16, core.Uint32: arrow.PrimitiveTypes.Uint32, core.Uint64: arrow.PrimitiveTypes.Uint64,
	core.Float16: arrow.FixedWidthTypes.Float16, core.Float32: arrow.PrimitiveTypes.Float32, core.Float64: arrow.PrimitiveTypes.Float64,
}

// Array returns a view as an array of Arrow's over the same memory, of the type that Type says. The elements must be
// contiguous and aligned (core.ErrLayout: use Copy, or Tensor) and readable by the host (core.ErrDevice: use Copy). Other
// errors are those of Type. The caller calls Release; see the package's comment.
func Array(v *core.View) (arrow.Array, error) {
	dt, err := typeOf("array", v.Name(), v.Layout())
	if err != nil {
		return nil, err
	}
	if v.Len() > 0 && !v.Layout().Contiguous() {
		return nil, &core.Error{
			Op: "array", Object: v.Name(), Kind: core.ErrLayout, Err: fmt.Errorf("not contiguous: shape %v, strides %v", v.Layout().Shape(), v.Strides()), Remedy: "use Copy or Tensor",
		}
	}
	buffer, err := borrow("array", v)
	if err != nil {
		return nil, err
	}
	return build(v.Layout(), dt, buffer), nil
}

// Copy returns a copy of a view of any layout, also of a GPU's memory, as an array of Arrow's in memory of an allocator. Errors are
// those of Type and of core.Copy. The caller calls Release.
func Copy(ctx context.Context, v *core.View, mem memory.Allocator) (arrow.Array, error) {
	dt, err := typeOf("copy", v.Name(), v.Layout())
	if err != nil {
		return nil, err
	}
	buffer := memory.NewResizableBuffer(mem)
	buffer.Resize(int(v.NBytes()))
	if _, err := core.CopyBytes(ctx, buffer.Bytes(), v); err != nil {
		buffer.Release()
		return nil, err
	}
	return build(v.Layout(), dt, buffer), nil
}

// build makes an array of a buffer, which it takes over.
func build(l core.Layout, dt arrow.DataType, buffer *memory.Buffer) arrow.Array {
	defer buffer.Release()
	number := numbers[l.DType()]
	if _, ok := dt.(*extensions.Bool8Type); ok {
		number = arrow.PrimitiveTypes.Int8
	}
	data := array.NewData(number, l.Len(), []*memory.Buffer{nil, buffer}, nil, 0, 0)
	defer data.Release()
	if list, ok := storage(dt).(*arrow.FixedSizeListType); ok {
		rows := array.NewData(list, l.Dim(0), []*memory.Buffer{nil}, []arrow.ArrayData{data}, 0, 0)
		defer rows.Release()
		data = rows
	}
	plain := array.MakeFromData(data)
	extension, ok := dt.(arrow.ExtensionType)
	if !ok {
		return plain
	}
	defer plain.Release()
	return array.NewExtensionArrayWithStorage(extension, plain)
}

// storage is what the elements of a type are stored as.
func storage(dt arrow.DataType) arrow.DataType {
	if e, ok := dt.(arrow.ExtensionType); ok {
		return e.StorageType()
	}
	return dt
}
