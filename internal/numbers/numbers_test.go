package numbers

import (
	"fmt"
	"math"
	"os"
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
		got := Append(nil, c.raw, c.dtype, len(c.want))
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
		got := Append(nil, c.raw, c.dtype, 1)
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("%v: got %v, want %v", c.dtype, got, c.want)
		}
	}
}
