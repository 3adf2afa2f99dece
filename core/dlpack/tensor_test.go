package dlpack_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/core/dlpack"
)

func TestTensor(t *testing.T) {
	t.Parallel()
	const data = 0x7f0000001000
	opaque1, err := core.Opaque(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		c    capsule
		want dlpack.Tensor
	}{
		{"versioned", f32(2, 3), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Float32, Shape: []int{2, 3}}, Addr: data,
		}},
		{"legacy", f32(2, 3).with(func(c *capsule) { c.versioned = false }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Float32, Shape: []int{2, 3}}, Addr: data,
		}},
		{"strides in elements", f32(2, 3).with(func(c *capsule) { c.strides = []int64{-5, 1} }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Float32, Shape: []int{2, 3}, Strides: []int{-20, 4}}, Addr: data,
		}},
		{
			"legacy with strides", f32(2, 3).with(func(c *capsule) { c.versioned, c.strides = false, []int64{1, 2} }),
			dlpack.Tensor{
				Spec: core.LayoutSpec{DType: core.Float32, Shape: []int{2, 3}, Strides: []int{4, 8}}, Addr: data,
			},
		},
		{"broadcast", f32(4, 3).with(func(c *capsule) { c.strides = []int64{0, 1} }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Float32, Shape: []int{4, 3}, Strides: []int{0, 4}}, Addr: data,
		}},
		{"byte offset", f32(2).with(func(c *capsule) { c.byteOffset = 264 }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Float32, Shape: []int{2}}, Addr: data + 264,
		}},
		{"rank 0 without pointers", f32(), dlpack.Tensor{Spec: core.LayoutSpec{DType: core.Float32}, Addr: data}},
		{"rank 0 with pointers", f32().with(func(c *capsule) { c.shapeAt, c.stridesAt = 1, 1 }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Float32}, Addr: data,
		}},
		{"rank 64", f32(ones(64)...), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Float32, Shape: intOnes(64)}, Addr: data,
		}},
		{"empty with NULL", f32(0, 3).with(func(c *capsule) { c.data, c.strides = 0, []int64{3, 1} }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Float32, Shape: []int{0, 3}, Strides: []int{12, 4}},
		}},
		{
			"empty with a pointer and zero strides", f32(0, 3).with(func(c *capsule) { c.strides = []int64{0, 0} }),
			dlpack.Tensor{
				Spec: core.LayoutSpec{DType: core.Float32, Shape: []int{0, 3}, Strides: []int{0, 0}}, Addr: data,
			},
		},
		{"an axis of one element with a wild stride", f32(1, 2).with(func(c *capsule) {
			c.strides = []int64{math.MaxInt64, 1}
		}), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Float32, Shape: []int{1, 2}, Strides: []int{0, 4}}, Addr: data,
		}},
		{"read-only", f32(2).with(func(c *capsule) { c.flags = 1 }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Float32, Shape: []int{2}, ReadOnly: true}, Addr: data,
		}},
		{"copied", f32(2).with(func(c *capsule) { c.flags = 2 }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Float32, Shape: []int{2}}, Addr: data, Copied: true,
		}},
		{"flags of the future", f32(2).with(func(c *capsule) { c.flags = math.MaxUint64 &^ 3 }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Float32, Shape: []int{2}}, Addr: data,
		}},
		{"minor of the future", f32(2).with(func(c *capsule) { c.minor = 99 }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Float32, Shape: []int{2}}, Addr: data,
		}},
		{"legacy has no flags", f32(2).with(func(c *capsule) { c.versioned, c.flags = false, 1 }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Float32, Shape: []int{2}}, Addr: data,
		}},
		{"numbered CPU", f32(2).with(func(c *capsule) { c.deviceID = 3 }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Float32, Shape: []int{2}}, Addr: data,
		}},
		{"CUDA", f32(2).with(func(c *capsule) { c.deviceType, c.deviceID = 2, 1 }), dlpack.Tensor{
			Spec: core.LayoutSpec{
				DType: core.Float32, Shape: []int{2}, Device: core.Device{Kind: core.CUDA, Index: 1},
			}, Addr: data,
		}},
		{"pinned", f32(2).with(func(c *capsule) { c.deviceType = 3 }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Float32, Shape: []int{2}, Device: core.Device{Kind: core.CUDAPinned}}, Addr: data,
		}},
		{"managed", f32(2).with(func(c *capsule) { c.deviceType = 13 }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Float32, Shape: []int{2}, Device: core.Device{Kind: core.CUDAManaged}}, Addr: data,
		}},
		{"lanes", f32(2).with(func(c *capsule) { c.lanes, c.strides = 4, []int64{2} }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Float32 + 3, Shape: []int{2}, Strides: []int{32}}, Addr: data,
		}},
		{"complex", f32(2).with(func(c *capsule) { c.code, c.bits = 5, 128 }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Complex128, Shape: []int{2}}, Addr: data,
		}},
		{"bool", f32(2).with(func(c *capsule) { c.code, c.bits = 6, 8 }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Bool, Shape: []int{2}}, Addr: data,
		}},
		{"bool of old", f32(9).with(func(c *capsule) { c.versioned, c.code, c.bits = false, 1, 1 }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Bool, Shape: []int{9}}, Addr: data,
		}},
		{"bits", f32(9).with(func(c *capsule) { c.code, c.bits = 1, 1 }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: 1<<24 | 1<<16 | 1, Shape: []int{9}}, Addr: data,
		}},
		{"packed", f32(2, 3).with(func(c *capsule) { c.code, c.bits, c.strides = 0, 4, []int64{3, 1} }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Int4, Shape: []int{2, 3}}, Addr: data,
		}},
		{"packed, empty", f32(2, 0).with(func(c *capsule) { c.code, c.bits, c.strides = 0, 4, []int64{9, 9} }), dlpack.Tensor{
			Spec: core.LayoutSpec{DType: core.Int4, Shape: []int{2, 0}}, Addr: data,
		}},
		{
			"padded", f32(2, 3).with(func(c *capsule) { c.code, c.bits, c.flags, c.strides = 17, 4, 4, []int64{1, 2} }),
			dlpack.Tensor{
				Spec: core.LayoutSpec{DType: opaque1, Shape: []int{2, 3}, Strides: []int{1, 2}, Tag: "float4_e2m1fn"}, Addr: data,
			},
		},
		{
			"padded, for what is a byte anyway", f32(2).with(func(c *capsule) { c.code, c.bits, c.flags = 10, 8, 4 }),
			dlpack.Tensor{Spec: core.LayoutSpec{DType: coretest.DType("float8_e4m3fn"), Shape: []int{2}}, Addr: data},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := tc.c.inspect(t)
			got, err := m.Tensor()
			if err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%+v, %v; want %+v", got, err, tc.want)
			}
			if _, err := core.NewLayout(got.Spec); err != nil {
				t.Error(err)
			}
		})
	}
}

