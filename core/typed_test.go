package core_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

func addr[T core.Element](s []T) uintptr { return coretest.NewMemory(s).Addr() }

// everyAccess checks Slice, Values, Rows, At, Set, Copy, Put and CopyBytes for one element type.
func everyAccess[T core.Element](t *testing.T, values ...T) {
	var zero T
	t.Run(core.DTypeOf[T]().String(), func(t *testing.T) {
		t.Parallel()
		data := slices.Clone(values)
		v := coretest.NewView(t, data, 2, 3)
		defer shut(t, v)
		s, err := core.Slice[T](v)
		if err != nil || !slices.Equal(s, values) || addr(s) != addr(data) || cap(s) != len(data) {
			t.Errorf("Slice gives %v, %v", s, err)
		}
		turned, err := v.Transpose()
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, turned)
		want := []T{values[0], values[3], values[1], values[4], values[2], values[5]}
		seq, err := core.Values[T](turned)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Collect(seq); !slices.Equal(got, want) {
			t.Errorf("Values gives %v, want %v", got, want)
		}
		dst := make([]T, 7)
		if n, err := core.Copy(t.Context(), dst, turned); n != 6 || err != nil || !slices.Equal(dst[:6], want) || dst[6] != zero {
			t.Errorf("Copy gives %d %v, %v; want %v", n, dst, err, want)
		}
		raw := make([]byte, turned.NBytes())
		if n, err := core.CopyBytes(t.Context(), raw, turned); n != len(raw) || err != nil ||
			!slices.Equal(raw, coretest.NewMemory(want).Bytes()) {
			t.Errorf("CopyBytes gives %d %v, %v", n, raw, err)
		}
		checkRows(t, v, values)
		checkPut(t, turned, data, want)
		for i := range 3 {
			for j := range 2 {
				if x, err := core.At[T](turned, i, j); err != nil || x != data[3*j+i] {
					t.Errorf("element %d, %d is %v, %v", i, j, x, err)
				}
			}
		}
		if err := core.Set(turned, values[5], 2, 0); err != nil || data[2] != values[5] {
			t.Errorf("Set: %v, %v", data, err)
		}
	})
}

func checkRows[T core.Element](t *testing.T, v *core.View, values []T) {
	t.Helper()
	seq, err := core.Rows[T](v)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, row := range seq {
		if i != n || !slices.Equal(row, values[3*i:3*i+3]) {
			t.Errorf("row %d is %v", i, row)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d rows", n)
	}
}

// checkPut writes the elements of a transposed view, so that the memory holds them in their order.
func checkPut[T core.Element](t *testing.T, turned *core.View, data, want []T) {
	t.Helper()
	reversed := slices.Clone(want)
	slices.Reverse(reversed)
	before := slices.Clone(data)
	if n, err := core.Put(t.Context(), turned, reversed); n != 6 || err != nil {
		t.Errorf("Put: %d, %v", n, err)
	}
	slices.Reverse(before)
	if !slices.Equal(data, before) {
		t.Errorf("Put writes %v, want %v", data, before)
	}
}

func TestEveryElementType(t *testing.T) {
	t.Parallel()
	everyAccess(t, false, true, true, false, false, true)
	everyAccess[int8](t, 1, -2, 3, 4, 5, -128)
	everyAccess[int16](t, 1, -2, 3, 4, 5, -1<<15)
	everyAccess[int32](t, 1, -2, 3, 4, 5, -1<<31)
	everyAccess[int64](t, 1, -2, 3, 4, 5, -1<<63)
	everyAccess[uint8](t, 1, 2, 3, 4, 5, 255)
	everyAccess[uint16](t, 1, 2, 3, 4, 5, 1<<16-1)
	everyAccess[uint32](t, 1, 2, 3, 4, 5, 1<<32-1)
	everyAccess[uint64](t, 1, 2, 3, 4, 5, 1<<64-1)
	everyAccess[float32](t, 1, -2.5, 3, 4, 5, 1e30)
	everyAccess(t, 1, -2.5, 3, 4, 5, 1e300)
	everyAccess[complex64](t, 1, -2.5i, 3, 4, 5, 1e30-1i)
	everyAccess(t, 1, -2.5i, 3, 4, 5, 1e300-1i)
	everyAccess(t, core.F16Of(1), core.F16Of(2), 3, 4, 5, 0xffff)
	everyAccess(t, core.BF16Of(1), core.BF16Of(2), 3, 4, 5, 0xffff)
}

func TestEverydayFive(t *testing.T) {
	t.Parallel()
	check := func(got any, err error, want any) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%T %v, %v; want %v", got, got, err, want)
		}
	}
	f32, f64 := coretest.NewView(t, []float32{1.5}), coretest.NewView(t, []float64{2.5})
	i32, i64, u8 := coretest.NewView(t, []int32{-3}), coretest.NewView(t, []int64{-4}), coretest.NewView(t, []uint8{5})
	a, err := core.Slice[float32](f32)
	check(a, err, []float32{1.5})
	b, err := core.Slice[float64](f64)
	check(b, err, []float64{2.5})
	c, err := core.Slice[int32](i32)
	check(c, err, []int32{-3})
	d, err := core.Slice[int64](i64)
	check(d, err, []int64{-4})
	e, err := core.Slice[uint8](u8)
	check(e, err, []uint8{5})
	if _, err := core.Slice[float64](f32); !errors.Is(err, core.ErrDType) {
		t.Errorf("a float32 view as float64: %v", err)
	}
	for _, v := range []*core.View{f32, f64, i32, i64, u8} {
		shut(t, v)
	}
}

