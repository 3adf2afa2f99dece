package gonum

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/hostplugin"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

func TestMain(m *testing.M) { coretest.Main(m) }

// count is 0, 1, 2 and so on.
func count[T float32 | float64](n int) []T {
	data := make([]T, n)
	for i := range data {
		data[i] = T(i)
	}
	return data
}

func sub(axis, lo, hi int) func(*core.View) (*core.View, error) {
	return func(v *core.View) (*core.View, error) { return v.Sub(axis, lo, hi) }
}

func step(axis, n int) func(*core.View) (*core.View, error) {
	return func(v *core.View) (*core.View, error) { return v.Step(axis, n) }
}

func transpose(v *core.View) (*core.View, error) { return v.Transpose() }

func TestDenseIsTheMemory(t *testing.T) {
	t.Parallel()
	data := count[float64](20)
	crop := coretest.Derive(t, coretest.NewView(t, data, 4, 5), sub(0, 1, 4), sub(1, 1, 3))
	m, err := Dense(crop)
	if err != nil {
		t.Fatal(err)
	}
	if r, c := m.Dims(); r != 3 || c != 2 {
		t.Fatalf("%d by %d", r, c)
	}
	m.Set(2, 1, -1)
	data[6] = -2 // row 0, column 0 of the crop
	if data[17] != -1 || m.At(0, 0) != -2 {
		t.Errorf("data[17] = %v, m(0,0) = %v", data[17], m.At(0, 0))
	}
	m.Scale(2, m) // all of the crop, and nothing beside it
	want := []float64{0, 1, 2, 3, 4, 5, -4, 14, 8, 9, 10, 22, 24, 13, 14, 15, 32, -2, 18, 19}
	for i, x := range want {
		if data[i] != x {
			t.Errorf("data[%d] = %v, want %v", i, data[i], x)
		}
	}
}

func TestLayouts(t *testing.T) {
	t.Parallel()
	matrix := func() *core.View { return coretest.NewView(t, count[float64](12), 3, 4) }
	cases := map[string]struct {
		view  *core.View
		cause string // of Dense and General64; "": they take it
	}{
		"whole":           {coretest.Derive(t, matrix()), ""},
		"every other row": {coretest.Derive(t, matrix(), step(0, 2)), ""},
		"one row":         {coretest.Derive(t, matrix(), sub(0, 1, 2), step(0, -1)), ""},
		"one column":      {coretest.Derive(t, matrix(), sub(1, 1, 2), step(1, -1)), ""},
		"one element":     {coretest.Derive(t, matrix(), sub(0, 1, 2), sub(1, 1, 2), transpose), ""},
		"transposed":      {coretest.Derive(t, matrix(), transpose), "column-major"},
		"part of a row":   {coretest.Derive(t, matrix(), sub(0, 0, 1), step(1, 2)), "column-major"},
		"rows reversed":   {coretest.Derive(t, matrix(), step(0, -1)), "negative strides"},
		"columns":         {coretest.Derive(t, matrix(), step(1, 2)), "gaps between columns"},
		"mirrored":        {coretest.Derive(t, matrix(), step(1, -1)), "negative strides"},
		"one axis":        {coretest.Derive(t, coretest.NewView(t, count[float64](3))), "want 2 axes, have 1"},
	}
	for name, c := range cases {
		m, err := Dense(c.view)
		raw, err64 := General64(c.view)
		switch {
		case c.cause != "":
			for _, err := range []error{err, err64} {
				if !errors.Is(err, core.ErrLayout) || !strings.Contains(err.Error(), c.cause) {
					t.Errorf("%s: %v, want %s", name, err, c.cause)
				}
			}
		case err != nil || err64 != nil:
			t.Errorf("%s: %v, %v", name, err, err64)
		case !same(m, c.view) || raw.Rows != c.view.Dim(0) || raw.Cols != c.view.Dim(1):
			t.Errorf("%s: %v", name, mat.Formatted(m))
		}
		if c.view.Rank() != 2 {
			continue
		}
		read, err := Matrix(c.view)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !same(read, c.view) || !mat.Equal(read.T().T(), read) {
			t.Errorf("%s: %v", name, mat.Formatted(read))
		}
	}
}

