package cai_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/cai"
)

func TestParseFormat(t *testing.T) {
	t.Parallel()
	littleEndian(t)
	for _, tc := range []struct {
		format string
		size   int
		want   core.DType
		tag    string
	}{
		{"", 1, core.Uint8, ""},
		{"?", 1, core.Bool, ""},
		{"b", 1, core.Int8, ""},
		{"B", 1, core.Uint8, ""},
		{"h", 2, core.Int16, ""},
		{"H", 2, core.Uint16, ""},
		{"i", 4, core.Int32, ""},
		{"I", 4, core.Uint32, ""},
		{"l", 8, core.Int64, ""},
		{"L", 8, core.Uint64, ""},
		{"@l", 8, core.Int64, ""},
		{"^l", 8, core.Int64, ""},
		{"=l", 4, core.Int32, ""},
		{"<L", 4, core.Uint32, ""},
		{"q", 8, core.Int64, ""},
		{"=q", 8, core.Int64, ""},
		{"Q", 8, core.Uint64, ""},
		{"n", 8, core.Int64, ""},
		{"N", 8, core.Uint64, ""},
		{"e", 2, core.Float16, ""},
		{"f", 4, core.Float32, ""},
		{"<f", 4, core.Float32, ""},
		{"d", 8, core.Float64, ""},
		{"Zf", 8, core.Complex64, ""},
		{"=Zf", 8, core.Complex64, ""},
		{"Zd", 16, core.Complex128, ""},
		{"F", 8, core.Complex64, ""},
		{"D", 16, core.Complex128, ""},
		{">d", 8, opaque(8), ">f8"},
		{"!i", 4, opaque(4), ">i4"},
		{">l", 4, opaque(4), ">i4"},
		{">Zd", 16, opaque(16), ">c16"},
		{">B", 1, core.Uint8, ""},
		{"4s", 4, opaque(4), "|S4"},
		{"s", 1, opaque(1), "|S1"},
		{"c", 1, opaque(1), "|S1"},
		{"3w", 12, opaque(12), "<U3"},
		{">3w", 12, opaque(12), ">U3"},
		{"4x", 4, opaque(4), "|V4"},
		{"u", 4, opaque(4), "u"},
		{"4p", 4, opaque(4), "4p"},
		{"T{i:a:f:b:}", 8, opaque(8), "T{i:a:f:b:}"},
		{"T{b:a:xxxxxxxd:b:}", 16, opaque(16), "T{b:a:xxxxxxxd:b:}"},
		{"T{=i:a:T{>d:O:=h:P:}:inner:}", 14, opaque(14), "T{=i:a:T{>d:O:=h:P:}:inner:}"},
		{"T{(2,3)f:grid:3s:text:}", 27, opaque(27), "T{(2,3)f:grid:3s:text:}"},
		{"T{Zg:a:g:b:}", 48, opaque(48), "T{Zg:a:g:b:}"},
		{"ii", 8, opaque(8), "ii"},
		{"2i", 8, opaque(8), "2i"},
		{"(2,2)d", 32, opaque(32), "(2,2)d"},
		{"ifxx", 10, opaque(10), "ifxx"},
	} {
		d, tag, err := cai.ParseFormat(tc.format, tc.size)
		if err != nil || d != tc.want || tag != tc.tag {
			t.Errorf("%q: %v %q, %v; want %v %q", tc.format, d, tag, err, tc.want, tc.tag)
		}
	}
}

func TestParseFormatRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		format string
		size   int
		text   string
	}{
		{"O", 8, "pointers"},
		{"P", 8, "pointers"},
		{"&i", 8, "pointers"},
		{"X{}", 8, "pointers"},
		{"T{i:a:O:b:}", 16, "pointers"},
		{"T{i:a:T{2O:b:}:c:}", 16, "pointers"},
		{"g", 16, "long doubles"},
		{"Zg", 32, "long doubles"},
		{"f", 8, "has 4 bytes, elements have 8"},
		{"l", 4, "has 8 bytes"},
		{"=l", 8, "has 4 bytes"},
		{"3w", 3, "has 12 bytes"},
		{"4s", 5, "has 4 bytes"},
		{"", 2, "has 1 bytes"},
		{"0s", 0, "0 bytes"},
		{"T{i:a:}", 0, "0 bytes"},
		{"T{i:a:}", 65536, "65536 bytes"},
		{"k", 1, "cannot be read"},
		{"Z", 1, "cannot be read"},
		{"Zi", 1, "cannot be read"},
		{"T{", 1, "cannot be read"},
		{"T{}", 1, "cannot be read"},
		{"}", 1, "cannot be read"},
		{"T{i}}", 1, "cannot be read"},
		{"T{i:a}", 4, "cannot be read"},
		{"(2f", 4, "cannot be read"},
		{"(x)f", 4, "cannot be read"},
		{"@", 1, "cannot be read"},
		{"12", 1, "cannot be read"},
		{"i:a", 4, "cannot be read"},
		{"é", 1, "cannot be read"},
		{strings.Repeat("T{", 10000), 4, "cannot be read"},
	} {
		d, tag, err := cai.ParseFormat(tc.format, tc.size)
		if !errors.Is(err, core.ErrDType) || !strings.Contains(err.Error(), tc.text) || d != core.Invalid || tag != "" {
			t.Errorf("%.40q of %d: %v %q; want %q, have %.200v", tc.format, tc.size, d, tag, tc.text, err)
		}
	}
}
