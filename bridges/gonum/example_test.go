package gonum

import (
	"context"
	"fmt"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/hostplugin"
	"gonum.org/v1/gonum/mat"
)

// solve solves a·x = b where the program has its arrays.
func solve(ctx context.Context, program *hostplugin.Session) (residual float64, err error) {
	a, err := program.View(ctx, "a")
	if err != nil {
		return 0, err
	}
	defer a.Close()
	b, err := program.View(ctx, "b")
	if err != nil {
		return 0, err
	}
	defer b.Close()
	x, err := program.View(ctx, "x", hostplugin.Writable())
	if err != nil {
		return 0, err
	}
	defer x.Close()

	left, err := Matrix(a) // in NumPy's column-major order: a transposed matrix of Gonum's
	if err != nil {
		return 0, err
	}
	right, err := Matrix(b)
	if err != nil {
		return 0, err
	}
	solution, err := Dense(x)
	if err != nil {
		return 0, err
	}
	if err := solution.Solve(left, right); err != nil {
		return 0, err
	}
	check, err := program.Func(ctx, "residual")
	if err != nil {
		return 0, err
	}
	result, err := check.Call(ctx)
	if err != nil {
		return 0, err
	}
	defer result.Close()
	return residual, result.Decode(&residual)
}

func Example() {
	numbers := []float64{1, 2, 3, 4, 5, 6} // in place of a program's array
	v := view(numbers, 2, 3)
	defer v.Close()
	m, err := Dense(v)
	if err != nil {
		fmt.Println(err)
		return
	}
	m.Scale(10, m)
	fmt.Println(numbers)
	fmt.Println(mat.Sum(m))
	// Output:
	// [10 20 30 40 50 60]
	// 210
}

func ExampleMatrix() {
	v := view([]float64{1, 2, 3, 4, 5, 6}, 2, 3)
	defer v.Close()
	mirrored, err := v.Step(1, -1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer mirrored.Close()
	_, err = Dense(mirrored)
	fmt.Println(err)
	m, err := Matrix(mirrored)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mat.Formatted(m))
	// Output:
	// dense: layout not supported: negative strides [24 -8]; use Matrix or core.Copy
	// ⎡3  2  1⎤
	// ⎣6  5  4⎦
}

// view is a writable view of ordinary Go memory.
func view(data []float64, shape ...int) *core.View {
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Float64, Shape: shape})
	if err != nil {
		panic(err)
	}
	v, err := core.NewView(l, coretest.NewMemory(data), &core.ViewOptions{Writable: true})
	if err != nil {
		panic(err)
	}
	return v
}
