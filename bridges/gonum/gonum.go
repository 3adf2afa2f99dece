package gonum

import (
	"errors"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

// Dense returns a writable view of two axes as a matrix over the same memory. Errors wrap core.ErrReadOnly for a view
// that is not writable, core.ErrDType for elements other than float64, and core.ErrLayout for other ranks, for rows that
// are reversed, overlap or have gaps, and for no rows or no columns, which a Dense cannot have.
func Dense(v *core.View) (*mat.Dense, error) {
	if err := writable("dense", v); err != nil {
		return nil, err
	}
	raw, err := general[float64]("dense", v)
	if err != nil {
		return nil, err
	}
	if raw.rows == 0 || raw.cols == 0 {
		return nil, unfit("dense", v, fmt.Errorf("%d rows of %d columns", raw.rows, raw.cols), "")
	}
	m := new(mat.Dense)
	m.SetRawMatrix(blas64.General{Rows: raw.rows, Cols: raw.cols, Stride: raw.stride, Data: raw.data})
	return m, nil
}

// Vec returns a writable view of one axis as a vector over the same memory: also a column of a matrix, which View.Select
// gives, or every n-th element. Errors are those of Dense; a reversed view is one of core.ErrLayout.
func Vec(v *core.View) (*mat.VecDense, error) {
	if err := writable("vec", v); err != nil {
		return nil, err
	}
	data, inc, err := vector[float64]("vec", v)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return nil, unfit("vec", v, errors.New("no elements"), "")
	}
	vec := new(mat.VecDense)
	vec.SetRawVector(blas64.Vector{N: v.Dim(0), Data: data, Inc: inc})
	return vec, nil
}

// General64 returns a view of two axes, of float64, as BLAS takes it. The view need not be writable: then a routine must
// only read it. A matrix in column-major order is refused (core.ErrLayout): give v.Transpose, and blas.Trans to BLAS.
func General64(v *core.View) (blas64.General, error) {
	raw, err := general[float64]("general64", v)
	return blas64.General{Rows: raw.rows, Cols: raw.cols, Stride: raw.stride, Data: raw.data}, err
}

// General32 is General64 for float32.
func General32(v *core.View) (blas32.General, error) {
	raw, err := general[float32]("general32", v)
	return blas32.General{Rows: raw.rows, Cols: raw.cols, Stride: raw.stride, Data: raw.data}, err
}

// Vector64 returns a view of one axis, of float64, as BLAS takes it. The view need not be writable: then a routine must
// only read it.
func Vector64(v *core.View) (blas64.Vector, error) {
	data, inc, err := vector[float64]("vector64", v)
	if err != nil {
		return blas64.Vector{}, err
	}
	return blas64.Vector{N: v.Dim(0), Data: data, Inc: inc}, nil
}

// Vector32 is Vector64 for float32.
func Vector32(v *core.View) (blas32.Vector, error) {
	data, inc, err := vector[float32]("vector32", v)
	if err != nil {
		return blas32.Vector{}, err
	}
	return blas32.Vector{N: v.Dim(0), Data: data, Inc: inc}, nil
}

// rows is a matrix as Gonum knows it, whatever the type of its elements.
type rows[T float32 | float64] struct {
	rows, cols, stride int // in elements
	data               []T
}

// general gives the rows of v, which must have two axes.
func general[T float32 | float64](op string, v *core.View) (rows[T], error) {
	if v.Rank() != 2 {
		return rows[T]{}, unfit(op, v, fmt.Errorf("want 2 axes, have %d", v.Rank()), "")
	}
	data, _, strides, err := core.Strided[T](v)
	if err != nil {
		return rows[T]{}, named(op, err)
	}
	r, c := v.Dim(0), v.Dim(1)
	stride, gap := strides[0], strides[1]
	if r <= 1 || c == 0 {
		stride = max(c, 1) // nobody goes from one row to the next
	}
	if c <= 1 || r == 0 {
		gap = 1
	}
	switch {
	case gap == 1 && stride >= c:
		return rows[T]{r, c, stride, data}, nil
	case gap >= r && (strides[0] == 1 || r == 1):
		return rows[T]{}, unfit(op, v, fmt.Errorf("column-major: strides %v", v.Strides()), "use Matrix, or v.Transpose and its transpose in Gonum")
	case gap < 0 || stride < 0:
		return rows[T]{}, unfit(op, v, fmt.Errorf("negative strides %v", v.Strides()), "use Matrix or core.Copy")
	case stride < c && gap == 1:
		return rows[T]{}, unfit(op, v, fmt.Errorf("rows overlap: strides %v", v.Strides()), "use Matrix or core.Copy")
	default:
		return rows[T]{}, unfit(op, v, fmt.Errorf("gaps between columns: strides %v", v.Strides()), "use Matrix or core.Copy")
	}
}

// vector gives the elements of v, which must have one axis, and the distance between them.
func vector[T float32 | float64](op string, v *core.View) (data []T, inc int, err error) {
	if v.Rank() != 1 {
		return nil, 0, unfit(op, v, fmt.Errorf("want 1 axis, have %d", v.Rank()), "select one row or column with v.Select")
	}
	data, _, strides, err := core.Strided[T](v)
	if err != nil {
		return nil, 0, named(op, err)
	}
	if v.Len() <= 1 {
		return data, 1, nil
	}
	if strides[0] <= 0 {
		return nil, 0, unfit(op, v, fmt.Errorf("stride %d", v.Stride(0)), "use core.Copy")
	}
	return data, strides[0], nil
}

func writable(op string, v *core.View) error {
	if v.Writable() {
		return nil
	}
	return &core.Error{
		Op: op, Object: v.Name(), Kind: core.ErrReadOnly, Err: errors.New("a matrix of Gonum may be written to, and the view is not writable"),
		Remedy: "use Matrix, General64 or Vector64, or take the view with hostplugin.Writable()",
	}
}

func unfit(op string, v *core.View, cause error, remedy string) error {
	return &core.Error{Op: op, Object: v.Name(), Kind: core.ErrLayout, Err: cause, Remedy: remedy}
}

// named says of which function an error of core is.
func named(op string, err error) error {
	if e, ok := errors.AsType[*core.Error](err); ok {
		renamed := *e
		renamed.Op = op
		return &renamed
	}
	return err
}
