package arrow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

func TestMain(m *testing.M) { coretest.Main(m) }

// lent is a view whose memory counts how often it was given back.
func lent[T core.Element](t *testing.T, data []T, spec core.LayoutSpec) (*core.View, *coretest.Memory) {
	t.Helper()
	spec.DType = core.DTypeOf[T]()
	l, err := core.NewLayout(spec)
	if err != nil {
		t.Fatal(err)
	}
	m := coretest.NewMemory(data)
	v, err := core.NewView(l, m, &core.ViewOptions{Name: "x", Writable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		v.Close()
		if n := m.Closed(); n != 1 {
			t.Errorf("the memory was given back %d times", n)
		}
	})
	return v, m
}

func TestArrayIsTheMemory(t *testing.T) {
	t.Parallel()
	data := []float64{1, 2, 3, 4}
	v, _ := lent(t, data, core.LayoutSpec{Shape: []int{3}, Offset: 8})
	a, err := Array(v)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	floats, ok := a.(*array.Float64)
	if !ok {
		t.Fatalf("%T", a)
	}
	data[2] = 30
	if floats.Len() != 3 || floats.Value(1) != 30 || &floats.Float64Values()[0] != &data[1] || floats.NullN() != 0 {
		t.Errorf("%v", floats)
	}
}

// TestMemoryIsGivenBackOnce closes the view and releases the arrays in all orders.
func TestMemoryIsGivenBackOnce(t *testing.T) {
	t.Parallel()
	for _, shape := range [][]int{{6}, {2, 3}} {
		for first := range 3 {
			v, m := lent(t, make([]int32, 6), core.LayoutSpec{Shape: shape})
			a, err := Array(v)
			if err != nil {
				t.Fatal(err)
			}
			part := array.NewSlice(a, 1, 2)
			give := []func(){func() { v.Close() }, a.Release, part.Release}
			for i := range give {
				if m.Closed() != 0 {
					t.Errorf("%v from %d: given back before step %d", shape, first, i)
				}
				give[(first+i)%3]()
			}
			if m.Closed() != 1 {
				t.Errorf("%v from %d: given back %d times", shape, first, m.Closed())
			}
		}
	}
}

