package core_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

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
		if n, err := core.CopyBytes(t.Context(), copied, v); n != len(tc.want) || err != nil {
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
	if _, err := core.CopyBytes(t.Context(), make([]byte, 1), device); !errors.Is(err, core.ErrDevice) {
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
	s, err := core.Slice[float32](v)
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
			if _, err := core.CopyBytes(t.Context(), got, v); err != nil || !slices.Equal(got, want) {
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
		if n, err := core.Put(t.Context(), v, src); n != 24 || err != nil {
			t.Fatal(n, err)
		}
		dst := make([]uint16, 24)
		if _, err := core.Copy(t.Context(), dst, v); err != nil || !slices.Equal(dst, src) {
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
