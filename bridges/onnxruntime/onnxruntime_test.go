package onnxruntime

import (
	"context"
	"errors"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/hostplugin"
	ort "github.com/yalue/onnxruntime_go"
)

// TestMain loads the library that the wheel of ONNX Runtime has.
func TestMain(m *testing.M) {
	python := os.Getenv("NDBRIDGE_TEST_PYTHON_BRIDGES")
	if python == "" {
		log.Fatal("NDBRIDGE_TEST_PYTHON_BRIDGES is not set; run make test")
	}
	libraries, err := filepath.Glob(filepath.Join(filepath.Dir(python), "../lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.*"))
	if err != nil || len(libraries) != 1 {
		log.Fatalf("libraries of ONNX Runtime beside %s: %v, %v", python, libraries, err)
	}
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Float32, Shape: []int{1}})
	if err != nil {
		log.Fatal(err)
	}
	v, err := core.NewView(l, coretest.NewMemory([]float32{1}), nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := Input(v); !errors.Is(err, core.ErrUnavailable) {
		log.Fatalf("before the library is loaded: %v", err)
	}
	if err := v.Close(); err != nil {
		log.Fatal(err)
	}
	ort.SetSharedLibraryPath(libraries[0])
	if err := ort.InitializeEnvironment(); err != nil {
		log.Fatal(err)
	}
	coretest.Main(m)
}

// multiply has a model multiply two arrays of a program, into a third one of it.
func multiply(ctx context.Context, program *hostplugin.Session, model []byte) error {
	views := map[string]*core.View{}
	for name, opts := range map[string][]hostplugin.ViewOption{
		"samples": nil, "weights": nil, "scores": {hostplugin.Writable(), hostplugin.NoCopy()},
	} {
		v, err := program.View(ctx, name, opts...)
		if err != nil {
			return err
		}
		defer v.Close()
		views[name] = v
	}
	x, err := Input(views["samples"])
	if err != nil {
		return err
	}
	defer x.Destroy()
	w, err := Input(views["weights"])
	if err != nil {
		return err
	}
	defer w.Destroy()
	y, err := Output(views["scores"])
	if err != nil {
		return err
	}
	defer y.Destroy()
	session, err := ort.NewDynamicAdvancedSessionWithONNXData(model, []string{"x", "w"}, []string{"y"}, nil)
	if err != nil {
		return err
	}
	defer session.Destroy()
	return session.Run([]ort.Value{x, w}, []ort.Value{y})
}

