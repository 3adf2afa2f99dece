package core_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// named lists every constant with its DLPack triple, its text and its size, copied from dlpack.h and
// not from the code.
var named = []struct {
	d                       core.DType
	code, bits, lanes, size int
	text                    string
}{
	{core.Int4, 0, 4, 1, 0, "int4"},
	{core.Int8, 0, 8, 1, 1, "int8"},
	{core.Int16, 0, 16, 1, 2, "int16"},
	{core.Int32, 0, 32, 1, 4, "int32"},
	{core.Int64, 0, 64, 1, 8, "int64"},
	{core.Uint4, 1, 4, 1, 0, "uint4"},
	{core.Uint8, 1, 8, 1, 1, "uint8"},
	{core.Uint16, 1, 16, 1, 2, "uint16"},
	{core.Uint32, 1, 32, 1, 4, "uint32"},
	{core.Uint64, 1, 64, 1, 8, "uint64"},
	{core.Float16, 2, 16, 1, 2, "float16"},
	{core.Float32, 2, 32, 1, 4, "float32"},
	{core.Float64, 2, 64, 1, 8, "float64"},
	{core.BFloat16, 4, 16, 1, 2, "bfloat16"},
	{core.Complex64, 5, 64, 1, 8, "complex64"},
	{core.Complex128, 5, 128, 1, 16, "complex128"},
	{core.Bool, 6, 8, 1, 1, "bool"},
	{coretest.DType("float8_e3m4"), 7, 8, 1, 1, "float8_e3m4"},
	{coretest.DType("float8_e4m3"), 8, 8, 1, 1, "float8_e4m3"},
	{coretest.DType("float8_e4m3b11fnuz"), 9, 8, 1, 1, "float8_e4m3b11fnuz"},
	{coretest.DType("float8_e4m3fn"), 10, 8, 1, 1, "float8_e4m3fn"},
	{coretest.DType("float8_e4m3fnuz"), 11, 8, 1, 1, "float8_e4m3fnuz"},
	{coretest.DType("float8_e5m2"), 12, 8, 1, 1, "float8_e5m2"},
	{coretest.DType("float8_e5m2fnuz"), 13, 8, 1, 1, "float8_e5m2fnuz"},
	{coretest.DType("float8_e8m0fnu"), 14, 8, 1, 1, "float8_e8m0fnu"},
	{coretest.DType("float6_e2m3fn"), 15, 6, 1, 0, "float6_e2m3fn"},
	{coretest.DType("float6_e3m2fn"), 16, 6, 1, 0, "float6_e3m2fn"},
	{coretest.DType("float4_e2m1fn"), 17, 4, 1, 0, "float4_e2m1fn"},
}

func TestNamedDTypes(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{3: true} // opaque types have no constant
	for _, want := range named {
		t.Run(want.text, func(t *testing.T) {
			t.Parallel()
			d := want.d
			if d.Code() != want.code || d.Bits() != want.bits || d.Lanes() != want.lanes {
				t.Errorf("triple (%d, %d, %d)", d.Code(), d.Bits(), d.Lanes())
			}
			if d.Size() != want.size || d.Packed() != (want.size == 0) || d.Opaque() || !d.Valid() {
				t.Errorf("size %d, packed %v, opaque %v, valid %v", d.Size(), d.Packed(), d.Opaque(), d.Valid())
			}
			if d.String() != want.text {
				t.Errorf("text %q", d)
			}
			made, err := core.NewDType(want.code, want.bits, want.lanes)
			if err != nil || made != d {
				t.Errorf("NewDType gives %v, %v", made, err)
			}
			parsed, err := core.ParseDType(want.text)
			if err != nil || parsed != d {
				t.Errorf("ParseDType gives %v, %v", parsed, err)
			}
		})
		seen[want.code] = true
	}
	if len(seen) != 18 {
		t.Errorf("%d of DLPack 1.3's 18 type codes are tested", len(seen))
	}
}

func TestParseDType(t *testing.T) {
	t.Parallel()
	good := []struct {
		text                    string
		code, bits, lanes, size int
	}{
		{"float32x4", 2, 32, 4, 16},
		{"float4_e2m1fnx2", 17, 4, 2, 1},
		{"float6_e2m3fnx4", 15, 6, 4, 3},
		{"int2", 0, 2, 1, 0},
		{"uint1", 1, 1, 1, 0},
		{"uint1x8", 1, 1, 8, 1},
		{"complex32", 5, 32, 1, 4},
		{"complex64x2", 5, 64, 2, 16},
		{"boolx3", 6, 8, 3, 3},
		{"int4x65535", 0, 4, 65535, 0},
		{"opaque[1]", 3, 8, 1, 1},
		{"opaque[16]", 3, 8, 16, 16},
		{"opaque[65535]", 3, 8, 65535, 65535},
	}
	for _, tc := range good {
		d, err := core.ParseDType(tc.text)
		if err != nil || d.Code() != tc.code || d.Bits() != tc.bits || d.Lanes() != tc.lanes || d.Size() != tc.size {
			t.Errorf("%s: (%d, %d, %d) of %d bytes, %v", tc.text, d.Code(), d.Bits(), d.Lanes(), d.Size(), err)
		}
		if d.String() != tc.text {
			t.Errorf("%s comes back as %s", tc.text, d)
		}
	}
	for _, text := range []string{
		"", "float", "float8", "float128", "float80", "Float32", " float32", "float32 ", "<f4", "int", "int3",
		"int128", "bool8", "bool1", "opaque", "opaque[]", "opaque[0]", "opaque[65536]", "opaque[-1]", "opaque[016]",
		"opaque[+1]", "opaque[1", "opaque[1]x2", "float32x", "float32x0", "float32x1", "float32x01", "float32x65536",
		"float32x-4", "float32x4x2", "x4", "invalid(0x0)", "handle", "bfloat32", "complex16", "float8_e4m3fnuzx",
		"float32x99999999999999999999", strings.Repeat("x", 1000),
	} {
		if d, err := core.ParseDType(text); !errors.Is(err, core.ErrDType) || d != core.Invalid {
			t.Errorf("%.40q is read as %v, %v", text, d, err)
		}
	}
}

func TestNewDTypeRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range [][3]int{
		{-1, 8, 1}, {18, 8, 1}, {99, 8, 1}, {255, 8, 1}, {1 << 40, 8, 1}, // codes
		{0, 0, 1}, {0, 3, 1}, {0, -8, 1}, {0, 256, 1}, {0, 128, 1}, {2, 8, 1}, {2, 80, 1}, {6, 1, 1}, {17, 8, 1}, // bits
		{0, 8, 0}, {0, 8, -1}, {0, 8, 65536}, {0, 8, 1 << 40}, // lanes
		{3, 64, 1}, // a handle
	} {
		d, err := core.NewDType(tc[0], tc[1], tc[2])
		if !errors.Is(err, core.ErrDType) || d != core.Invalid {
			t.Errorf("%v gives %v, %v", tc, d, err)
		}
	}
	_, err := core.NewDType(99, 8, 1)
	if err == nil || !strings.Contains(err.Error(), "99") {
		t.Errorf("the error for code 99 does not name it: %v", err)
	}
}

func TestOpaque(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 7, 16, 65535} {
		d, err := core.Opaque(size)
		if err != nil || d.Size() != size || !d.Opaque() || d.Packed() || !d.Valid() || d.Code() != 3 {
			t.Errorf("opaque element of %d bytes: %v of %d, %v", size, d, d.Size(), err)
		}
		if want := fmt.Sprintf("opaque[%d]", size); d.String() != want {
			t.Errorf("%q instead of %q", d, want)
		}
	}
	for _, size := range []int{-1, 0, 65536, 1 << 40} {
		if d, err := core.Opaque(size); !errors.Is(err, core.ErrDType) || d != core.Invalid {
			t.Errorf("opaque element of %d bytes: %v, %v", size, d, err)
		}
	}
}

func TestInvalidDTypes(t *testing.T) {
	t.Parallel()
	for _, d := range []core.DType{0, 1, 8 << 16, 2<<24 | 32<<16, 200<<24 | 8<<16 | 1, 3<<24 | 64<<16 | 1, ^core.DType(0)} {
		if d.Valid() {
			t.Errorf("%#x is valid", uint32(d))
		}
		if text := d.String(); !strings.HasPrefix(text, "invalid(0x") {
			t.Errorf("%#x is printed as %q", uint32(d), text)
		}
		if _, err := d.MarshalText(); !errors.Is(err, core.ErrDType) {
			t.Errorf("%#x is marshalled: %v", uint32(d), err)
		}
	}
}

func TestDTypeJSON(t *testing.T) {
	t.Parallel()
	in := map[string]core.DType{"a": core.Float32, "b": core.Int4}
	text, err := json.Marshal(in)
	if err != nil || string(text) != `{"a":"float32","b":"int4"}` {
		t.Fatalf("%s, %v", text, err)
	}
	var out map[string]core.DType
	if err := json.Unmarshal(text, &out); err != nil || out["a"] != core.Float32 || out["b"] != core.Int4 {
		t.Errorf("%v, %v", out, err)
	}
	d := core.Uint8
	if err := d.UnmarshalText([]byte("float31")); !errors.Is(err, core.ErrDType) || d != core.Uint8 {
		t.Errorf("a bad text gives %v, %v", d, err)
	}
}

func FuzzParseDType(f *testing.F) {
	for _, n := range named {
		f.Add(n.text, uint32(n.d))
	}
	f.Add("float32x4", uint32(0))
	f.Add("opaque[16]", ^uint32(0))
	f.Fuzz(func(t *testing.T, text string, word uint32) {
		if d, err := core.ParseDType(text); err == nil {
			if d.String() != text || !d.Valid() {
				t.Errorf("%q is read as %v, valid %v", text, d, d.Valid())
			}
		} else if !errors.Is(err, core.ErrDType) {
			t.Errorf("%q: %v", text, err)
		}
		d := core.DType(word)
		back, err := core.ParseDType(d.String())
		if d.Valid() != (err == nil) || err == nil && back != d {
			t.Errorf("%#x is %q, which is read as %#x, %v", word, d, uint32(back), err)
		}
		made, err := core.NewDType(d.Code(), d.Bits(), d.Lanes())
		if d.Valid() != (err == nil) || err == nil && made != d {
			t.Errorf("%#x is made as %#x, %v", word, uint32(made), err)
		}
	})
}
