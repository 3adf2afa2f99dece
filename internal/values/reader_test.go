package values_test

import (
	"bytes"
	"errors"
	"math/big"
	"runtime"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/values"
)

func TestHostile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ form, want string }{
		"nothing":                       {"", "ends too early"},
		"undefined":                     {"f7", "byte 0xf7"},
		"half float":                    {"f93c00", "byte 0xf9"},
		"indefinite list":               {"9fff", "byte 0x9f"},
		"indefinite text":               {"7f6161ff", "byte 0x7f"},
		"break":                         {"ff", "byte 0xff"},
		"reserved number":               {"1c", "byte 0x1c"},
		"1 byte for 23":                 {"1817", "the number 23 in 1 bytes"},
		"2 bytes for 255":               {"1900ff", "the number 255 in 2 bytes"},
		"4 bytes for 65535":             {"1a0000ffff", "the number 65535 in 4 bytes"},
		"8 bytes for 1":                 {"1b0000000000000001", "the number 1 in 8 bytes"},
		"text that is no UTF-8":         {"61ff", "not UTF-8"},
		"surrogate":                     {"63eda080", "not UTF-8"},
		"long text":                     {"7bffffffffffffffff61", "ends too early"},
		"long bytes":                    {"5b7fffffffffffffff61", "ends too early"},
		"long list":                     {"9bffffffffffffffff", "items"},
		"long dict":                     {"bb7fffffffffffffff00", "items"},
		"dict with half a pair":         {"a100", "items"},
		"long tuple":                    {"d96e641affffffff", "major type 0"},
		"lists that claim much":         {"82" + "82" + "0000", "items"},
		"unknown tag":                   {"c100", "the tag 1"},
		"small big int":                 {"c24101", "too long for its value"},
		"big int of 8 bytes":            {"c2488000000000000000", "too long"},
		"big int with a zero":           {"c249000000000000000001", "too long"},
		"big int of text":               {"c26161", "major type 3"},
		"complex of one":                {"d9a7f881fb0000000000000000", "a complex number of 1 parts"},
		"complex of ints":               {"d9a7f88200000000000000000000000000000000", "not a float"},
		"complex of a dict":             {"d9a7f8a0", "major type 5"},
		"record of one":                 {"d81b8161", "a record of 1 parts"},
		"record without a type":         {"d81b8200a0", "major type 0"},
		"record without fields":         {"d81b826150" + "80", "major type 4"},
		"record of a dict":              {"d81ba0", "major type 5"},
		"field with a number for name":  {"d81b826150a10001", "a field whose name is of the type int"},
		"field with a list for a name":  {"d81b826150a18001", "a field whose name is of the type list"},
		"array with a negative number":  {"d96e6620", "major type 1"},
		"array with a large number":     {"d96e661a80000000", "the number 2147483648"},
		"too deep":                      {strings.Repeat("81", values.MaxDepth+1) + "00", "deep"},
		"too deep in dicts and records": {strings.Repeat("a1d81b826150a16161", 51) + "00", ""},
	} {
		b := unhex(t, tc.form)
		v, err := values.Value(b, func(int) (*core.View, error) { return nil, nil }) //nolint:nilnil // a test's
		if !errors.Is(err, core.ErrProtocol) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %#v, %v; want %s", name, v, err, tc.want)
		}
		r := values.NewReader(b)
		if err := r.Skip(); !errors.Is(err, core.ErrProtocol) {
			t.Errorf("%s is passed over: %v", name, err)
		}
	}
	if err := values.NewReader([]byte{0x82, 0}).End(); !errors.Is(err, core.ErrProtocol) {
		t.Errorf("the end of what was not read: %v", err)
	}
}

