package numbers

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// TestSmallFloats compares every pattern with what ml_dtypes makes of it.
func TestSmallFloats(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/small_floats.txt")
	if err != nil {
		t.Fatal(err)
	}
	formats := 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		d, err := core.ParseDType(fields[0])
		if err != nil {
			t.Fatal(err)
		}
		formats++
		got := smallValues(d)
		if len(fields[1:]) != 1<<d.Bits() {
			t.Fatalf("%v: %d patterns", d, len(fields[1:]))
		}
		for pattern, field := range fields[1:] {
			want, err := strconv.ParseFloat(field, 64)
			if err != nil {
				t.Fatal(err)
			}
			x := got[pattern]
			if math.Float64bits(x) != math.Float64bits(want) && !(math.IsNaN(x) && math.IsNaN(want)) {
				t.Errorf("%v: pattern %#x is %v, want %v", d, pattern, x, want)
			}
		}
	}
	if formats != len(smallFormats()) {
		t.Errorf("%d formats compared of %d", formats, len(smallFormats()))
	}
}

func TestPackedNumbers(t *testing.T) {
	t.Parallel()
	dtype := func(code, bits int) core.DType {
		d, err := core.NewDType(code, bits, 1)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	cases := []struct {
		dtype core.DType
		raw   []byte
		want  []float64
	}{
		{core.Int4, []byte{0x8f, 0x07}, []float64{-1, -8, 7}},
		{core.Uint4, []byte{0x8f, 0x07}, []float64{15, 8, 7}},
		{dtype(0, 2), []byte{0b11_10_01_00}, []float64{0, 1, -2, -1}},
		{dtype(1, 1), []byte{0b0000_0101, 1}, []float64{1, 0, 1, 0, 0, 0, 0, 0, 1}},
		{coretest.DType("float4_e2m1fn"), []byte{0x21, 0xf7}, []float64{0.5, 1, 6, -6}},
		// Four to three bytes: 0b000001, 0b100000, 0b011111, 0b111111.
		{coretest.DType("float6_e2m3fn"), []byte{0x01, 0xf8, 0xfd}, []float64{0.125, math.Copysign(0, -1), 7.5, -7.5}},
	}
	for _, c := range cases {
		got := Append(nil, c.raw, Type{DType: c.dtype}, len(c.want))
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%v: got %v, want %v", c.dtype, got, c.want)
		}
	}
}

func TestMagnitudes(t *testing.T) {
	t.Parallel()
	complex32, err := core.NewDType(core.Complex64.Code(), 32, 1)
	if err != nil {
		t.Fatal(err)
	}
	one, half := []byte{0, 0x3c}, []byte{0, 0x38}
	cases := []struct {
		dtype core.DType
		raw   []byte
		want  float64
	}{
		{core.Bool, []byte{7}, 1},
		{core.Int8, []byte{0x80}, -128},
		{core.Uint8, []byte{0x80}, 128},
		{core.Int16, []byte{0xfe, 0xff}, -2},
		{core.Uint16, []byte{0xfe, 0xff}, 65534},
		{core.Int32, []byte{0, 0, 0, 0x80}, math.MinInt32},
		{core.Uint32, []byte{0, 0, 0, 0x80}, 1 << 31},
		{core.Int64, []byte{0, 0, 0, 0, 0, 0, 0, 0x80}, math.MinInt64},
		{core.Uint64, []byte{0, 0, 0, 0, 0, 0, 0, 0x80}, 1 << 63},
		{core.Float16, one, 1},
		{core.BFloat16, []byte{0x80, 0xbf}, -1},
		{core.Float32, []byte{0, 0, 0x20, 0xc0}, -2.5},
		{core.Float64, []byte{0, 0, 0, 0, 0, 0, 4, 0xc0}, -2.5},
		{complex32, append(append([]byte{}, one...), half...), math.Hypot(1, 0.5)},
	}
	for _, c := range cases {
		got := Append(nil, c.raw, Type{DType: c.dtype}, 1)
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("%v: got %v, want %v", c.dtype, got, c.want)
		}
	}
}

// TestForeignOrder reads numbers whose bytes stand in the order that this machine has not, backwards and with gaps.
func TestForeignOrder(t *testing.T) {
	t.Parallel()
	foreign := ">"
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		foreign = "<"
	}
	for kind, one := range map[string][]byte{ // the number 1, or 1j, and a byte that does not belong to it
		"i2": {0, 1, 9}, "u2": {0, 1, 9}, "i4": {0, 0, 0, 1, 9}, "u4": {0, 0, 0, 1, 9}, "i8": {0, 0, 0, 0, 0, 0, 0, 1, 9}, "u8": {0, 0, 0, 0, 0, 0, 0, 1, 9},
		"f2": {0x3c, 0, 9}, "f4": {0x3f, 0x80, 0, 0, 9}, "f8": {0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 9},
		"c8": {0, 0, 0, 0, 0x3f, 0x80, 0, 0, 9}, "c16": {0, 0, 0, 0, 0, 0, 0, 0, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 9},
	} {
		if foreign == "<" {
			part := one[:len(one)-1]
			if kind[0] == 'c' {
				slices.Reverse(part[:len(part)/2])
				part = part[len(part)/2:]
			}
			slices.Reverse(part)
		}
		d := TypeOf(layout(t, len(one)-1, foreign+kind))
		if !d.Known() || d.Size() != len(one)-1 {
			t.Errorf("%s: %v", kind, d)
			continue
		}
		const n = 150
		raw := slices.Concat(slices.Repeat(one, n), one[:len(one)-1])
		xs := make([]float64, n)
		d.Reader()(xs, raw, len(one)*(n-1), -len(one))
		if slices.Min(xs) != 1 || slices.Max(xs) != 1 {
			t.Errorf("%s: from %v to %v", kind, slices.Min(xs), slices.Max(xs))
		}
		if x := Append(nil, raw, d, 1); x[0] != 1 || raw[len(one)-1] != 9 {
			t.Errorf("%s: %v, and the bytes are %v", kind, x, raw[:len(one)])
		}
	}
	for _, other := range []struct {
		size int
		tag  string
	}{{8, foreign + "M8[ns]"}, {8, foreign + "U2"}, {4, foreign + "f8"}, {16, foreign + "f16"}, {4, "[('a', '<f4')]"}, {4, ""}, {4, foreign}, {8, "datetime64[ns]"}} {
		if d := TypeOf(layout(t, other.size, other.tag)); d.Known() {
			t.Errorf("%q of %d bytes is %v", other.tag, other.size, d)
		}
	}
}

func layout(t *testing.T, size int, tag string) core.Layout {
	t.Helper()
	opaque, err := core.Opaque(size)
	if err != nil {
		t.Fatal(err)
	}
	l, err := core.NewLayout(core.LayoutSpec{DType: opaque, Tag: tag})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