// TestProgram sees that the program finds the result in its own array.
func TestProgram(t *testing.T) {
	t.Parallel()
	program, err := hostplugin.Run(t.Context(), hostplugin.Program{Script: "testdata/program.py", Python: os.Getenv("NDBRIDGE_TEST_PYTHON_BRIDGES")})
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	if err := multiply(t.Context(), program, product()); err != nil {
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

// lent is a view whose memory counts how often it was given back.
func lent[T core.Element](t *testing.T, data []T, spec core.LayoutSpec) (*core.View, *coretest.Memory) {
	t.Helper()
	spec.DType = core.DTypeOf[T]()
	l, err := core.NewLayout(spec)
	if err != nil {
		t.Fatal(err)
	}
	m := coretest.NewMemory(data)
	v, err := core.NewView(l, m, &core.ViewOptions{Name: "x", Writable: !spec.ReadOnly})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v, m
}

// TestTensorsAreTheMemory runs a model twice and writes in between.
func TestTensorsAreTheMemory(t *testing.T) {
	t.Parallel()
	xs, ws, ys := []float32{1, 2, 3, 4}, []float32{1, 0, 0, 1}, make([]float32, 5)
	var tensors []ort.Value
	var memories []*coretest.Memory
	for i, data := range [][]float32{xs, ws, ys} {
		v, m := lent(t, data, core.LayoutSpec{Shape: []int{2, 2}, Offset: i / 2 * 4}) // the result leaves out the first element
		of := Input
		if i == 2 {
			of = Output
		}
		x, err := of(v)
		if err != nil {
			t.Fatal(err)
		}
		v.Close() // the tensor keeps the memory
		tensors, memories = append(tensors, x), append(memories, m)
	}
	session, err := ort.NewDynamicAdvancedSessionWithONNXData(product(), []string{"x", "w"}, []string{"y"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Destroy()
	for _, scale := range []float32{1, 10} {
		ws[0], ws[3] = scale, scale
		if err := session.Run(tensors[:2], tensors[2:]); err != nil {
			t.Fatal(err)
		}
		for i, x := range xs {
			if ys[i+1] != scale*x {
				t.Errorf("times %v: %v", scale, ys)
			}
		}
	}
	for i, x := range tensors {
		if memories[i].Closed() != 0 {
			t.Errorf("memory %d was given back too early", i)
		}
		for range 2 {
			if err := x.Destroy(); err != nil {
				t.Error(err)
			}
		}
		if n := memories[i].Closed(); n != 1 {
			t.Errorf("memory %d was given back %d times", i, n)
		}
	}
}

func TestTypes(t *testing.T) {
	t.Parallel()
	raw := make([]uint8, 64)
	for d := range types {
		v := coretest.NewRawView(t, raw, core.LayoutSpec{DType: d, Shape: []int{2, 3}})
		x, err := Input(v)
		if err != nil {
			t.Fatalf("%v: %v", d, err)
		}
		if got := x.GetShape(); got.String() != ort.NewShape(2, 3).String() {
			t.Errorf("%v: %v", d, got)
		}
		if err := errors.Join(x.Destroy(), v.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	closed, _ := lent(t, []float32{1}, core.LayoutSpec{Shape: []int{1}})
	closed.Close()
	for name, c := range map[string]struct {
		make func() (*core.View, *coretest.Memory)
		of   func(*core.View) (*Tensor, error)
		kind error
		text string
	}{
		"read-only": {func() (*core.View, *coretest.Memory) {
			return lent(t, []float32{1}, core.LayoutSpec{Shape: []int{1}, ReadOnly: true})
		}, Output, core.ErrReadOnly, "Writable()"},
		"transposed": {func() (*core.View, *coretest.Memory) {
			return lent(t, make([]float32, 4), core.LayoutSpec{Shape: []int{2, 2}, Strides: []int{4, 8}})
		}, Input, core.ErrLayout, "input x: layout not supported: not contiguous: shape [2 2], strides [4 8]; use core.Copy"},
		"scalar": {func() (*core.View, *coretest.Memory) { return lent(t, []float32{1}, core.LayoutSpec{}) }, Input, core.ErrLayout, "shape []"},
		"empty":  {func() (*core.View, *coretest.Memory) { return lent(t, []float32{}, core.LayoutSpec{Shape: []int{0}}) }, Input, core.ErrLayout, "shape [0]"},
		"complex": {func() (*core.View, *coretest.Memory) {
			return lent(t, []complex64{1}, core.LayoutSpec{Shape: []int{1}})
		}, Input, core.ErrDType, "complex64"},
		"closed": {func() (*core.View, *coretest.Memory) { return closed, nil }, Input, core.ErrClosed, ""},
	} {
		v, m := c.make()
		if _, err := c.of(v); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
		if v.Close(); m != nil && m.Closed() != 1 {
			t.Errorf("%s: the memory was given back %d times", name, m.Closed())
		}
	}
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Float32, Shape: []int{1}, Offset: 1})
	if err != nil {
		t.Fatal(err)
	}
	odd, err := core.NewView(l, coretest.NewMemory(make([]uint8, 8)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer odd.Close()
	if _, err := Input(odd); !errors.Is(err, core.ErrLayout) || !strings.Contains(err.Error(), "aligned") {
		t.Errorf("%v", err)
	}
}