func TestTypes(t *testing.T) {
	t.Parallel()
	for want, view := range map[string]func() *core.View{
		"int8":   func() *core.View { v, _ := lent(t, []int8{-1, 2}, core.LayoutSpec{Shape: []int{2}}); return v },
		"int16":  func() *core.View { v, _ := lent(t, []int16{-1, 2}, core.LayoutSpec{Shape: []int{2}}); return v },
		"int32":  func() *core.View { v, _ := lent(t, []int32{-1, 2}, core.LayoutSpec{Shape: []int{2}}); return v },
		"int64":  func() *core.View { v, _ := lent(t, []int64{-1, 2}, core.LayoutSpec{Shape: []int{2}}); return v },
		"uint8":  func() *core.View { v, _ := lent(t, []uint8{1, 2}, core.LayoutSpec{Shape: []int{2}}); return v },
		"uint16": func() *core.View { v, _ := lent(t, []uint16{1, 2}, core.LayoutSpec{Shape: []int{2}}); return v },
		"uint32": func() *core.View { v, _ := lent(t, []uint32{1, 2}, core.LayoutSpec{Shape: []int{2}}); return v },
		"uint64": func() *core.View { v, _ := lent(t, []uint64{1, 2}, core.LayoutSpec{Shape: []int{2}}); return v },
		"float16": func() *core.View {
			v, _ := lent(t, []core.F16{core.F16Of(-1), core.F16Of(2)}, core.LayoutSpec{Shape: []int{2}})
			return v
		},
		"float32":                func() *core.View { v, _ := lent(t, []float32{-1, 2}, core.LayoutSpec{Shape: []int{2}}); return v },
		"float64":                func() *core.View { v, _ := lent(t, []float64{-1, 2}, core.LayoutSpec{Shape: []int{2}}); return v },
		"extension<arrow.bool8>": func() *core.View { v, _ := lent(t, []bool{true, false}, core.LayoutSpec{Shape: []int{2}}); return v },
		"extension<arrow.fixed_shape_tensor[2 2]>": func() *core.View {
			v, _ := lent(t, make([]float32, 12), core.LayoutSpec{Shape: []int{3, 2, 2}})
			return v
		},
	} {
		v := view()
		a, err := Array(v)
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		if got := fmt.Sprint(a.DataType()); got != want || a.Len() != v.Dim(0) {
			t.Errorf("%d elements of %s, want %s", a.Len(), got, want)
		}
		if text := a.ValueStr(0); text == "" {
			t.Errorf("%s: an element is %q", want, text)
		}
		a.Release()
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	complexes, _ := lent(t, []complex64{1}, core.LayoutSpec{Shape: []int{1}})
	halves, _ := lent(t, []core.F16{1}, core.LayoutSpec{Shape: []int{1}})
	reversed, _ := lent(t, []int32{1, 2, 3}, core.LayoutSpec{Shape: []int{3}, Strides: []int{-4}, Offset: 8})
	sparse, _ := lent(t, []int32{1, 2, 3}, core.LayoutSpec{Shape: []int{2}, Strides: []int{8}})
	none, _ := lent(t, []int32{}, core.LayoutSpec{Shape: []int{3, 0}})
	closed, _ := lent(t, []int32{1}, core.LayoutSpec{Shape: []int{1}})
	closed.Close()
	toArray := func(v *core.View) error { _, err := Array(v); return err }
	toTensor := func(v *core.View) error { _, err := Tensor(v); return err }
	for name, c := range map[string]struct {
		err  error
		kind error
		text string
	}{
		"array of complex":   {toArray(complexes), core.ErrDType, "never complex64[1]; convert the array in Python (in Go: say with View.As what the elements are)"},
		"tensor of complex":  {toTensor(complexes), core.ErrDType, "never complex64"},
		"tensor of halves":   {toTensor(halves), core.ErrDType, "use Array"},
		"array reversed":     {toArray(reversed), core.ErrLayout, "use Copy or Tensor"},
		"tensor reversed":    {toTensor(reversed), core.ErrLayout, "strides [-4]"},
		"array with gaps":    {toArray(sparse), core.ErrLayout, "not contiguous"},
		"rows of nothing":    {toArray(none), core.ErrLayout, "rows of [0] elements"},
		"array of a closed":  {toArray(closed), core.ErrClosed, ""},
		"tensor of a closed": {toTensor(closed), core.ErrClosed, ""},
	} {
		if !errors.Is(c.err, c.kind) || !strings.Contains(c.err.Error(), c.text) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	if err := toTensor(complexes); strings.Contains(err.Error(), "Array") { // which has none, either
		t.Errorf("tensor of complex: %v", err)
	}
}

func TestUnalignedIsRefused(t *testing.T) {
	t.Parallel()
	data := make([]uint8, 24)
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Float64, Shape: []int{2}, Offset: 1})
	if err != nil {
		t.Fatal(err)
	}
	m := coretest.NewMemory(data)
	v, err := core.NewView(l, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Array(v); !errors.Is(err, core.ErrLayout) || !strings.Contains(err.Error(), "aligned") {
		t.Errorf("%v", err)
	}
	a, err := Copy(t.Context(), v, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	a.Release()
	if err := v.Close(); err != nil || m.Closed() != 1 {
		t.Errorf("%v; given back %d times", err, m.Closed())
	}
}

func TestCopy(t *testing.T) {
	t.Parallel()
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	v, _ := lent(t, []int16{0, 1, 2, 3, 4, 5}, core.LayoutSpec{Shape: []int{2, 3}, Strides: []int{2, 4}})
	a, err := Copy(t.Context(), v, mem)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	extension, ok := a.(array.ExtensionArray)
	if !ok {
		t.Fatalf("%T", a)
	}
	if got := fmt.Sprint(extension.Storage()); got != "[[0 2 4] [1 3 5]]" {
		t.Errorf("%s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Copy(ctx, v, mem); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestScalarsAndNothing has arrays without axes and without elements.
func TestScalarsAndNothing(t *testing.T) {
	t.Parallel()
	scalar, _ := lent(t, []int64{42}, core.LayoutSpec{})
	empty, _ := lent(t, []float32{}, core.LayoutSpec{Shape: []int{0, 4}})
	for want, v := range map[string]*core.View{"[42]": scalar, "[]": empty} {
		a, err := Array(v)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(a); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		a.Release()
	}
}

func TestTensor(t *testing.T) {
	t.Parallel()
	data := make([]float32, 24)
	for i := range data {
		data[i] = float32(i)
	}
	for name, spec := range map[string]core.LayoutSpec{
		"whole":      {Shape: []int{2, 3, 4}},
		"transposed": {Shape: []int{4, 6}, Strides: []int{4, 16}},
		"crop":       {Shape: []int{2, 2}, Strides: []int{32, 8}, Offset: 12},
		"empty":      {Shape: []int{2, 0}},
	} {
		v, m := lent(t, data, spec)
		x, err := Tensor(v)
		if err != nil {
			t.Fatal(err)
		}
		floats, ok := x.(interface{ Value(i []int64) float32 })
		if !ok || x.Len() != v.Len() || fmt.Sprint(x.Shape()) != fmt.Sprint(v.Layout().Shape()) {
			t.Fatalf("%s: %T of %v", name, x, x.Shape())
		}
		if v.Len() > 0 {
			last, lasts := make([]int, v.Rank()), make([]int64, v.Rank())
			for axis := range last {
				last[axis] = v.Dim(axis) - 1
				lasts[axis] = int64(last[axis])
			}
			for _, value := range []float32{-1, 7} { // the program writes, and writes again
				if err := core.Set(v, value, last...); err != nil {
					t.Fatal(err)
				}
				if got := floats.Value(lasts); got != value {
					t.Errorf("%s: the last element is %v, want %v", name, got, value)
				}
			}
		}
		v.Close()
		if v.Len() > 0 && m.Closed() != 0 {
			t.Errorf("%s: the memory was given back before the tensor", name)
		}
		x.Release()
		if m.Closed() != 1 {
			t.Errorf("%s: given back %d times", name, m.Closed())
		}
	}
}

func TestTensorTypesAreEqualByShape(t *testing.T) {
	t.Parallel()
	a, b := newTensorType(arrow.PrimitiveTypes.Int8, []int{2, 3}, 6), newTensorType(arrow.PrimitiveTypes.Int8, []int{3, 2}, 6)
	if arrow.TypeEqual(a, b) || !arrow.TypeEqual(a, newTensorType(arrow.PrimitiveTypes.Int8, []int{2, 3}, 6)) {
		t.Errorf("%v and %v", a, b)
	}
	if a.Serialize() != `{"shape":[2,3]}` {
		t.Errorf("%s", a.Serialize())
	}
}

func Example() {
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Float64, Shape: []int{2, 3}})
	if err != nil {
		fmt.Println(err)
		return
	}
	numbers := []float64{1, 2, 3, 4, 5, 6} // in place of a program's array
	v, err := core.NewView(l, coretest.NewMemory(numbers), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	rows, err := Array(v)
	v.Close() // the array keeps the memory
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rows.Release()
	numbers[5] = 60
	fmt.Println(rows.DataType())
	fmt.Println(rows.ValueStr(1))
	// Output:
	// extension<arrow.fixed_shape_tensor[3]>
	// [4,5,60]
}