// same compares a matrix with what core reads.
func same(m mat.Matrix, v *core.View) bool {
	r, c := m.Dims()
	for i := range r {
		for j := range c {
			if x, err := core.At[float64](v, i, j); err != nil || x != m.At(i, j) {
				return false
			}
		}
	}
	return r == v.Dim(0) && c == v.Dim(1)
}

func TestOverlappingRowsAreRefused(t *testing.T) {
	t.Parallel()
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Float64, Shape: []int{4, 3}, Strides: []int{8, 8}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := core.NewView(l, coretest.NewMemory(count[float64](6)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if _, err := General64(v); !errors.Is(err, core.ErrLayout) || !strings.Contains(err.Error(), "overlap") {
		t.Errorf("%v", err)
	}
	m, err := Matrix(v)
	if err != nil {
		t.Fatal(err)
	}
	if !same(m, v) {
		t.Errorf("%v", mat.Formatted(m))
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	data := count[float64](6)
	v := coretest.Derive(t, coretest.NewView(t, data, 2, 3), (*core.View).AsReadOnly)
	_, errDense := Dense(v)
	_, errVec := Vec(v)
	for _, err := range []error{errDense, errVec} {
		if !errors.Is(err, core.ErrReadOnly) {
			t.Errorf("%v, want %v", err, core.ErrReadOnly)
		}
	}
	m, err := Matrix(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, writes := range []bool{is[mat.Mutable](m), is[mat.Mutable](m.T())} {
		if writes {
			t.Errorf("%T can be written to", m)
		}
	}
	data[5] = 50
	if m.At(1, 2) != 50 {
		t.Errorf("m(1,2) = %v", m.At(1, 2))
	}
}

func is[T any](x any) bool { _, ok := x.(T); return ok }

// TestMultiplication multiplies matrices of all kinds, which Gonum reads in ways of its own.
func TestMultiplication(t *testing.T) {
	t.Parallel()
	a := coretest.Derive(t, coretest.NewView(t, count[float64](6), 2, 3))
	for name, b := range map[string]*core.View{
		"rows":     coretest.Derive(t, coretest.NewView(t, count[float64](6), 3, 2)),
		"columns":  coretest.Derive(t, coretest.NewView(t, count[float64](6), 2, 3), transpose),
		"mirrored": coretest.Derive(t, coretest.NewView(t, count[float64](6), 3, 2), step(1, -1)),
		"gaps":     coretest.Derive(t, coretest.NewView(t, count[float64](12), 3, 4), step(1, 2)),
		"float32":  coretest.Derive(t, coretest.NewView(t, count[float32](6), 3, 2)),
	} {
		x, err := Matrix(a)
		if err != nil {
			t.Fatal(err)
		}
		y, err := Matrix(b)
		if err != nil {
			t.Fatal(err)
		}
		var got, want mat.Dense
		got.Mul(x, y)
		want.Mul(mat.DenseCopyOf(x), mat.DenseCopyOf(y))
		if !mat.Equal(&got, &want) {
			t.Errorf("%s: %v, want %v", name, mat.Formatted(&got), mat.Formatted(&want))
		}
	}
}

// TestMatricesGoToBLAS sees that Gonum gets the memory of what BLAS can read, also in column-major order.
func TestMatricesGoToBLAS(t *testing.T) {
	t.Parallel()
	data := count[float64](6)
	for name, v := range map[string]*core.View{
		"rows": coretest.Derive(t, coretest.NewView(t, data, 2, 3)), "columns": coretest.Derive(t, coretest.NewView(t, data, 2, 3), transpose),
	} {
		m, err := Matrix(v)
		if err != nil {
			t.Fatal(err)
		}
		if u, ok := m.(mat.Untransposer); ok {
			m = u.Untranspose()
		}
		raw, ok := m.(mat.RawMatrixer)
		if !ok || &raw.RawMatrix().Data[0] != &data[0] {
			t.Errorf("%s: %T", name, m)
		}
	}
}

func TestAccessOutsidePanics(t *testing.T) {
	t.Parallel()
	v := coretest.Derive(t, coretest.NewView(t, count[float64](6), 2, 3))
	for _, v := range []*core.View{v, coretest.Derive(t, v, step(1, -1))} {
		m, err := Matrix(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			i, j int
			want error
		}{{2, 0, mat.ErrRowAccess}, {-1, 0, mat.ErrRowAccess}, {0, 3, mat.ErrColAccess}, {1, -1, mat.ErrColAccess}} {
			func() {
				defer func() {
					if r := recover(); r != c.want { //nolint:errorlint // Gonum panics with the value itself
						t.Errorf("At(%d, %d) panics with %v", c.i, c.j, r)
					}
				}()
				_ = m.At(c.i, c.j)
			}()
		}
	}
}

func TestVec(t *testing.T) {
	t.Parallel()
	data := count[float64](12)
	column := coretest.Derive(t, coretest.NewView(t, data, 3, 4), func(v *core.View) (*core.View, error) { return v.Select(1, 2) })
	x, err := Vec(column)
	if err != nil {
		t.Fatal(err)
	}
	x.ScaleVec(10, x)
	if data[2] != 20 || data[6] != 60 || data[10] != 100 || data[3] != 3 {
		t.Errorf("%v", data)
	}
	raw, err := Vector64(column)
	if err != nil {
		t.Fatal(err)
	}
	if got := blas64.Nrm2(raw); got != math.Hypot(math.Hypot(20, 60), 100) {
		t.Errorf("a norm of %v", got)
	}
	for name, v := range map[string]*core.View{
		"reversed": coretest.Derive(t, coretest.NewView(t, data), step(0, -1)), "empty": coretest.Derive(t, coretest.NewView(t, data), sub(0, 3, 3)),
		"two axes": coretest.Derive(t, coretest.NewView(t, data, 3, 4)),
	} {
		if _, err := Vec(v); !errors.Is(err, core.ErrLayout) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSingle(t *testing.T) {
	t.Parallel()
	data := count[float32](6)
	m := coretest.Derive(t, coretest.NewView(t, data, 2, 3))
	a, err := General32(m)
	if err != nil {
		t.Fatal(err)
	}
	x, err := Vector32(coretest.Derive(t, m, func(v *core.View) (*core.View, error) { return v.Select(0, 0) }))
	if err != nil {
		t.Fatal(err)
	}
	y := blas32.Vector{N: 2, Inc: 1, Data: make([]float32, 2)}
	blas32.Gemv(blas.NoTrans, 1, a, x, 0, y)
	if y.Data[0] != 5 || y.Data[1] != 14 {
		t.Errorf("%v", y.Data)
	}
	if _, err := General64(m); !errors.Is(err, core.ErrDType) {
		t.Errorf("General64 of float32: %v", err)
	}
}

func TestEmptyMatrices(t *testing.T) {
	t.Parallel()
	v := coretest.Derive(t, coretest.NewView(t, []float64{}, 0, 3))
	_, errDense := Dense(v)
	_, errMatrix := Matrix(v)
	for _, err := range []error{errDense, errMatrix} {
		if !errors.Is(err, core.ErrLayout) || !strings.Contains(err.Error(), "0 rows of 3 columns") {
			t.Errorf("%v", err)
		}
	}
	if raw, err := General64(v); err != nil || raw.Rows != 0 || raw.Cols != 3 {
		t.Errorf("%v, %v", raw, err)
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	v := coretest.NewView(t, count[float64](6), 2, 3)
	v.Close()
	if _, err := Dense(v); !errors.Is(err, core.ErrClosed) {
		t.Errorf("Dense: %v", err)
	}
	if _, err := Matrix(v); !errors.Is(err, core.ErrClosed) {
		t.Errorf("Matrix: %v", err)
	}
	if _, err := Vector64(v); !errors.Is(err, core.ErrLayout) { // of two axes, open or not
		t.Errorf("Vector64: %v", err)
	}
}

// TestProgram solves a system in the memory of a Python program, which sees the solution.
func TestProgram(t *testing.T) {
	t.Parallel()
	python := os.Getenv("NDBRIDGE_TEST_PYTHON")
	if python == "" {
		t.Fatal("NDBRIDGE_TEST_PYTHON is not set; run make test")
	}
	program, err := hostplugin.Run(t.Context(), hostplugin.Program{Script: "testdata/system.py", Python: python})
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	residual, err := solve(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	if residual > 1e-9 {
		t.Errorf("the program finds a residual of %v", residual)
	}
}