func ones(n int) []int64 {
	s := make([]int64, n)
	for i := range s {
		s[i] = 1
	}
	return s
}

func intOnes(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = 1
	}
	return s
}

// TestTensorRefuses has what hostile and broken producers say. The deleter must be known in every
// case, so that the tensor can be given back: inspect checks it.
func TestTensorRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		c    capsule
		kind error
		text string
	}{
		{"major 2", f32(2).with(func(c *capsule) { c.major = 2 }), core.ErrVersion, "DLPack 2.3"},
		{"major 0", f32(2).with(func(c *capsule) { c.major = 0 }), core.ErrVersion, "supported is 1.x"},
		{
			"major 2 with nonsense behind", f32(2).with(func(c *capsule) { c.major, c.rank, c.shapeAt = 2, -1, 3 }),
			core.ErrVersion, "DLPack 2.3",
		},
		{"negative rank", f32(2).with(func(c *capsule) { c.rank = -1 }), core.ErrLayout, "-1 axes"},
		{"rank 65", f32(ones(65)...), core.ErrLayout, "65 axes; 0 to 64"},
		{"rank 2^31-1", f32(2).with(func(c *capsule) { c.rank = math.MaxInt32 }), core.ErrLayout, "2147483647 axes"},
		{"lowest rank", f32(2).with(func(c *capsule) { c.rank = math.MinInt32 }), core.ErrLayout, "axes"},
		{"NULL shape", f32(2).with(func(c *capsule) { c.shape = nil }), core.ErrPointer, "shape of 1 axes is NULL"},
		{"shape elsewhere", f32(2).with(func(c *capsule) { c.shapeAt = 8 }), core.ErrPointer, "not there"},
		{"shape misaligned", f32(2).with(func(c *capsule) { c.shapeAt = base + 81 }), core.ErrPointer, "multiple of 8"},
		{"shape beyond the end", f32(2).with(func(c *capsule) { c.rank = 2 }), core.ErrPointer, "not there"},
		{
			"shape at the end of the address space", f32(2).with(func(c *capsule) { c.shapeAt = math.MaxUint64 - 7 }),
			core.ErrPointer, "not there",
		},
		{"strides elsewhere", f32(2).with(func(c *capsule) { c.stridesAt = 8 }), core.ErrPointer, "not there"},
		{"strides misaligned", f32(2).with(func(c *capsule) { c.stridesAt = base + 4 }), core.ErrPointer, "multiple of 8"},
		{"negative extent", f32(2, -1), core.ErrLayout, "extent -1 of axis 1"},
		{
			"stride overflow", f32(2).with(func(c *capsule) { c.strides = []int64{math.MaxInt64/4 + 1} }), core.ErrLayout,
			"stride of 2305843009213693952 elements",
		},
		{"stride underflow", f32(2).with(func(c *capsule) { c.strides = []int64{math.MinInt64} }), core.ErrLayout, "stride"},
		{"NULL data", f32(2).with(func(c *capsule) { c.data = 0 }), core.ErrPointer, "no storage"},
		{"NULL data of rank 0", f32().with(func(c *capsule) { c.data = 0 }), core.ErrPointer, "no storage"},
		{
			"NULL data with an offset", f32(2).with(func(c *capsule) { c.data, c.byteOffset = 0, 4096 }), core.ErrPointer,
			"no storage",
		},
		{
			"byte offset that wraps", f32(2).with(func(c *capsule) { c.byteOffset = math.MaxUint64 }), core.ErrPointer,
			"byte offset 18446744073709551615",
		},
		{"device 0", f32(2).with(func(c *capsule) { c.deviceType = 0 }), core.ErrDevice, "unknown DLPack device type 0"},
		{"device 10", f32(2).with(func(c *capsule) { c.deviceType = 10 }), core.ErrDevice, "rocm (DLPack device type 10)"},
		{"device 20", f32(2).with(func(c *capsule) { c.deviceType = 20 }), core.ErrDevice, "unknown DLPack device type 20"},
		{"negative device type", f32(2).with(func(c *capsule) { c.deviceType = -2 }), core.ErrDevice, "type -2"},
		{"negative GPU", f32(2).with(func(c *capsule) { c.deviceType, c.deviceID = 2, -1 }), core.ErrDevice, "number -1"},
		{"code 99", f32(2).with(func(c *capsule) { c.code = 99 }), core.ErrDType, "99"},
		{"handles", f32(2).with(func(c *capsule) { c.code, c.bits = 3, 64 }), core.ErrDType, "another process"},
		{"handles of a byte", f32(2).with(func(c *capsule) { c.code, c.bits = 3, 8 }), core.ErrDType, "another process"},
		{"no bits", f32(2).with(func(c *capsule) { c.bits = 0 }), core.ErrDType, "0 bits"},
		{"no lanes", f32(2).with(func(c *capsule) { c.lanes = 0 }), core.ErrDType, "0 lanes"},
		{"float of 80 bits", f32(2).with(func(c *capsule) { c.bits = 80 }), core.ErrDType, "80 bits"},
		{
			"packed, transposed", f32(2, 3).with(func(c *capsule) { c.code, c.bits, c.strides = 0, 4, []int64{1, 2} }),
			core.ErrLayout, "share bytes",
		},
		{
			"packed, broadcast", f32(2, 3).with(func(c *capsule) { c.code, c.bits, c.strides = 0, 4, []int64{0, 1} }),
			core.ErrLayout, "share bytes",
		},
		{
			"padded, of more than a byte", f32(2).with(func(c *capsule) { c.code, c.bits, c.lanes, c.flags = 15, 6, 2, 4 }),
			core.ErrDType, "padded",
		},
	} {
		for _, versioned := range []bool{true, false} {
			if !versioned && (errors.Is(tc.kind, core.ErrVersion) || tc.c.flags != 0 || tc.c.shapeAt > base || tc.c.stridesAt > base) {
				continue // these have no place in a legacy struct, or another one
			}
			c := tc.c.with(func(c *capsule) { c.versioned = versioned })
			m := c.inspect(t)
			got, err := m.Tensor()
			if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%s, versioned %v: want %q with %q, have %v", tc.name, versioned, tc.kind, tc.text, err)
			}
			if e, ok := errors.AsType[*core.Error](err); !ok || e.Kind == nil {
				t.Errorf("%s: %T is no *core.Error", tc.name, err)
			}
			if err == nil && got.Addr == 0 {
				t.Errorf("%s: %+v", tc.name, got)
			}
		}
	}
}

