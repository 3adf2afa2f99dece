package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// matrix is a view of float32 numbers, as a session of hostplugin gives them.
func matrix(data []float32, shape ...int) *core.View {
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Float32, Shape: shape})
	if err != nil {
		panic(err)
	}
	v, err := core.NewView(l, coretest.NewMemory(data), &core.ViewOptions{Name: "frame", Framework: "numpy", Writable: true})
	if err != nil {
		panic(err)
	}
	return v
}

// Slice is live memory: what the program writes appears in it.
func ExampleSlice() {
	program := []float32{1, 2, 3, 4, 5, 6}
	v := matrix(program, 2, 3)
	defer v.Close()

	x, err := core.Slice[float32](v)
	if err != nil {
		fmt.Println(err)
		return
	}
	program[0] = 10
	fmt.Println(x)
	// Output: [10 2 3 4 5 6]
}

func ExampleAt() {
	v := matrix([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	defer v.Close()

	x, err := core.At[float32](v, 1, 2)
	fmt.Println(x, err)
	_, err = core.At[float32](v, 2, 0)
	fmt.Println(err)
	// Output:
	// 6 <nil>
	// at frame: layout not supported: index 2 outside axis 0 of extent 2
}

func ExampleRows() {
	v := matrix([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	defer v.Close()

	rows, err := core.Rows[float32](v)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, row := range rows {
		fmt.Println(i, row)
	}
	// Output:
	// 0 [1 2 3]
	// 1 [4 5 6]
}

// Values follows any strides, here those of a transposed view.
func ExampleValues() {
	v := matrix([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	defer v.Close()
	turned, err := v.Transpose()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer turned.Close()

	values, err := core.Values[float32](turned)
	if err != nil {
		fmt.Println(err)
		return
	}
	for x := range values {
		fmt.Print(x, " ")
	}
	// Output: 1 4 2 5 3 6
}

// A crop shares the memory of its array. It is closed on its own.
func ExampleView_Sub() {
	v := matrix([]float32{
		0, 1, 2, 3,
		4, 5, 6, 7,
		8, 9, 10, 11,
	}, 3, 4)
	defer v.Close()
	rows, err := v.Sub(0, 1, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rows.Close()
	crop, err := rows.Sub(1, 1, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer crop.Close()

	values, err := core.Values[float32](crop)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(crop.Layout())
	for x := range values {
		fmt.Print(x, " ")
	}
	// Output:
	// float32[2 2]
	// 5 6 9 10
}

// A library that takes strides works on a transposed view without a copy.
func ExampleStrided() {
	v := matrix([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	defer v.Close()
	turned, err := v.Transpose()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer turned.Close()

	data, offset, strides, err := core.Strided[float32](turned)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(data, offset, strides)
	fmt.Println("row 2, column 1:", data[offset+2*strides[0]+1*strides[1]])
	// Output:
	// [1 2 3 4 5 6] 0 [1 3]
	// row 2, column 1: 6
}

// Copy works wherever the memory lies: on the CPU or on a GPU.
func ExampleCopy() {
	v := matrix([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	defer v.Close()

	mine := make([]float32, v.Len())
	n, err := core.Copy(context.Background(), mine, v)
	fmt.Println(n, err, mine)
	// Output: 6 <nil> [1 2 3 4 5 6]
}

// The program sees what a host writes through a view that it took for writing.
func ExamplePut() {
	program := make([]float32, 4)
	v := matrix(program, 2, 2)
	defer v.Close()

	if _, err := core.Put(context.Background(), v, []float32{1, 2, 3, 4}); err != nil {
		fmt.Println(err)
		return
	}
	if err := core.Set[float32](v, 40, 1, 1); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(program)
	// Output: [1 2 3 40]
}

// Go has no half-precision numbers; F16 and BF16 convert them.
func ExampleF16() {
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Float16, Shape: []int{3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	program := []core.F16{core.F16Of(1), core.F16Of(0.1), core.F16Of(70000)}
	v, err := core.NewView(l, coretest.NewMemory(program), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer v.Close()

	x, err := core.Slice[core.F16](v)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, half := range x {
		fmt.Print(half.Float32(), " ")
	}
	fmt.Println(core.BF16Of(0.1).Float32())
	// Output: 1 0.099975586 +Inf 0.100097656
}

// Elements of a type that Go does not have are read as the bits that they are.
func ExampleView_As() {
	fp8, err := core.ParseDType("float8_e4m3fn")
	if err != nil {
		fmt.Println(err)
		return
	}
	l, err := core.NewLayout(core.LayoutSpec{DType: fp8, Shape: []int{2}})
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := core.NewView(l, coretest.NewMemory([]uint8{0x38, 0xb8}), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer v.Close()

	bits, err := v.As(core.Uint8)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer bits.Close()
	x, err := core.Slice[uint8](bits)
	fmt.Printf("%v as %#x %v\n", v.DType(), x, err)
	// Output: float8_e4m3fn as 0x38b8 <nil>
}

// CopyBytes takes every element type, those included whose elements share bytes.
func ExampleCopyBytes() {
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Int4, Shape: []int{3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := core.NewView(l, coretest.NewMemory([]uint8{0x21, 0xf3}), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer v.Close()

	data := make([]byte, v.NBytes())
	n, err := core.CopyBytes(context.Background(), data, v)
	fmt.Printf("%d bytes %#x %v\n", n, data, err)
	// Output: 2 bytes 0x2103 <nil>
}

// Two layouts are equal if they describe the same elements at the same places.
func ExampleLayout_Equal() {
	dense, err := core.NewLayout(core.LayoutSpec{DType: core.Float32, Shape: []int{2, 3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	spelled, err := core.NewLayout(core.LayoutSpec{DType: core.Float32, Shape: []int{2, 3}, Strides: []int{12, 4}})
	if err != nil {
		fmt.Println(err)
		return
	}
	turned, err := dense.Transpose()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(dense.Equal(spelled), dense.Equal(turned))
	fmt.Println(dense, dense.Strides(), dense.Contiguous())
	fmt.Println(turned, turned.Strides(), turned.Contiguous())
	// Output:
	// true false
	// float32[2 3] [12 4] true
	// float32[3 2] [4 12] false
}

// Category tells errors apart; errors.Is asks for one thing; an Error says what to do.
func ExampleCategory() {
	v := matrix([]float32{1, 2, 3, 4}, 2, 2)
	_, wrongType := core.Slice[float64](v)
	turned, err := v.Transpose()
	if err != nil {
		fmt.Println(err)
		return
	}
	_, strided := core.Slice[float32](turned)
	fmt.Println(turned.Close(), v.Close())
	_, closed := core.At[float32](v, 0, 0)

	for _, err := range []error{wrongType, strided, closed} {
		fmt.Println(core.Category(err))
		if e, ok := errors.AsType[*core.Error](err); ok && e.Remedy != "" {
			fmt.Println("  remedy:", e.Remedy)
		}
	}
	fmt.Println(errors.Is(closed, core.ErrClosed))
	// Output:
	// <nil> <nil>
	// wrong dtype
	// layout not supported
	//   remedy: use Values, Strided, Copy or CopyBytes
	// closed
	// true
}

// The JSON of a view is its description, for logs and reports.
func ExampleView_MarshalJSON() {
	v := matrix([]float32{1, 2, 3, 4}, 2, 2)
	defer v.Close()

	text, err := json.MarshalIndent(v, "", "  ")
	fmt.Println(string(text), err)
	// Output:
	// {
	//   "name": "frame",
	//   "framework": "numpy",
	//   "dtype": "float32",
	//   "tag": "",
	//   "shape": [
	//     2,
	//     2
	//   ],
	//   "strides": [
	//     8,
	//     4
	//   ],
	//   "device": "cpu",
	//   "read_only": false,
	//   "nbytes": 16,
	//   "route": "",
	//   "reason": "",
	//   "copied": false,
	//   "quirks": [],
	//   "writable": true,
	//   "version": 0,
	//   "published": null
	// } <nil>
}
