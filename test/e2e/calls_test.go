package e2e

import (
	"context"
	"errors"
	"math"
	"math/big"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// fn looks a function up.
func fn(t *testing.T, run *harness.Run, name string, opts ...hostplugin.FuncOption) *hostplugin.Func {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.StartBound)
	defer cancel()
	f, err := run.Func(ctx, name, opts...)
	if err != nil {
		t.Fatalf("func %s: %v", name, err)
	}
	return f
}

// call calls a function; its result is closed when the test ends.
func call(t *testing.T, f *hostplugin.Func, args ...any) hostplugin.Result {
	t.Helper()
	r, err := f.Call(t.Context(), args...)
	if err != nil {
		t.Fatalf("call %s: %v", f.Name(), err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// value gives the plain value of a call.
func value(t *testing.T, f *hostplugin.Func, args ...any) any {
	t.Helper()
	v, err := call(t, f, args...).Value()
	if err != nil {
		t.Fatalf("value of %s: %v", f.Name(), err)
	}
	return v
}

// array makes an array of the host's that is closed when the test ends.
func array(t *testing.T, run *harness.Run, dtype core.DType, shape ...int) *core.View {
	t.Helper()
	v, err := run.New(dtype, shape...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

// fails calls a function that must fail.
func fails(t *testing.T, f *hostplugin.Func, category error, says string, args ...any) {
	t.Helper()
	r, err := f.Call(t.Context(), args...)
	if err == nil {
		r.Close()
		t.Fatalf("call %s: no error, want %v", f.Name(), category)
	}
	wantCategory(t, err, category)
	if !strings.Contains(err.Error(), says) {
		t.Errorf("error %q does not say %q", err, says)
	}
}

// TestCallsCarryValues sends values of each kind there and back.
func TestCallsCarryValues(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import collections, dataclasses, enum, numpy as np, remote
def echo(x): return x
def kind(x): return type(x).__name__
def name(x): return repr(x)
def kw(*a, **k): return [list(a), k]
Point = collections.namedtuple("Point", "x y")
@dataclasses.dataclass
class Box:
    lo: object
    hi: object
class Color(enum.Enum):
    RED = 3
def point(): return Point(1, np.arange(3))
def box(): return Box(Point(1, 2), {"a": Color.RED})
def scalars(): return [np.float32(0.5), np.int64(7), np.bool_(True), np.complex64(1j)]
remote.serve()
`, harness.Options{})
	huge, _ := new(big.Int).SetString("-123456789012345678901234567890123456789012345678901234567890", 10)
	echo, kind, repr := fn(t, run, "echo"), fn(t, run, "kind"), fn(t, run, "name")
	for _, c := range []struct {
		in, out any
		kind    string
	}{
		{nil, nil, "NoneType"},
		{true, true, "bool"},
		{int8(-3), int64(-3), "int"},
		{uint64(math.MaxUint64), new(big.Int).SetUint64(math.MaxUint64), "int"},
		{int64(math.MinInt64), int64(math.MinInt64), "int"},
		{huge, huge, "int"},
		{float32(0.5), 0.5, "float"},
		{math.Inf(-1), math.Inf(-1), "float"},
		{math.MaxFloat64, math.MaxFloat64, "float"},
		{complex(1, -2), complex(1, -2), "complex"},
		{"ä\x00€😀", "ä\x00€😀", "str"},
		{"", "", "str"},
		{[]byte{0, 255, 10}, []byte{0, 255, 10}, "bytes"},
		{[]int{}, []any{}, "list"},
		{[]any{1, []any{"x", []any{nil}}}, []any{int64(1), []any{"x", []any{nil}}}, "list"},
		{[2]float64{1, 2}, []any{1.0, 2.0}, "list"},
		{hostplugin.Tuple{1, hostplugin.Tuple{}}, hostplugin.Tuple{int64(1), hostplugin.Tuple{}}, "tuple"},
		{map[string]any{"b": 1, "a": map[string]any{}}, map[string]any{"b": int64(1), "a": map[string]any{}}, "dict"},
		{map[int]string{2: "x"}, map[any]any{int64(2): "x"}, "dict"},
		{struct {
			A int    `python:"first"`
			B string `python:"second"`
		}{1, "y"}, map[string]any{"first": int64(1), "second": "y"}, "dict"},
	} {
		if got := value(t, echo, c.in); !reflect.DeepEqual(got, c.out) {
			t.Errorf("%#v came back as %#v, want %#v", c.in, got, c.out)
		}
		if got := value(t, kind, c.in); got != c.kind {
			t.Errorf("%#v arrived as %v, want %s", c.in, got, c.kind)
		}
	}
	if got := value(t, repr, huge); got != huge.String() {
		t.Errorf("%v arrived as %v", huge, got)
	}
	if got, ok := value(t, echo, math.NaN()).(float64); !ok || !math.IsNaN(got) {
		t.Errorf("NaN came back as %v", got)
	}
	got := value(t, fn(t, run, "kw"), 1, "x", hostplugin.Kw{"b": 2, "a": []any{nil}})
	if want := []any{[]any{int64(1), "x"}, map[string]any{"b": int64(2), "a": []any{nil}}}; !reflect.DeepEqual(got, want) {
		t.Errorf("keywords came back as %v, want %v", got, want)
	}
	long := strings.Repeat("x", 5<<20) // longer than a mailbox, there and back
	if got := value(t, echo, long); got != long {
		t.Errorf("5 MiB of text came back as something else")
	}
	testRecords(t, run)
	run.NoLeases(t)
}

func testRecords(t *testing.T, run *harness.Run) {
	t.Helper()
	var point struct {
		X int        `python:"x"`
		Y *core.View `python:"y"`
	}
	r := call(t, fn(t, run, "point"))
	if err := r.Decode(&point); err != nil {
		t.Fatal(err)
	}
	if y := slice[int64](t, point.Y); point.X != 1 || len(y) != 3 || y[2] != 2 {
		t.Errorf("the point is %d %v", point.X, y)
	}
	if r.View() != nil || len(r.Views()) != 1 {
		t.Errorf("a tuple is the array %v, of %d", r.View(), len(r.Views()))
	}
	if err := r.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := core.Slice[int64](point.Y); !errors.Is(err, core.ErrClosed) {
		t.Errorf("a view of a closed result: %v, want core.ErrClosed", err)
	}
	var box struct {
		Lo map[string]int `python:"lo"`
		Hi map[string]int `python:"hi"`
	}
	if err := call(t, fn(t, run, "box")).Decode(&box); err != nil || box.Lo["y"] != 2 || box.Hi["a"] != 3 {
		t.Errorf("the box is %v: %v", box, err)
	}
	var odd struct {
		Hi map[string]string `python:"hi"`
	}
	if err := call(t, fn(t, run, "box")).Decode(&odd); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), `result.hi["a"]: int 3 does not fit string`) {
		t.Errorf("what does not fit says %v, and not where", err)
	}
	want := []any{0.5, int64(7), true, complex(0, 1)}
	if got := value(t, fn(t, run, "scalars")); !reflect.DeepEqual(got, want) {
		t.Errorf("scalars are %v, want %v", got, want)
	}
}

// TestCallsSeeTheHostsArrays passes views of each kind, which must arrive in place.
func TestCallsSeeTheHostsArrays(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import numpy as np, remote
def about(x): return {"type": type(x).__module__ + "." + type(x).__name__, "dtype": x.dtype.name, "shape": x.shape, "strides": x.strides, "writable": x.flags.writeable}
def addr(x): return x.__array_interface__["data"][0]
def fill(x, v):
    x[...] = v
def add(x): return [x.sum().item(), x.reshape(-1).tolist()[:8]]
def deep(x): return [y["a"].tolist() for y in x]
def itself(x): return x
def part(x): return x[1::2]
def double(x): return x * 2
kept = []
def keep(x): kept.append(x)
def drop(): kept.clear()
def delete(x):
    del x
remote.serve()
`, harness.Options{})
	t.Run("dtypes", func(t *testing.T) { callDTypes(t, run) })
	t.Run("strides", func(t *testing.T) { callStrides(t, run) })
	t.Run("in place", func(t *testing.T) { callInPlace(t, run) })
	t.Run("results", func(t *testing.T) { callResults(t, run) })
	t.Run("kept", func(t *testing.T) { callKept(t, run) })
	run.NoLeases(t)
}

type about struct {
	Type     string `python:"type"`
	DType    string `python:"dtype"`
	Shape    []int  `python:"shape"`
	Strides  []int  `python:"strides"`
	Writable bool   `python:"writable"`
}

func arrived(t *testing.T, run *harness.Run, v *core.View) (a about) {
	t.Helper()
	if err := call(t, fn(t, run, "about"), v).Decode(&a); err != nil {
		t.Fatal(err)
	}
	if a.Type != "numpy.ndarray" || !reflect.DeepEqual(a.Shape, append([]int{}, v.Shape()...)) {
		t.Errorf("%v arrived as %+v", v.Layout(), a)
	}
	return a
}

func callDTypes(t *testing.T, run *harness.Run) {
	fill := fn(t, run, "fill")
	for dtype, name := range map[core.DType]string{
		core.Bool: "bool", core.Int8: "int8", core.Uint16: "uint16", core.Int64: "int64", core.Uint64: "uint64", core.Float16: "float16",
		core.Float32: "float32", core.Float64: "float64", core.Complex64: "complex64", core.Complex128: "complex128",
	} {
		for _, shape := range [][]int{{}, {0}, {3, 0, 2}, {1}, {2, 3}} {
			v := array(t, run, dtype, shape...)
			if a := arrived(t, run, v); a.DType != name || !a.Writable {
				t.Errorf("%v arrived as %+v", v.Layout(), a)
			}
			call(t, fill, v, 1)
			data := make([]byte, v.NBytes())
			if _, err := core.CopyBytes(t.Context(), data, v); err != nil {
				t.Fatal(err)
			}
			if v.Len() > 0 && !strings.ContainsFunc(string(data), func(r rune) bool { return r != 0 }) {
				t.Errorf("%v shows zeros, not what the function has written", v.Layout())
			}
		}
	}
}

func callStrides(t *testing.T, run *harness.Run) {
	v := array(t, run, core.Int32, 4, 6)
	for i := range slice[int32](t, v) {
		slice[int32](t, v)[i] = int32(i)
	}
	derived := func(d *core.View, err error) *core.View {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	}
	for name, c := range map[string]struct {
		view    *core.View
		strides []int
		first   []any
	}{
		"part":      {derived(derived(v.Sub(0, 1, 3)).Sub(1, 2, 5)), []int{24, 4}, []any{int64(8), int64(9), int64(10), int64(14), int64(15), int64(16)}},
		"transpose": {derived(v.Transpose()), []int{4, 24}, []any{int64(0), int64(6), int64(12), int64(18), int64(1), int64(7), int64(13), int64(19)}},
		"backwards": {derived(derived(v.Select(0, 3)).Step(0, -2)), []int{-8}, []any{int64(23), int64(21), int64(19)}},
		"read only": {derived(v.AsReadOnly()), []int{24, 4}, []any{int64(0), int64(1), int64(2), int64(3), int64(4), int64(5), int64(6), int64(7)}},
	} {
		a := arrived(t, run, c.view)
		if !reflect.DeepEqual(a.Strides, c.strides) || a.Writable != (name != "read only") {
			t.Errorf("%s: arrived as %+v", name, a)
		}
		if got, ok := value(t, fn(t, run, "add"), c.view).([]any); !ok || !reflect.DeepEqual(got[1], c.first) {
			t.Errorf("%s: arrived as %v, want %v", name, got, c.first)
		}
		if name == "read only" {
			fails(t, fn(t, run, "fill"), core.ErrPython, "read-only", c.view, 1)
		}
	}
	if got, ok := value(t, fn(t, run, "deep"), []any{map[string]any{"a": v}, map[string]any{"a": v}}).([]any); !ok || len(got) != 2 {
		t.Errorf("arrays within values arrived as %v", got)
	}
}

func callInPlace(t *testing.T, run *harness.Run) {
	v := array(t, run, core.Float64, 8<<20) // 64 MiB
	call(t, fn(t, run, "fill"), v, 2.5)
	data := slice[float64](t, v)
	if data[0] != 2.5 || data[len(data)-1] != 2.5 {
		t.Fatalf("the view shows %v and %v", data[0], data[len(data)-1])
	}
	addr, _ := value(t, fn(t, run, "addr"), v).(int64)
	if here, there := harness.FilePlace(t, os.Getpid(), v.Addr()), harness.FilePlace(t, run.PID(t), uintptr(addr)); here != there {
		t.Errorf("the function saw %v, the view shows %v", there, here)
	}
}

func callResults(t *testing.T, run *harness.Run) {
	v := array(t, run, core.Float64, 1<<15)
	data := slice[float64](t, v)
	for i := range data {
		data[i] = float64(i)
	}
	r := call(t, fn(t, run, "double"), v)
	if r.View().Route() != contract.RouteSharedHeap || slice[float64](t, r.View())[7] != 14 {
		t.Errorf("the result came by %v (%v)", r.View().Route(), r.View().Reason())
	}
	if n := run.Leases(t); n != 1 {
		t.Errorf("%d leases stand, want that of the result", n)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	run.NoLeases(t)
	for name, want := range map[string]float64{"itself": 0, "part": 1} {
		r := call(t, fn(t, run, name), v)
		if got, err := core.At[float64](r.View(), 0); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
