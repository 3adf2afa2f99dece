package gonum

import (
	"fmt"

	"github.com/ndbridge/ndbridge/core"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

// Matrix returns a view of two axes, of float64 or float32, as a matrix that can only be read, over the same memory and
// of any strides. Gonum multiplies rows of float64 without gaps, and their transposes, by BLAS; of others it reads each
// element by At. Errors wrap core.ErrDType for other elements, and core.ErrLayout for other ranks and for no rows or no
// columns.
func Matrix(v *core.View) (mat.Matrix, error) {
	if v.Rank() != 2 {
		return nil, unfit("matrix", v, fmt.Errorf("want 2 axes, have %d", v.Rank()), "")
	}
	if v.Len() == 0 {
		return nil, unfit("matrix", v, fmt.Errorf("%d rows of %d columns", v.Dim(0), v.Dim(1)), "")
	}
	if v.DType() == core.Float32 {
		return elements[float32](v)
	}
	if raw, err := general[float64]("matrix", v); err == nil {
		return readOnly{blas64.General{Rows: raw.rows, Cols: raw.cols, Stride: raw.stride, Data: raw.data}}, nil
	}
	transposed, err := v.Transpose()
	if err != nil {
		return nil, named("matrix", err)
	}
	defer transposed.Close() //nolint:errcheck // v keeps the memory
	if raw, err := general[float64]("matrix", transposed); err == nil {
		return readOnly{blas64.General{Rows: raw.rows, Cols: raw.cols, Stride: raw.stride, Data: raw.data}}.T(), nil
	}
	return elements[float64](v)
}

// readOnly is rows that Gonum knows, without the methods of mat.Dense that write.
type readOnly struct{ raw blas64.General }

func (m readOnly) Dims() (r, c int) { return m.raw.Rows, m.raw.Cols }
func (m readOnly) T() mat.Matrix    { return mat.Transpose{Matrix: m} }

// RawMatrix implements mat.RawMatrixer, by which Gonum finds what it can give to BLAS to read.
func (m readOnly) RawMatrix() blas64.General { return m.raw }

func (m readOnly) At(i, j int) float64 {
	check(m, i, j)
	return m.raw.Data[i*m.raw.Stride+j]
}

// strided is a matrix of any strides.
type strided[T float32 | float64] struct {
	rows, cols   int
	data         []T
	offset       int
	toRow, toCol int
}

func elements[T float32 | float64](v *core.View) (mat.Matrix, error) {
	data, offset, strides, err := core.Strided[T](v)
	if err != nil {
		return nil, named("matrix", err)
	}
	return strided[T]{v.Dim(0), v.Dim(1), data, offset, strides[0], strides[1]}, nil
}

func (m strided[T]) Dims() (r, c int) { return m.rows, m.cols }
func (m strided[T]) T() mat.Matrix    { return mat.Transpose{Matrix: m} }

func (m strided[T]) At(i, j int) float64 {
	check(m, i, j)
	return float64(m.data[m.offset+i*m.toRow+j*m.toCol])
}

// check panics as Gonum's own matrices do.
func check(m mat.Matrix, i, j int) {
	r, c := m.Dims()
	if uint(i) >= uint(r) {
		panic(mat.ErrRowAccess)
	}
	if uint(j) >= uint(c) {
		panic(mat.ErrColAccess)
	}
}
