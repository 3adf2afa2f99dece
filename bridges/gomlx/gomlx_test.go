package gomlx

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/hostplugin"
)

func TestMain(m *testing.M) { coretest.Main(m) }

func open(t *testing.T) backends.Backend {
	t.Helper()
	backend, err := simplego.New("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Finalize)
	return backend
}

// predict has GoMLX compute with two arrays of a program, into a third one of it.
func predict(ctx context.Context, backend backends.Backend, samples, weights, scores *core.View) error {
	x, err := Tensor(ctx, backend, samples)
	if err != nil {
		return err
	}
	w, err := Tensor(ctx, backend, weights)
	if err != nil {
		return err
	}
	model, err := graph.NewExec(backend, func(x, w *graph.Node) *graph.Node { return graph.Tanh(graph.Dot(x, w)) })
	if err != nil {
		return err
	}
	y, err := model.Exec1(x, w)
	if err != nil {
		return err
	}
	return Store(ctx, scores, y)
}

// TestProgram sees that the program finds the result in its own array.
func TestProgram(t *testing.T) {
	t.Parallel()
	python := os.Getenv("NDBRIDGE_TEST_PYTHON")
	if python == "" {
		t.Fatal("NDBRIDGE_TEST_PYTHON is not set; run make test")
	}
	program, err := hostplugin.Run(t.Context(), hostplugin.Program{Script: "testdata/program.py", Python: python})
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	views := map[string]*core.View{}
	for name, opts := range map[string][]hostplugin.ViewOption{"samples": nil, "weights": nil, "scores": {hostplugin.Writable(), hostplugin.NoCopy()}} {
		v, err := program.View(t.Context(), name, opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		views[name] = v
	}
	if err := predict(t.Context(), open(t), views["samples"], views["weights"], views["scores"]); err != nil {
		t.Fatal(err)
	}
	check, err := program.Func(t.Context(), "error")
	if err != nil {
		t.Fatal(err)
	}
	result, err := check.Call(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer result.Close()
	var off float64
	if err := result.Decode(&off); err != nil || !(off < 1e-3) {
		t.Errorf("the program finds an error of %v, %v", off, err)
	}
}

func lent[T core.Element](t *testing.T, data []T, spec core.LayoutSpec) *core.View {
	t.Helper()
	spec.DType = core.DTypeOf[T]()
	l, err := core.NewLayout(spec)
	if err != nil {
		t.Fatal(err)
	}
	v, err := core.NewView(l, coretest.NewMemory(data), &core.ViewOptions{Name: "x", Writable: !spec.ReadOnly})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

// roundTrip brings elements to a backend and back.
func roundTrip[T core.Element](t *testing.T, backend backends.Backend, data []T) {
	t.Helper()
	from := lent(t, data, core.LayoutSpec{Shape: []int{2, 2}, Strides: []int{sizeOf[T](), 2 * sizeOf[T]()}}) // transposed
	x, err := Tensor(t.Context(), backend, from)
	if err != nil {
		t.Errorf("%v: %v", from.DType(), err)
		return
	}
	from.Close()
	back := make([]T, 4)
	to := lent(t, back, core.LayoutSpec{Shape: []int{2, 2}})
	if err := Store(t.Context(), to, x); err != nil {
		t.Errorf("%v: %v", to.DType(), err)
	}
	if want := []T{data[0], data[2], data[1], data[3]}; fmt.Sprint(back) != fmt.Sprint(want) {
		t.Errorf("%v: %v, want %v", to.DType(), back, want)
	}
	if err := x.FinalizeAll(); err != nil {
		t.Error(err)
	}
}

func sizeOf[T core.Element]() int { return core.DTypeOf[T]().Size() }

func TestAllTypes(t *testing.T) {
	t.Parallel()
	backend := open(t)
	roundTrip(t, backend, []bool{true, false, false, true})
	roundTrip(t, backend, []int8{1, -2, 3, 4})
	roundTrip(t, backend, []int16{1, -2, 3, 4})
	roundTrip(t, backend, []int32{1, -2, 3, 4})
	roundTrip(t, backend, []int64{1, -2, 3, 4})
	roundTrip(t, backend, []uint8{1, 2, 3, 4})
	roundTrip(t, backend, []uint16{1, 2, 3, 4})
	roundTrip(t, backend, []uint32{1, 2, 3, 4})
	roundTrip(t, backend, []uint64{1, 2, 3, 4})
	roundTrip(t, backend, []core.F16{1, 2, 3, 4})
	roundTrip(t, backend, []core.BF16{1, 2, 3, 4})
	roundTrip(t, backend, []float32{1, 2, 3, 4})
	roundTrip(t, backend, []float64{1, 2, 3, 4})
	roundTrip(t, backend, []complex64{1, 2i, 3, 4})
	roundTrip(t, backend, []complex128{1, 2i, 3, 4})
}

// remote is a backend whose buffers the host cannot touch.
type remote struct{ backends.Backend }

func (remote) HasSharedBuffers() bool { return false }

func TestOtherBackends(t *testing.T) {
	t.Parallel()
	roundTrip(t, remote{open(t)}, []float32{1, 2, 3, 4})
}

func TestScalarsAndNothing(t *testing.T) {
	t.Parallel()
	backend := open(t)
	for _, v := range []*core.View{lent(t, []float32{42}, core.LayoutSpec{}), lent(t, []float32{}, core.LayoutSpec{Shape: []int{0, 3}})} {
		x, err := Tensor(t.Context(), backend, v)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(x.Shape().Dimensions), fmt.Sprint(v.Layout().Shape()); got != want || x.Size() != v.Len() {
			t.Errorf("%v, want %v", got, want)
		}
		if err := Store(t.Context(), v, x); err != nil {
			t.Error(err)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	backend := open(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	four := tensors.FromValue([]float32{1, 2, 3, 4})
	_, packed := Tensor(t.Context(), backend, packed(t))
	_, late := Tensor(ended, backend, lent(t, []float32{1}, core.LayoutSpec{Shape: []int{1}}))
	for name, c := range map[string]struct {
		err, kind error
		text      string
	}{
		"packed":    {packed, core.ErrDType, "int4"},
		"too late":  {late, context.Canceled, ""},
		"dtype":     {Store(t.Context(), lent(t, make([]int32, 4), core.LayoutSpec{Shape: []int{4}}), four), core.ErrDType, "ConvertDType"},
		"shape":     {Store(t.Context(), lent(t, make([]float32, 4), core.LayoutSpec{Shape: []int{2, 2}}), four), core.ErrLayout, "[4] for a view of [2 2]"},
		"read-only": {Store(t.Context(), lent(t, make([]float32, 4), core.LayoutSpec{Shape: []int{4}, ReadOnly: true}), four), core.ErrReadOnly, ""},
	} {
		if !errors.Is(c.err, c.kind) || !strings.Contains(c.err.Error(), c.text) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

func packed(t *testing.T) *core.View {
	t.Helper()
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Int4, Shape: []int{2}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := core.NewView(l, coretest.NewMemory([]uint8{1}), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

func Example() {
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Float32, Shape: []int{3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	numbers := []float32{1, 2, 3} // in place of a program's array
	v, err := core.NewView(l, coretest.NewMemory(numbers), &core.ViewOptions{Writable: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer v.Close()
	backend, err := simplego.New("")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer backend.Finalize()
	ctx := context.Background()
	x, err := Tensor(ctx, backend, v)
	if err != nil {
		fmt.Println(err)
		return
	}
	squares, err := graph.ExecOnce(backend, func(x *graph.Node) *graph.Node { return graph.Mul(x, x) }, x)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(Store(ctx, v, squares), numbers)
	// Output: <nil> [1 4 9]
}