// accesses is every typed access, as float32.
func accesses(v *core.View) map[string]error {
	_, slice := core.Slice[float32](v)
	_, values := core.Values[float32](v)
	_, rows := core.Rows[float32](v)
	_, at := core.At[float32](v, make([]int, v.Rank())...)
	set := core.Set[float32](v, 1, make([]int, v.Rank())...)
	_, read := core.Copy(context.Background(), make([]float32, v.Len()), v)
	_, put := core.Put(context.Background(), v, make([]float32, v.Len()))
	return map[string]error{
		"slice": slice, "values": values, "rows": rows, "at": at, "set": set, "copy": read, "put": put,
	}
}

func TestTypedAccessRefuses(t *testing.T) {
	t.Parallel()
	opaque4, err := core.Opaque(4)
	if err != nil {
		t.Fatal(err)
	}
	memory := func() *coretest.Memory { return coretest.NewMemory(make([]float64, 32)) }
	all := []string{"slice", "values", "rows", "at", "set", "copy", "put"}
	writing, aliasing := []string{"set", "put"}, []string{"slice", "rows"}
	for _, tc := range []struct {
		name    string
		spec    core.LayoutSpec
		memory  core.Memory
		refused []string
		kind    error
		text    string
	}{
		{
			"other type",
			core.LayoutSpec{DType: core.Int32, Shape: []int{2}},
			memory(), all, core.ErrDType,
			"want float32, have int32",
		},
		{
			"other type, no elements",
			core.LayoutSpec{DType: core.Int32, Shape: []int{0}},
			nil, all, core.ErrDType,
			"want float32, have int32",
		},
		{"lanes", core.LayoutSpec{DType: core.Float32 + 1, Shape: []int{2}}, memory(), all, core.ErrDType, "float32x2"},
		{
			"opaque",
			core.LayoutSpec{DType: opaque4, Shape: []int{2}},
			memory(), all, core.ErrDType,
			"want float32, have opaque[4]; use Bytes",
		},
		{
			"tagged",
			core.LayoutSpec{DType: opaque4, Shape: []int{2}, Tag: ">f4"},
			memory(), all, core.ErrDType,
			"want float32, have >f4; use Bytes, or say with As",
		},
		{"packed", core.LayoutSpec{DType: core.Int4, Shape: []int{2}}, memory(), all, core.ErrDType, "int4"},
		{
			"device",
			core.LayoutSpec{DType: core.Float32, Shape: []int{2}, Device: core.Device{Kind: core.CUDA, Index: 1}},
			sized{nil, 256},
			all, core.ErrDevice, "cuda:1",
		},
		{"read-only", core.LayoutSpec{DType: core.Float32, Shape: []int{2}}, memory(), writing, core.ErrReadOnly, "the view was not asked for to write; take the view with hostplugin.Writable()"},
		{
			"read-only array",
			core.LayoutSpec{DType: core.Float32, Shape: []int{2}, ReadOnly: true},
			memory(), writing,
			core.ErrReadOnly, "the array itself is read-only",
		},
		{
			"strided",
			core.LayoutSpec{DType: core.Float32, Shape: []int{3}, Strides: []int{8}},
			memory(), aliasing,
			core.ErrLayout, "shape [3], strides [8]; use Values",
		},
		{
			"fortran",
			core.LayoutSpec{DType: core.Float32, Shape: []int{3, 2}, Strides: []int{4, 12}},
			memory(), aliasing,
			core.ErrLayout, "not contiguous",
		},
		{
			"reversed rows",
			core.LayoutSpec{DType: core.Float32, Shape: []int{3, 2}, Strides: []int{-8, 4}, Offset: 16},
			memory(),
			[]string{"slice"},
			core.ErrLayout, "not contiguous",
		},
		{
			"misaligned",
			core.LayoutSpec{DType: core.Float32, Shape: []int{2}, Offset: 2},
			memory(), aliasing,
			core.ErrLayout, "not aligned; use Values",
		},
		{
			"misaligned rows",
			core.LayoutSpec{DType: core.Float32, Shape: []int{2, 2}, Strides: []int{10, 4}},
			memory(),
			[]string{"rows"},
			core.ErrLayout, "not aligned",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			writable := !slices.Equal(tc.refused, writing)
			v := open(t, tc.spec, tc.memory, &core.ViewOptions{Name: "frame", Writable: writable})
			for name, err := range accesses(v) {
				if !slices.Contains(tc.refused, name) {
					if err != nil && name != "slice" {
						t.Errorf("%s: %v", name, err)
					}
					continue
				}
				if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.text) ||
					!strings.HasPrefix(err.Error(), name+" frame: ") {
					t.Errorf("%s: want %q with %q, have %v", name, tc.kind, tc.text, err)
				}
			}
		})
	}
}