// TestMemory: what claims to be large takes no memory.
func TestMemory(t *testing.T) { //nolint:paralleltest // counts what is allocated
	var deep []byte
	for range values.MaxDepth - 1 {
		deep = append(deep, 0x9a, 0x00, 0x01, 0x00, 0x00)
	}
	deep = append(deep, bytes.Repeat([]byte{0xf6}, 1<<17)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := values.Value(deep, nil); !errors.Is(err, core.ErrProtocol) {
		t.Error(err)
	}
	if err := values.Decode(deep, new([][][][]any), nil); !errors.Is(err, core.ErrProtocol) {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 40*uint64(len(deep)) {
		t.Errorf("%d bytes were allocated for %d", n, len(deep))
	}
}

// TestSequence: several values one after the other.
func TestSequence(t *testing.T) {
	t.Parallel()
	b := append(form(t, []any{1, map[string]any{"a": 2}}), form(t, "x")...)
	r := values.NewReader(b)
	if err := r.Skip(); err != nil || !r.More() {
		t.Fatal(err)
	}
	tok, err := r.Next()
	if err != nil || tok.Kind != values.KindText || string(tok.Bytes) != "x" || r.End() != nil || r.At() != len(r.Form()) {
		t.Errorf("%+v, %v", tok, err)
	}
}

func TestBig(t *testing.T) {
	t.Parallel()
	for bits := range 130 {
		for _, d := range []int64{-2, -1, 0, 1} {
			for _, sign := range []int64{-1, 1} {
				n := new(big.Int).Lsh(big.NewInt(1), uint(bits))
				n.Mul(n.Add(n, big.NewInt(d)), big.NewInt(sign))
				var got *big.Int
				if err := values.Decode(form(t, n), &got, nil); err != nil || got.Cmp(n) != 0 {
					t.Errorf("%v has become %v, %v", n, got, err)
				}
				if n.IsInt64() && !bytes.Equal(form(t, n), form(t, n.Int64())) {
					t.Errorf("%v has two forms", n)
				}
			}
		}
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	if got := values.KindFrozenSet.String() + values.Kind(99).String(); got != "frozensetKind(99)" {
		t.Error(got)
	}
}

// rewrite writes what a form says, token by token.
func rewrite(b []byte) ([]byte, error) {
	r, w := values.NewReader(b), values.NewWriter(nil)
	for left := 1; left > 0; left-- {
		t, err := r.Next()
		if err != nil {
			return nil, err
		}
		left += t.Items()
		switch t.Kind {
		case values.KindNull:
			w.Null()
		case values.KindBool:
			w.Bool(t.Int != 0)
		case values.KindInt:
			w.Int(t.Int)
		case values.KindBig:
			w.Big(t.Neg, t.Bytes)
		case values.KindFloat:
			w.Float(real(t.Num))
		case values.KindComplex:
			w.Complex(t.Num)
		case values.KindText:
			w.TextBytes(t.Bytes)
		case values.KindBytes:
			w.Bytes(t.Bytes)
		case values.KindArray:
			w.Array(t.N)
		case values.KindList:
			w.List(t.N)
		case values.KindTuple:
			w.Tuple(t.N)
		case values.KindSet:
			w.Set(t.N)
		case values.KindFrozenSet:
			w.FrozenSet(t.N)
		case values.KindDict:
			w.Dict(t.N)
		default:
			w.Record(string(t.Bytes), t.N)
		}
	}
	return w.Form(), r.End()
}

// FuzzForm: what is read is written as it was; and what is a value has a form that leads to the same value.
func FuzzForm(f *testing.F) {
	for _, tc := range forms {
		f.Add(unhex(f, tc.form))
	}
	f.Add(bytes.Repeat([]byte{0x81}, 101))
	f.Add([]byte{0xd9, 0x6e, 0x66, 0x05})
	view := new(core.View)
	f.Fuzz(func(t *testing.T, b []byte) {
		again, err := rewrite(b)
		if err == nil && !bytes.Equal(again, b) {
			t.Fatalf("%x is written as %x", b, again)
		}
		read := func(int) (*core.View, error) { return view, nil }
		v, wrong := values.Value(b, read)
		if (err == nil) != (wrong == nil) {
			t.Fatalf("%x: %v, but %v", b, err, wrong)
		}
		for _, into := range []any{new(any), new(tagged), new([]tagged), new(map[any]any), new(map[string]any), new([2]string), new(contract.Dict), new([]contract.Record), new(*float32)} {
			if e := values.Decode(b, into, read); err == nil && e != nil && !errors.Is(e, core.ErrConfig) {
				t.Fatalf("%x into %T: %v", b, into, e)
			}
		}
		if err != nil {
			if !errors.Is(err, core.ErrProtocol) {
				t.Fatalf("%x: %v", b, err)
			}
			return
		}
		write := func(*core.View) (int, error) { return 0, nil }
		first, err := values.Append(nil, v, write)
		if err != nil {
			t.Fatalf("%#v of %x: %v", v, b, err)
		}
		if v, err = values.Value(first, read); err != nil {
			t.Fatalf("%x: %v", first, err)
		}
		if second, err := values.Append(nil, v, write); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%x, then %x, %v", first, second, err)
		}
	})
}
