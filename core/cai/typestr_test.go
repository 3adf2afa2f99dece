package cai_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/cai"
)

// These tests are written for a machine whose numbers begin with the low byte, as all that frameworks
// run on today do.
func littleEndian(t *testing.T) {
	t.Helper()
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Fatal("the tables of this test are for little-endian machines")
	}
}

func opaque(size int) core.DType { return core.DType(3<<24 | 8<<16 | size) }

func TestParseTypestr(t *testing.T) {
	t.Parallel()
	littleEndian(t)
	const fields = "[('a', '<i4'), ('b', '<f8')]"
	for _, tc := range []struct {
		typestr, descr string
		want           core.DType
		tag            string
	}{
		{"|b1", "", core.Bool, ""},
		{"<b1", "", core.Bool, ""},
		{"|i1", "", core.Int8, ""},
		{"|u1", "", core.Uint8, ""},
		{">u1", "", core.Uint8, ""},
		{"<i2", "", core.Int16, ""},
		{"<i4", "", core.Int32, ""},
		{"<i8", "", core.Int64, ""},
		{"=i8", "", core.Int64, ""},
		{"|i8", "", core.Int64, ""},
		{"i8", "", core.Int64, ""},
		{"<u2", "", core.Uint16, ""},
		{"<u4", "", core.Uint32, ""},
		{"<u8", "", core.Uint64, ""},
		{"<f2", "", core.Float16, ""},
		{"<f4", "[('', '<f4')]", core.Float32, ""},
		{"<f8", "", core.Float64, ""},
		{"<c4", "", 5<<24 | 32<<16 | 1, ""},
		{"<c8", "", core.Complex64, ""},
		{"<c16", "", core.Complex128, ""},
		{">i4", "", opaque(4), ">i4"},
		{">f8", "", opaque(8), ">f8"},
		{"!f8", "", opaque(8), ">f8"},
		{">c16", "", opaque(16), ">c16"},
		{"<M8[ns]", "", opaque(8), "datetime64[ns]"},
		{"<M8[25us]", "", opaque(8), "datetime64[25us]"},
		{"<M8", "", opaque(8), "datetime64"},
		{"<m8[D]", "", opaque(8), "timedelta64[D]"},
		{">M8[ns]", "", opaque(8), ">M8[ns]"},
		{"|S5", "", opaque(5), "|S5"},
		{"|a5", "", opaque(5), "|S5"},
		{"<U3", "", opaque(12), "<U3"},
		{">U3", "", opaque(12), ">U3"},
		{"|V8", "", opaque(8), "|V8"},
		{"|V8", "[('', '|V8')]", opaque(8), "|V8"},
		{"|V12", fields, opaque(12), fields},
		{"|V8", "[('', '|V4'), ('b', '<f4')]", opaque(8), "[('', '|V4'), ('b', '<f4')]"},
		{"<V2", "", opaque(2), "|V2"},
		{"|S65535", "", opaque(65535), "|S65535"},
		{"=f", "", core.Float32, ""},
		{"=d", "", core.Float64, ""},
		{"=?", "", core.Bool, ""},
		{"=q", "", core.Int64, ""},
		{"=l", "", core.Int32, ""},
		{"l", "", core.Int64, ""},
		{"=e", "", core.Float16, ""},
		{"=Zf", "", core.Complex64, ""},
		{">d", "", opaque(8), ">f8"},
		{"f", "", core.Float32, ""},
	} {
		d, tag, err := cai.ParseTypestr(tc.typestr, tc.descr)
		if err != nil || d != tc.want || tag != tc.tag {
			t.Errorf("%q %q: %v %q, %v; want %v %q", tc.typestr, tc.descr, d, tag, err, tc.want, tc.tag)
		}
	}
}

// TestFieldsOfPointers: structures with pointers to Python objects are refused, and those with names like that are not.
func TestFieldsOfPointers(t *testing.T) {
	t.Parallel()
	for descr, refused := range map[string]bool{
		"[('x', '<f4'), ('o', '|O')]":                       true,
		"[('x', '<f4'), ('o', '|O8', (2,))]":                true,
		"[('x', [('y', '<f4'), ('z', '|O')]), ('', '|V4')]": true,
		"[('O', '<f4'), ('|O', '<i8')]":                     false,
		"[('a', '|V8'), ('O8', '|S4')]":                     false,
	} {
		_, _, err := cai.ParseTypestr("|V12", descr)
		if errors.Is(err, core.ErrDType) != refused || err != nil && !refused {
			t.Errorf("%s: %v, want an error: %v", descr, err, refused)
		}
	}
}

func TestParseTypestrRefuses(t *testing.T) {
	t.Parallel()
	for typestr, text := range map[string]string{
		"":                       "cannot be read",
		"<":                      "cannot be read",
		"<f4" + " ":              "cannot be read",
		"<<f4":                   "cannot be read",
		"f4f4":                   "cannot be read",
		"<f-4":                   "cannot be read",
		"<f+4":                   "cannot be read",
		"<f99999999999999999999": "cannot be read",
		"<f4[ns]":                "cannot be read",
		"<M8[]":                  "cannot be read",
		"<M8[ns":                 "cannot be read",
		"<M8ns]":                 "cannot be read",
		"<M4[ns]":                "8 bytes",
		"|O8":                    "Python objects",
		"|O":                     "cannot be read",
		"<f16":                   "long doubles",
		"<f12":                   "no such type",
		"<f1":                    "no such type",
		"<f3":                    "no such type",
		"<c32":                   "no such type",
		"=g":                     "long doubles",
		"|b2":                    "no such type",
		"|b0":                    "no such type",
		"<i0":                    "no such type",
		"<i3":                    "no such type",
		"<i16":                   "no such type",
		"<u16":                   "no such type",
		"<i268435457":            "no such type",
		"|t4":                    "unknown kind",
		"|S0":                    "0 bytes",
		"<U0":                    "0 bytes",
		"|V0":                    "0 bytes",
		"|V65536":                "65536 bytes",
		"<U16384":                "65536 bytes",
		"<U999999999":            "bytes",
		"|S999999999":            "bytes",
		"\xff\xfe":               "cannot be read",
	} {
		d, tag, err := cai.ParseTypestr(typestr, "")
		if !errors.Is(err, core.ErrDType) || !strings.Contains(err.Error(), text) || d != core.Invalid || tag != "" {
			t.Errorf("%q: %v %q; want %q, have %v", typestr, d, tag, text, err)
		}
	}
}