// TestMisalignedElements reads and writes elements where no pointer to them may be.
func TestMisalignedElements(t *testing.T) {
	t.Parallel()
	raw := make([]byte, 64)
	v := open(t, core.LayoutSpec{DType: core.Float64, Shape: []int{4}, Strides: []int{13}, Offset: 3},
		coretest.NewMemory(raw), &core.ViewOptions{Writable: true})
	want := []float64{1.5, -2, 1e300, 4}
	if n, err := core.Put(t.Context(), v, want); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	if err := core.Set(v, 5.25, 1); err != nil {
		t.Fatal(err)
	}
	want[1] = 5.25
	seq, err := core.Values[float64](v)
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Collect(seq); !slices.Equal(got, want) {
		t.Errorf("Values gives %v", got)
	}
	dst := make([]float64, 4)
	if _, err := core.Copy(t.Context(), dst, v); err != nil || !slices.Equal(dst, want) {
		t.Errorf("Copy gives %v, %v", dst, err)
	}
	for i := range want {
		if x, err := core.At[float64](v, i); err != nil || x != want[i] {
			t.Errorf("element %d is %v, %v", i, x, err)
		}
	}
	for i, b := range raw {
		if inside := i >= 3 && (i-3)%13 < 8 && i < 3+3*13+8; !inside && b != 0 {
			t.Errorf("byte %d between the elements was written", i)
		}
	}
}

// TestForeignBools has bytes that are no truth values: they must not get into Go as bools.
func TestForeignBools(t *testing.T) {
	t.Parallel()
	v := open(t, core.LayoutSpec{DType: core.Bool, Shape: []int{2, 2}, Strides: []int{1, 2}},
		coretest.NewMemory([]byte{0, 2, 255, 1}), nil)
	seq, err := core.Values[bool](v)
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]bool, 4)
	if _, err := core.Copy(t.Context(), dst, v); err != nil {
		t.Fatal(err)
	}
	want := []byte{0, 1, 1, 1}
	if got := coretest.NewMemory(dst).Bytes(); !slices.Equal(got, want) {
		t.Errorf("Copy writes the bytes %v", got)
	}
	if got := coretest.NewMemory(slices.Collect(seq)).Bytes(); !slices.Equal(got, want) {
		t.Errorf("Values gives the bytes %v", got)
	}
	x, err := core.At[bool](v, 1, 0)
	if got := coretest.NewMemory([]bool{x}).Bytes(); err != nil || got[0] != 1 {
		t.Errorf("At gives the byte %v, %v", got, err)
	}
}
