package coretest

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/core"
)

// Array is an array of known contents.
type Array struct {
	Name     string
	DType    core.DType
	Tag      string // of an opaque type
	Shape    []int
	Fortran  bool   // stored with the first axis innermost; the values are the same
	ReadOnly bool   // may not be written
	Data     []byte // the elements, dense and in row-major order
}

// Script is a Python program that makes the arrays of [Arrays] with NumPy, as global variables.
const Script = `import numpy as np

columns = np.asfortranarray(np.arange(12, dtype=np.float64).reshape(3, 4))
counts = np.arange(-3, 4, dtype=np.int64) * 1_000_000_007
dates = (np.arange(3, dtype=np.int64) * 86_400_000_000_000).view("datetime64[ns]")
empty = np.zeros((0, 3), np.float32)
flags = np.arange(5) % 2 == 0
foreign = np.arange(4).astype(">f8")
halves = (np.arange(6) / 4).astype(np.float16)
picture = (np.arange(512 * 512 * 4) % 251).astype(np.uint8).reshape(512, 512, 4)
samples = (np.arange(24) / 2 - 3).astype(np.float32).reshape(4, 6)
scalar = np.array(2.5)
waves = np.array([[1 + 2j, 0 - 3j], [0.5, -1 - 1j]])
`

// Arrays returns the arrays that a producer offers to [Conform], sorted by name: numbers of several types, dates and
// numbers of a foreign byte order (which are opaque), arrays without axes, without elements and in Fortran order, and
// one of 1 MiB. [Script] makes them in Python, and [Array.NPY] as files. Each call makes new ones.
func Arrays() []Array {
	const day = 24 * 60 * 60 * 1_000_000_000
	return []Array{
		{
			Name: "columns", DType: core.Float64, Shape: []int{3, 4}, Fortran: true,
			Data: encode(12, func(i int) float64 { return float64(i) }),
		},
		{
			Name: "counts", DType: core.Int64, Shape: []int{7},
			Data: encode(7, func(i int) int64 { return int64(i-3) * 1_000_000_007 }),
		},
		{
			Name: "dates", DType: opaque8, Tag: "datetime64[ns]", Shape: []int{3},
			Data: encode(3, func(i int) int64 { return int64(i) * day }),
		},
		{Name: "empty", DType: core.Float32, Shape: []int{0, 3}, Data: []byte{}},
		{
			Name: "flags", DType: core.Bool, Shape: []int{5},
			Data: encode(5, func(i int) bool { return i%2 == 0 }),
		},
		{
			Name: "foreign", DType: opaque8, Tag: ">f8", Shape: []int{4},
			Data: encode(4, func(i int) uint64 { return bits.ReverseBytes64(math.Float64bits(float64(i))) }),
		},
		{
			Name: "halves", DType: core.Float16, Shape: []int{6},
			Data: encode(6, func(i int) core.F16 { return core.F16Of(float32(i) / 4) }),
		},
		{
			Name: "picture", DType: core.Uint8, Shape: []int{512, 512, 4},
			Data: encode(1<<20, func(i int) uint8 { return uint8(i % 251) }),
		},
		{
			Name: "samples", DType: core.Float32, Shape: []int{4, 6},
			Data: encode(24, func(i int) float32 { return float32(i)/2 - 3 }),
		},
		{Name: "scalar", DType: core.Float64, Data: encode(1, func(int) float64 { return 2.5 })},
		{
			Name: "waves", DType: core.Complex128, Shape: []int{2, 2},
			Data: encode(4, func(i int) complex128 { return []complex128{1 + 2i, -3i, 0.5, -1 - 1i}[i] }),
		},
	}
}

// opaque8 is the type of opaque elements of eight bytes.
const opaque8 = core.DType(3<<24 | 8<<16 | 8)

// encode is the memory of n elements.
func encode[T core.Element](n int, element func(i int) T) []byte {
	values := make([]T, n)
	for i := range values {
		values[i] = element(i)
	}
	return NewMemory(values).Bytes()
}

// Layout returns the layout of the array when its bytes are stored from the first byte of a memory onwards.
func (a Array) Layout() (core.Layout, error) {
	spec := core.LayoutSpec{DType: a.DType, Shape: a.Shape, ReadOnly: a.ReadOnly, Tag: a.Tag}
	if a.Fortran {
		stride := a.DType.Size()
		for _, dim := range a.Shape {
			spec.Strides = append(spec.Strides, stride)
			stride *= max(dim, 1)
		}
	}
	return core.NewLayout(spec)
}

// Stored returns the bytes of the array as they are stored: Data, or the transpose of Data for Fortran order.
func (a Array) Stored() ([]byte, error) {
	if !a.Fortran {
		return a.Data, nil
	}
	dense := a
	dense.Fortran = false
	l, err := dense.Layout()
	if err != nil {
		return nil, err
	}
	v, err := core.NewView(l, NewMemory(a.Data), nil)
	if err != nil {
		return nil, err
	}
	defer v.Close() //nolint:errcheck // its memory is a slice
	w, err := v.Transpose()
	if err != nil {
		return nil, err
	}
	defer w.Close() //nolint:errcheck // its memory is a slice
	stored := make([]byte, w.NBytes())
	_, err = core.CopyBytes(context.Background(), stored, w)
	return stored, err
}

// NPY returns the array as a file of NumPy's .npy format, version 1.0.
func (a Array) NPY() ([]byte, error) {
	stored, err := a.Stored()
	if err != nil {
		return nil, err
	}
	descr, ok := map[core.DType]string{
		core.Bool: "|b1", core.Uint8: "|u1", core.Int64: "<i8", core.Float16: "<f2", core.Float32: "<f4",
		core.Float64: "<f8", core.Complex128: "<c16",
	}[a.DType]
	switch {
	case a.Tag == "datetime64[ns]":
		descr = "<M8[ns]"
	case a.Tag != "":
		descr = a.Tag
	case !ok:
		return nil, fmt.Errorf("no .npy type for %v", a.DType)
	}
	var shape strings.Builder
	for _, dim := range a.Shape {
		fmt.Fprintf(&shape, "%d, ", dim)
	}
	order := map[bool]string{true: "True", false: "False"}[a.Fortran]
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", descr, order, &shape)
	const preamble, align = 10, 64
	pad := align - (preamble+len(header)+1)%align
	header += strings.Repeat(" ", pad%align) + "\n"
	file := []byte("\x93NUMPY\x01\x00")
	file = binary.LittleEndian.AppendUint16(file, uint16(len(header)))
	return slices.Concat(file, []byte(header), stored), nil
}

// DType returns the element type with a name that [core.ParseDType] knows. It panics for other names.
func DType(name string) core.DType {
	d, err := core.ParseDType(name)
	if err != nil {
		panic(err)
	}
	return d
}
