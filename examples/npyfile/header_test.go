package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// file puts a header of a version before so many bytes of data.
func file(major byte, header string, data int) []byte {
	b := append([]byte(magic), major, 0)
	if major == 1 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
	}
	return append(append(b, header...), make([]byte, data)...)
}

func describe(descr, fortran, shape string) string {
	return "{'descr': " + descr + ", 'fortran_order': " + fortran + ", 'shape': " + shape + ", }"
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	opaque := func(n int) core.DType {
		d, err := core.Opaque(n)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for name, c := range map[string]struct {
		major                 byte
		descr, fortran, shape string
		data                  int
		want                  core.LayoutSpec
	}{
		"float":     {1, `'<f8'`, "False", "(2, 3)", 48, core.LayoutSpec{DType: core.Float64, Shape: []int{2, 3}, Strides: []int{24, 8}}},
		"version 2": {2, `'<f4'`, "False", "(3,)", 12, core.LayoutSpec{DType: core.Float32, Shape: []int{3}, Strides: []int{4}}},
		"fortran":   {1, `'<i2'`, "True", "(2, 3, 4)", 48, core.LayoutSpec{DType: core.Int16, Shape: []int{2, 3, 4}, Strides: []int{2, 4, 12}}},
		"scalar":    {1, `'|b1'`, "False", "()", 1, core.LayoutSpec{DType: core.Bool, Shape: []int{}, Strides: []int{}}},
		"python 2":  {1, `'<u2'`, "False", "(3L,)", 6, core.LayoutSpec{DType: core.Uint16, Shape: []int{3}, Strides: []int{2}}},
		"empty":     {1, `"|u1"`, "True", "(0, 3)", 0, core.LayoutSpec{DType: core.Uint8, Shape: []int{0, 3}, Strides: []int{1, 1}}},
		"one byte":  {1, `'>u1'`, "False", "(1,)", 1, core.LayoutSpec{DType: core.Uint8, Shape: []int{1}, Strides: []int{1}}},
		"complex":   {1, `'<c16'`, "False", "(1,)", 16, core.LayoutSpec{DType: core.Complex128, Shape: []int{1}, Strides: []int{16}}},
		"foreign":   {1, `'>f8'`, "False", "(2,)", 16, core.LayoutSpec{DType: opaque(8), Tag: ">f8", Shape: []int{2}, Strides: []int{8}}},
		"dates":     {1, `'<M8[25us]'`, "False", "(1,)", 8, core.LayoutSpec{DType: opaque(8), Tag: "datetime64[25us]", Shape: []int{1}, Strides: []int{8}}},
		"spans":     {1, `'<m8'`, "False", "(1,)", 8, core.LayoutSpec{DType: opaque(8), Tag: "timedelta64", Shape: []int{1}, Strides: []int{8}}},
		"text":      {1, `'<U5'`, "False", "(1,)", 20, core.LayoutSpec{DType: opaque(20), Tag: "<U5", Shape: []int{1}, Strides: []int{20}}},
		"void":      {1, `'|V3'`, "False", "(1,)", 3, core.LayoutSpec{DType: opaque(3), Tag: "|V3", Shape: []int{1}, Strides: []int{3}}},
		"long":      {1, `'<f16'`, "False", "(1,)", 16, core.LayoutSpec{DType: opaque(16), Tag: "<f16", Shape: []int{1}, Strides: []int{16}}},
		"structure": {
			3, `[('å', '<i4'), ((u8t, 'b'), '<f8', (2, 2)), ('c', [('d', '|S3')])]`, "False", "(1,)", 39,
			core.LayoutSpec{
				DType: opaque(39), Tag: `[('å', '<i4'), (('t', 'b'), '<f8', (2, 2)), ('c', [('d', '|S3')])]`,
				Shape: []int{1}, Strides: []int{39},
			},
		},
	} {
		header := describe(strings.ReplaceAll(c.descr, "u8t", "'t'"), c.fortran, c.shape)
		b := file(c.major, header, c.data)
		got, err := readHeader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, err := core.NewLayout(core.LayoutSpec{
			DType: c.want.DType, Shape: c.want.Shape, Strides: c.want.Strides, Tag: c.want.Tag, ReadOnly: true, Offset: len(b) - c.data,
		})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.layout.Spec(), want.Spec()) || got.end != int64(len(b)) {
			t.Errorf("%s: %+v, end %d; want %+v, end %d", name, got.layout.Spec(), got.end, want.Spec(), len(b))
		}
	}
}

