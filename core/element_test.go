package core_test

import (
	"math"
	"reflect"
	"testing"

	"github.com/ndbridge/ndbridge/core"
)

func dtypeOf[T core.Element](t *testing.T, want core.DType) {
	t.Helper()
	d := core.DTypeOf[T]()
	if d != want || uintptr(d.Size()) != reflect.TypeFor[T]().Size() {
		t.Errorf("%v stands for %v of %d bytes, want %v", reflect.TypeFor[T](), d, d.Size(), want)
	}
}

func TestDTypeOf(t *testing.T) {
	t.Parallel()
	dtypeOf[bool](t, core.Bool)
	dtypeOf[int8](t, core.Int8)
	dtypeOf[int16](t, core.Int16)
	dtypeOf[int32](t, core.Int32)
	dtypeOf[int64](t, core.Int64)
	dtypeOf[uint8](t, core.Uint8)
	dtypeOf[uint16](t, core.Uint16)
	dtypeOf[uint32](t, core.Uint32)
	dtypeOf[uint64](t, core.Uint64)
	dtypeOf[float32](t, core.Float32)
	dtypeOf[float64](t, core.Float64)
	dtypeOf[complex64](t, core.Complex64)
	dtypeOf[complex128](t, core.Complex128)
	dtypeOf[core.F16](t, core.Float16)
	dtypeOf[core.BF16](t, core.BFloat16)
}

// halfValue computes a half by the definition of IEEE 754.
func halfValue(bits uint16) float64 {
	sign, exp, frac := 1.0, int(bits>>10&0x1f), float64(bits&0x3ff)
	if bits>>15 == 1 {
		sign = -1
	}
	switch exp {
	case 0:
		return sign * math.Ldexp(frac, -24)
	case 31:
		if frac != 0 {
			return math.NaN()
		}
		return sign * math.Inf(1)
	default:
		return sign * math.Ldexp(1024+frac, exp-25)
	}
}

// TestHalfAll goes through every half.
func TestHalfAll(t *testing.T) {
	t.Parallel()
	for bits := range 1 << 16 {
		h := core.F16(bits)
		got, want := float64(h.Float32()), halfValue(uint16(bits))
		if math.IsNaN(want) {
			if !math.IsNaN(got) || !math.IsNaN(float64(core.F16Of(h.Float32()).Float32())) {
				t.Errorf("%#04x is no NaN", bits)
			}
			continue
		}
		if got != want || math.Signbit(got) != math.Signbit(want) {
			t.Errorf("%#04x is %v, want %v", bits, got, want)
		}
		if back := core.F16Of(h.Float32()); back != h {
			t.Errorf("%#04x comes back as %#04x", bits, back)
		}
	}
}

// TestHalfRounding checks the values between two neighbouring halves: nearest, ties to even.
func TestHalfRounding(t *testing.T) {
	t.Parallel()
	for bits := range uint16(0x7bff) { // every finite positive half but the last
		low, high := halfValue(bits), halfValue(bits+1)
		middle := (low + high) / 2 // exact in a float32, as are its neighbours
		even := core.F16(bits + bits&1)
		for x, want := range map[float32]core.F16{
			float32(middle):                                         even,
			math.Nextafter32(float32(middle), 0):                    core.F16(bits),
			math.Nextafter32(float32(middle), float32(math.Inf(1))): core.F16(bits + 1),
		} {
			if got := core.F16Of(x); got != want {
				t.Fatalf("%v between %v and %v becomes %#04x, want %#04x", x, low, high, got, want)
			}
			if got := core.F16Of(-x); got != want|0x8000 {
				t.Fatalf("%v becomes %#04x, want %#04x", -x, got, want|0x8000)
			}
		}
	}
	for x, want := range map[float32]core.F16{
		65504: 0x7bff, 65519.996: 0x7bff, 65520: 0x7c00, 1e10: 0x7c00, math.MaxFloat32: 0x7c00,
		float32(math.Inf(-1)): 0xfc00, 1e-30: 0, -1e-30: 0x8000, math.SmallestNonzeroFloat32: 0,
	} {
		if got := core.F16Of(x); got != want {
			t.Errorf("%v becomes %#04x, want %#04x", x, got, want)
		}
	}
}

func TestBFloat16(t *testing.T) {
	t.Parallel()
	for bits := range 1 << 16 {
		b := core.BF16(bits)
		x := b.Float32()
		if math.Float32bits(x) != uint32(bits)<<16 {
			t.Errorf("%#04x is %v", bits, x)
		}
		back := core.BF16Of(x)
		if x != x {
			if y := back.Float32(); y == y {
				t.Errorf("the NaN %#04x comes back as %v", bits, y)
			}
		} else if back != b {
			t.Errorf("%#04x comes back as %#04x", bits, back)
		}
	}
	for _, tc := range []struct {
		bits uint32
		want core.BF16
	}{
		{0x3f808000, 0x3f80}, // a tie, to even below
		{0x3f818000, 0x3f82}, // a tie, to even above
		{0x3f808001, 0x3f81},
		{0x3f807fff, 0x3f80},
		{0x7f7fffff, 0x7f80}, // the largest float32 rounds to infinity
		{0x7f800001, 0x7fc0}, // a NaN whose payload is all below
		{0xff800001, 0xffc0},
	} {
		if got := core.BF16Of(math.Float32frombits(tc.bits)); got != tc.want {
			t.Errorf("%#08x becomes %#04x, want %#04x", tc.bits, got, tc.want)
		}
	}
}