func TestInspectRefuses(t *testing.T) {
	t.Parallel()
	good := f32(2).image()
	for name, read := range map[string]func() (dlpack.Managed, error){
		"NULL": func() (dlpack.Managed, error) { return dlpack.Inspect(dlpack.Live(), 0, dlpack.Versioned) },
		"end of the address space": func() (dlpack.Managed, error) {
			return dlpack.Inspect(dlpack.Live(), math.MaxUint-7, dlpack.Legacy)
		},
		"misaligned": func() (dlpack.Managed, error) {
			return dlpack.Inspect(dlpack.Image(base+4, good), base+4, dlpack.Versioned)
		},
		"cut off": func() (dlpack.Managed, error) {
			return dlpack.Inspect(dlpack.Image(base, good[:23]), base, dlpack.Versioned)
		},
		"cut off, legacy": func() (dlpack.Managed, error) {
			return dlpack.Inspect(dlpack.Image(base, good[:63]), base, dlpack.Legacy)
		},
		"no kind": func() (dlpack.Managed, error) { return dlpack.Inspect(dlpack.Image(base, good), base, 0) },
	} {
		if m, err := read(); !errors.Is(err, core.ErrPointer) || m.Deleter != 0 {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// TestOtherMajor has a struct of another major version of which nothing is there but what never moves.
func TestOtherMajor(t *testing.T) {
	t.Parallel()
	c := f32(2).with(func(c *capsule) { c.major = 2 })
	m, err := dlpack.Inspect(dlpack.Image(base, c.image()[:24]), base, dlpack.Versioned)
	if err != nil || m.Deleter != 0xdead0 || m.Major != 2 || m.Minor != 3 {
		t.Fatalf("%+v, %v", m, err)
	}
	if _, err := m.Tensor(); !errors.Is(err, core.ErrVersion) {
		t.Error(err)
	}
}

func TestCutOffBehindTheFixedPart(t *testing.T) {
	t.Parallel()
	m, err := dlpack.Inspect(dlpack.Image(base, f32(2).image()[:79]), base, dlpack.Versioned)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Tensor(); !errors.Is(err, core.ErrPointer) {
		t.Error(err)
	}
}

func TestNullDeleter(t *testing.T) {
	t.Parallel()
	m := f32(2).with(func(c *capsule) { c.deleter = 0 }).inspect(t)
	if _, err := m.Tensor(); err != nil || m.Deleter != 0 {
		t.Error(m.Deleter, err)
	}
}

func TestKindOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]dlpack.Kind{
		"dltensor": dlpack.Legacy, "dltensor_versioned": dlpack.Versioned,
		"used_dltensor": 0, "used_dltensor_versioned": 0, "": 0, "dltensor2": 0, "DLTENSOR": 0,
	} {
		if got, ok := dlpack.KindOf(name); got != want || ok != (want != 0) {
			t.Errorf("%q: %v, %v", name, got, ok)
		}
	}
	if dlpack.UsedCapsuleName != "used_"+dlpack.CapsuleName ||
		dlpack.UsedCapsuleNameVersioned != "used_"+dlpack.CapsuleNameVersioned {
		t.Error("the names of consumed capsules are not those of the Python specification")
	}
}