func TestBadHeaders(t *testing.T) {
	t.Parallel()
	good := describe(`'<f8'`, "False", "(1,)")
	for name, c := range map[string]struct {
		file []byte
		want error
	}{
		"empty file":        {nil, core.ErrLayout},
		"magic only":        {[]byte(magic), core.ErrLayout},
		"version 0":         {file(0, good, 8), core.ErrLayout},
		"version 4":         {file(4, good, 8), core.ErrLayout},
		"cut in length":     {file(2, good, 8)[:9], core.ErrLayout},
		"cut in header":     {file(1, good, 8)[:30], core.ErrLayout},
		"header of 4 GiB":   {append([]byte(magic), 2, 0, 255, 255, 255, 255), core.ErrLayout},
		"not UTF-8":         {file(3, strings.Replace(good, "f8", "f\xff", 1), 8), core.ErrLayout},
		"data missing":      {file(1, good, 7), core.ErrLayout},
		"no literal":        {file(1, "import os", 8), core.ErrLayout},
		"call":              {file(1, describe(`'<f8'`, "False", "(eval('1'),)"), 8), core.ErrLayout},
		"two literals":      {file(1, good+" 1", 8), core.ErrLayout},
		"key twice":         {file(1, strings.Replace(good, "shape", "descr", 1), 8), core.ErrLayout},
		"key missing":       {file(1, "{'descr': '<f8', 'shape': (1,)}", 8), core.ErrLayout},
		"key too many":      {file(1, strings.Replace(good, "{", "{'x': 1, ", 1), 8), core.ErrLayout},
		"no end":            {file(1, good[:len(good)-1], 8), core.ErrLayout},
		"string no end":     {file(1, "{'descr", 8), core.ErrLayout},
		"deep":              {file(1, strings.Repeat("(", 5000), 8), core.ErrLayout},
		"list":              {file(1, "[1, 2, 3]", 8), core.ErrLayout},
		"order as text":     {file(1, describe(`'<f8'`, "'no'", "(1,)"), 8), core.ErrLayout},
		"shape as number":   {file(1, describe(`'<f8'`, "False", "(1)"), 8), core.ErrLayout},
		"extent as text":    {file(1, describe(`'<f8'`, "False", "('1',)"), 8), core.ErrLayout},
		"negative extent":   {file(1, describe(`'<f8'`, "False", "(-1,)"), 8), core.ErrLayout},
		"huge extents":      {file(1, describe(`'<f8'`, "True", "(4294967296, 4294967296)"), 8), core.ErrLayout},
		"extent of 2^64":    {file(1, describe(`'<f8'`, "False", "(18446744073709551616,)"), 8), core.ErrLayout},
		"65 axes":           {file(1, describe(`'<f8'`, "False", "("+strings.Repeat("1, ", 65)+")"), 8), core.ErrLayout},
		"objects":           {file(1, describe(`'|O'`, "False", "(1,)"), 8), core.ErrDType},
		"objects of 8":      {file(1, describe(`'|O8'`, "False", "(1,)"), 8), core.ErrDType},
		"unknown kind":      {file(1, describe(`'<q8'`, "False", "(1,)"), 8), core.ErrDType},
		"no kind":           {file(1, describe(`'<'`, "False", "(1,)"), 8), core.ErrDType},
		"no size":           {file(1, describe(`'<f'`, "False", "(1,)"), 8), core.ErrDType},
		"size 0":            {file(1, describe(`'|S0'`, "False", "(1,)"), 8), core.ErrDType},
		"huge size":         {file(1, describe(`'|S65536'`, "False", "(1,)"), 8), core.ErrDType},
		"huge text":         {file(1, describe(`'<U65535'`, "False", "(1,)"), 8), core.ErrDType},
		"descr as number":   {file(1, describe(`8`, "False", "(1,)"), 8), core.ErrDType},
		"objects in struct": {file(1, describe(`[('a', '|O')]`, "False", "(1,)"), 8), core.ErrDType},
		"empty struct":      {file(1, describe(`[]`, "False", "(1,)"), 8), core.ErrDType},
		"field no descr":    {file(1, describe(`[('a',)]`, "False", "(1,)"), 8), core.ErrDType},
		"huge field":        {file(1, describe(`[('a', '<f8', (65535, 65535))]`, "False", "(1,)"), 8), core.ErrDType},
		"negative field":    {file(1, describe(`[('a', '<f8', (-1,))]`, "False", "(1,)"), 8), core.ErrDType},
	} {
		h, err := readHeader(bytes.NewReader(c.file), int64(len(c.file)))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, h.layout.Spec(), err, c.want)
		}
	}
}

func TestLiterals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		`(1)`: 1, `(1,)`: sequence{1}, `()`: sequence{}, "\t[ 1 , -2 ]\n": sequence{1, -2}, `None`: nil,
		`'it\'s'`: "it's", `"\x41\n"`: "A\n", `'é'`: "é",
	} {
		if got, err := parseLiteral(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %#v, %v; want %#v", text, got, err, want)
		}
	}
}

// FuzzHeader reads arbitrary files, and holds what passes to what mapping relies on.
func FuzzHeader(f *testing.F) {
	for _, a := range coretest.Arrays() {
		if b, err := a.NPY(); err == nil && len(b) < 1<<12 {
			f.Add(b)
		}
	}
	f.Add(file(3, describe(`[('å', '<i4'), (('t', 'b'), '<f8', (2, 2))]`, "True", "(1, 2)"), 72))
	f.Add(file(1, describe(`'<f8'`, "True", "(4294967296, 4294967296)"), 8))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := readHeader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if _, ok := errors.AsType[*core.Error](err); !ok {
				t.Fatalf("error %v without a category", err)
			}
			return
		}
		lo, hi := h.layout.Span()
		if h.layout.Len() > 0 && (lo < len(magic) || hi > len(b) || int64(hi) != h.end) || !h.layout.ReadOnly() {
			t.Fatalf("%+v: bytes %d to %d of %d", h.layout.Spec(), lo, hi, len(b))
		}
		if _, err := core.NewLayout(h.layout.Spec()); err != nil {
			t.Fatal(err)
		}
	})
}
