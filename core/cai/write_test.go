package cai_test

import (
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/cai"
)

// What is written is read again as what it was.
func TestWritten(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct{ typestr, format string }{
		"bool": {"|b1", "?"}, "int8": {"|i1", "b"}, "uint8": {"|u1", "B"}, "int16": {"<i2", "h"}, "uint16": {"<u2", "H"},
		"int32": {"<i4", "i"}, "uint32": {"<u4", "I"}, "int64": {"<i8", "l"}, "uint64": {"<u8", "L"},
		"float16": {"<f2", "e"}, "float32": {"<f4", "f"}, "float64": {"<f8", "d"},
		"complex64": {"<c8", "Zf"}, "complex128": {"<c16", "Zd"},
		"bfloat16": {"|V2", ""}, "float8_e5m2": {"|V1", ""}, "complex32": {"|V4", ""}, "float32x4": {"|V16", ""},
		"opaque[5]": {"|V5", ""}, "int4": {"", ""}, "float6_e2m3fn": {"", ""}, "int4x2": {"|V1", ""},
	} {
		d, err := core.ParseDType(name)
		if err != nil {
			t.Fatal(err)
		}
		typestr, format := cai.Typestr(d), cai.Format(d)
		if typestr != want.typestr || format != want.format {
			t.Errorf("%s: %q and %q, want %q and %q", name, typestr, format, want.typestr, want.format)
		}
		if format == "" {
			continue
		}
		if got, tag, err := cai.ParseTypestr(typestr, ""); got != d || tag != "" || err != nil {
			t.Errorf("%q is %v, %q, %v", typestr, got, tag, err)
		}
		if got, tag, err := cai.ParseFormat(format, d.Size()); got != d || tag != "" || err != nil {
			t.Errorf("%q is %v, %q, %v", format, got, tag, err)
		}
	}
}
