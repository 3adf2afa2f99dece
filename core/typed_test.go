package core_test

import (
	"errors"
	"fmt"
	"iter"
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
		if n, err := core.Copy(dst, turned); n != 6 || err != nil || !slices.Equal(dst[:6], want) || dst[6] != zero {
			t.Errorf("Copy gives %d %v, %v; want %v", n, dst, err, want)
		}
		raw := make([]byte, turned.NBytes())
		if n, err := core.CopyBytes(raw, turned); n != len(raw) || err != nil ||
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
	if n, err := core.Put(turned, reversed); n != 6 || err != nil {
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
	a, err := f32.Float32s()
	check(a, err, []float32{1.5})
	b, err := f64.Float64s()
	check(b, err, []float64{2.5})
	c, err := i32.Int32s()
	check(c, err, []int32{-3})
	d, err := i64.Int64s()
	check(d, err, []int64{-4})
	e, err := u8.Uint8s()
	check(e, err, []uint8{5})
	if _, err := f32.Float64s(); !errors.Is(err, core.ErrDType) {
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
	_, read := core.Copy(make([]float32, v.Len()), v)
	_, put := core.Put(v, make([]float32, v.Len()))
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
		{"read-only", core.LayoutSpec{DType: core.Float32, Shape: []int{2}}, memory(), writing, core.ErrReadOnly, "read-only"},
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
	if n, err := core.Put(v, want); n != 4 || err != nil {
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
	if _, err := core.Copy(dst, v); err != nil || !slices.Equal(dst, want) {
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
	if _, err := core.Copy(dst, v); err != nil {
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

func TestEmptyViews(t *testing.T) {
	t.Parallel()
	for _, shape := range [][]int{{0}, {3, 0}, {0, 3}, {2, 0, 2}} {
		v := open(t, core.LayoutSpec{DType: core.Float32, Shape: shape}, nil, &core.ViewOptions{Writable: true})
		s, err := core.Slice[float32](v)
		if err != nil || s == nil || len(s) != 0 {
			t.Errorf("%v: Slice gives %v, %v", shape, s, err)
		}
		b, err := v.Bytes()
		if err != nil || b == nil || len(b) != 0 {
			t.Errorf("%v: Bytes gives %v, %v", shape, b, err)
		}
		values, err1 := core.Values[float32](v)
		rows, err2 := core.Rows[float32](v)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		for x := range values {
			t.Errorf("%v has the element %v", shape, x)
		}
		for i, row := range rows {
			t.Errorf("%v has the row %d %v", shape, i, row)
		}
		if n, err := core.Copy[float32](nil, v); n != 0 || err != nil {
			t.Errorf("%v: Copy gives %d, %v", shape, n, err)
		}
		if n, err := core.Put[float32](v, nil); n != 0 || err != nil {
			t.Errorf("%v: Put gives %d, %v", shape, n, err)
		}
		if n, err := core.CopyBytes(nil, v); n != 0 || err != nil {
			t.Errorf("%v: CopyBytes gives %d, %v", shape, n, err)
		}
		if _, err := core.At[float32](v, make([]int, len(shape))...); !errors.Is(err, core.ErrLayout) {
			t.Errorf("%v: At gives %v", shape, err)
		}
		if v.Addr() != 0 {
			t.Errorf("%v is at %#x", shape, v.Addr())
		}
	}
}

func TestScalarViews(t *testing.T) {
	t.Parallel()
	data := []int64{41}
	v := open(t, core.LayoutSpec{DType: core.Int64}, coretest.NewMemory(data), &core.ViewOptions{Writable: true})
	if err := core.Set[int64](v, 42); err != nil {
		t.Error(err)
	}
	if x, err := core.At[int64](v); x != 42 || err != nil {
		t.Errorf("At gives %d, %v", x, err)
	}
	rows, err := core.Rows[int64](v)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, row := range rows {
		if n++; i != 0 || !slices.Equal(row, []int64{42}) {
			t.Errorf("row %d is %v", i, row)
		}
	}
	if n != 1 {
		t.Errorf("%d rows", n)
	}
	if s, err := v.Int64s(); err != nil || len(s) != 1 {
		t.Errorf("Slice gives %v, %v", s, err)
	}
}

func TestIndexErrors(t *testing.T) {
	t.Parallel()
	v := coretest.NewView(t, []float32{1, 2, 3, 4}, 2, 2)
	defer shut(t, v)
	for _, index := range [][]int{{}, {0}, {0, 2}, {-1, 0}, {0, 0, 0}} {
		if _, err := core.At[float32](v, index...); !errors.Is(err, core.ErrLayout) ||
			!strings.HasPrefix(err.Error(), "at "+t.Name()+": ") {
			t.Errorf("At %v: %v", index, err)
		}
		if err := core.Set[float32](v, 0, index...); !errors.Is(err, core.ErrLayout) ||
			!strings.HasPrefix(err.Error(), "set "+t.Name()+": ") {
			t.Errorf("Set %v: %v", index, err)
		}
	}
	for n := range 4 {
		dst := make([]float32, n)
		if m, err := core.Copy(dst, v); m != 0 || !errors.Is(err, core.ErrLayout) || slices.ContainsFunc(dst, isSet) {
			t.Errorf("Copy to %d elements: %d, %v, %v", n, m, err, dst)
		}
		if m, err := core.CopyBytes(make([]byte, 4*n+3), v); m != 0 || !errors.Is(err, core.ErrLayout) {
			t.Errorf("CopyBytes to %d bytes: %d, %v", 4*n+3, m, err)
		}
	}
	for _, n := range []int{0, 3, 5} {
		if m, err := core.Put(v, make([]float32, n)); m != 0 || !errors.Is(err, core.ErrLayout) {
			t.Errorf("Put of %d elements: %d, %v", n, m, err)
		}
	}
}

func isSet(x float32) bool { return x != 0 }

func TestBytes(t *testing.T) {
	t.Parallel()
	data := []byte{0x21, 0x43, 0xf5, 0x87}
	for _, tc := range []struct {
		spec core.LayoutSpec
		want []byte
	}{
		{core.LayoutSpec{DType: core.Uint16, Shape: []int{2}}, data},
		{core.LayoutSpec{DType: core.Uint16, Shape: []int{1}, Offset: 1}, data[1:3]},
		{core.LayoutSpec{DType: 3<<24 | 8<<16 | 3, Shape: []int{1}, Offset: 1}, data[1:]},
		{core.LayoutSpec{DType: core.Int4, Shape: []int{5}}, data[:3]},
		{core.LayoutSpec{DType: core.Uint8, Shape: []int{1, 1, 2}, Strides: []int{9, -9, 1}}, data[:2]},
	} {
		v := open(t, tc.spec, coretest.NewMemory(data), nil)
		b, err := v.Bytes()
		if err != nil || !slices.Equal(b, tc.want) || cap(b) != len(b) {
			t.Errorf("%v: %x of capacity %d, %v", v, b, cap(b), err)
		}
		copied := make([]byte, v.NBytes())
		if n, err := core.CopyBytes(copied, v); n != len(tc.want) || err != nil {
			t.Errorf("%v: copied %d, %v", v, n, err)
		}
		if last := len(copied) - 1; v.DType().Packed() {
			if copied[last] != tc.want[last]&0x0f {
				t.Errorf("the half of the last byte that is no element of %v is copied: %x", v, copied)
			}
		} else if !slices.Equal(copied, tc.want) {
			t.Errorf("%v: %x", v, copied)
		}
	}
	strided := open(t, core.LayoutSpec{DType: core.Uint8, Shape: []int{2}, Strides: []int{2}}, coretest.NewMemory(data), nil)
	if b, err := strided.Bytes(); !errors.Is(err, core.ErrLayout) || b != nil {
		t.Errorf("%x, %v", b, err)
	}
	device := open(t, core.LayoutSpec{DType: core.Uint8, Device: core.Device{Kind: core.CUDA}}, sized{nil, 1}, nil)
	if b, err := device.Bytes(); !errors.Is(err, core.ErrDevice) || b != nil {
		t.Errorf("%x, %v", b, err)
	}
	if _, err := core.CopyBytes(make([]byte, 1), device); !errors.Is(err, core.ErrDevice) {
		t.Error(err)
	}
}

// TestLoops leaves loops early, closes views inside of them, and begins them too late.
func TestLoops(t *testing.T) {
	t.Parallel()
	values := func(v *core.View) (iter.Seq[float32], error) { return core.Values[float32](v) }
	rows := func(v *core.View) (iter.Seq[float32], error) {
		seq, err := core.Rows[float32](v)
		return func(yield func(float32) bool) {
			for _, row := range seq {
				if !yield(row[0]) {
					return
				}
			}
		}, err
	}
	for name, begin := range map[string]func(*core.View) (iter.Seq[float32], error){"values": values, "rows": rows} {
		m := coretest.NewMemory([]float32{1, 2, 3})
		v, err := core.NewView(layout(t, core.LayoutSpec{DType: core.Float32, Shape: []int{3, 1}}), m, nil)
		if err != nil {
			t.Fatal(err)
		}
		seq, err := begin(v)
		if err != nil {
			t.Fatal(err)
		}
		for x := range seq {
			if x == 2 {
				break
			}
		}
		var got []float32
		for x := range seq {
			got = append(got, x)
			shut(t, v)
			if m.Closed() != 0 {
				t.Errorf("%s: the memory is closed under the loop", name)
			}
		}
		if !slices.Equal(got, []float32{1, 2, 3}) || m.Closed() != 1 {
			t.Errorf("%s: %v, closed %d times", name, got, m.Closed())
		}
		func() {
			defer func() {
				if err, ok := recover().(error); !ok || !errors.Is(err, core.ErrClosed) {
					t.Errorf("%s of a closed view: %v", name, err)
				}
			}()
			for x := range seq {
				t.Errorf("%s of a closed view gives %v", name, x)
			}
		}()
	}
}

// TestViewsShareMemory writes through one view and reads through the others.
func TestViewsShareMemory(t *testing.T) {
	t.Parallel()
	data := make([]float32, 6)
	v := coretest.NewView(t, data, 2, 3)
	defer shut(t, v)
	s, err := v.Float32s()
	if err != nil {
		t.Fatal(err)
	}
	data[4] = 7 // the program writes
	if s[4] != 7 {
		t.Error("a slice does not alias the memory")
	}
	bits, err := v.As(core.Uint32)
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, bits)
	if x, err := core.At[uint32](bits, 1, 1); err != nil || x != 0x40e00000 {
		t.Errorf("%#x, %v", x, err)
	}
	s[0] = -1
	if x, err := core.At[float32](v, 0, 0); err != nil || x != -1 || data[0] != -1 {
		t.Errorf("%v, %v, %v", x, err, data)
	}
}

// TestCopyEveryLayout compares Copy and Put with element by element access on many layouts of many
// sizes of elements.
func TestCopyEveryLayout(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 3, 4, 8, 16} {
		d, err := core.Opaque(size)
		if err != nil {
			t.Fatal(err)
		}
		memory := make([]byte, 2*3*4*5*size)
		for i := range memory {
			memory[i] = byte(i*7 + i>>8)
		}
		base := layout(t, core.LayoutSpec{DType: d, Shape: []int{2, 3, 4, 5}})
		for variant := range 64 {
			l := base
			var err error
			for bit, f := range []func(core.Layout) (core.Layout, error){
				func(l core.Layout) (core.Layout, error) { return l.Step(3, -2) },
				func(l core.Layout) (core.Layout, error) { return l.Sub(2, 1, 3) },
				func(l core.Layout) (core.Layout, error) { return l.Step(1, -1) },
				func(l core.Layout) (core.Layout, error) { return l.Transpose(0, 3, 1, 2) },
				func(l core.Layout) (core.Layout, error) { return l.Transpose() },
				func(l core.Layout) (core.Layout, error) { return l.Select(1, 0) },
			} {
				if variant>>bit&1 == 1 {
					if l, err = f(l); err != nil {
						t.Fatal(err)
					}
				}
			}
			var want []byte
			for offset := range l.Offsets() {
				want = append(want, memory[offset:offset+size]...)
			}
			v := open(t, l.Spec(), coretest.NewMemory(memory), nil)
			got := make([]byte, v.NBytes())
			if _, err := core.CopyBytes(got, v); err != nil || !slices.Equal(got, want) {
				t.Fatal(fmt.Sprint(l.Spec()), err)
			}
		}
	}
}

func TestPutEveryLayout(t *testing.T) {
	t.Parallel()
	src := make([]uint16, 24)
	for i := range src {
		src[i] = uint16(1000 + i)
	}
	for _, s := range []core.LayoutSpec{
		{Shape: []int{24}},
		{Shape: []int{2, 3, 4}},
		{Shape: []int{4, 6}, Strides: []int{2, 8}},
		{Shape: []int{4, 6}, Strides: []int{16, 2}, Offset: 2},
		{Shape: []int{4, 6}, Strides: []int{-16, -2}, Offset: 60},
		{Shape: []int{2, 2, 6}, Strides: []int{40, 20, 2}},
		{Shape: []int{24}, Strides: []int{3}, Offset: 1},
	} {
		s.DType = core.Uint16
		memory := make([]byte, 100)
		v := open(t, s, coretest.NewMemory(memory), &core.ViewOptions{Writable: true})
		if n, err := core.Put(v, src); n != 24 || err != nil {
			t.Fatal(n, err)
		}
		dst := make([]uint16, 24)
		if _, err := core.Copy(dst, v); err != nil || !slices.Equal(dst, src) {
			t.Errorf("%+v: %v, %v", s, dst, err)
		}
		touched := make([]bool, len(memory))
		for offset := range v.Offsets() {
			touched[offset], touched[offset+1] = true, true
		}
		for i, b := range memory {
			if !touched[i] && b != 0 {
				t.Errorf("%+v: byte %d outside of the elements was written", s, i)
			}
		}
	}
}
