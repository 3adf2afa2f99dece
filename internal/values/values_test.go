package values_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"math/big"
	"reflect"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/values"
)

func huge(text string) *big.Int {
	n, ok := new(big.Int).SetString(text, 0)
	if !ok {
		panic(text)
	}
	return n
}

// forms are values with their forms, each of which leads to the other.
var forms = []struct {
	value any
	form  string
}{
	{nil, "f6"},
	{false, "f4"},
	{true, "f5"},
	{int64(0), "00"},
	{int64(23), "17"},
	{int64(24), "1818"},
	{int64(255), "18ff"},
	{int64(256), "190100"},
	{int64(65535), "19ffff"},
	{int64(65536), "1a00010000"},
	{int64(math.MaxUint32), "1affffffff"},
	{int64(math.MaxUint32 + 1), "1b0000000100000000"},
	{int64(math.MaxInt64), "1b7fffffffffffffff"},
	{int64(-1), "20"},
	{int64(-24), "37"},
	{int64(-25), "3818"},
	{int64(math.MinInt64), "3b7fffffffffffffff"},
	{huge("0x8000000000000000"), "1b8000000000000000"},
	{huge("-0x8000000000000001"), "3b8000000000000000"},
	{huge("0xffffffffffffffff"), "1bffffffffffffffff"},
	{huge("-0x10000000000000000"), "3bffffffffffffffff"},
	{huge("0x10000000000000000"), "c249010000000000000000"},
	{huge("-0x10000000000000001"), "c349010000000000000000"},
	{0.0, "fb0000000000000000"},
	{1.5, "fb3ff8000000000000"},
	{math.Inf(-1), "fbfff0000000000000"},
	{complex(1.5, 0), "d9a7f882fb3ff8000000000000fb0000000000000000"},
	{"", "60"},
	{"a", "6161"},
	{"\u00fc\x00", "63c3bc00"},
	{[]byte{}, "40"},
	{[]byte{1, 2}, "420102"},
	{[]any{}, "80"},
	{[]any{int64(1), []any{nil}}, "820181f6"},
	{contract.Tuple{}, "d96e6480"},
	{contract.Tuple{int64(1), "a"}, "d96e6482016161"},
	{contract.Set{int64(1)}, "d901028101"},
	{contract.FrozenSet{int64(1)}, "d96e658101"},
	{map[string]any{}, "a0"},
	{map[string]any{"a": int64(1), "b": nil}, "a261610161" + "62f6"},
	{map[any]any{int64(1): "a", nil: true}, "a2016161f6f5"},
	{contract.Dict{{Key: contract.Tuple{int64(2)}, Value: int64(1)}, {Key: []byte("a"), Value: int64(3)}}, "a2d96e64810201416103"},
	{contract.Record{Type: "P", Fields: []contract.Field{{Name: "y", Value: int64(1)}, {Name: "x", Value: 2.0}}}, "d81b826150a26179016178fb4000000000000000"},
}

func unhex(tb testing.TB, text string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func same(a, b any) bool { return reflect.DeepEqual(a, b) }

func TestForms(t *testing.T) {
	t.Parallel()
	for _, tc := range forms {
		form := unhex(t, tc.form)
		got, err := values.Append([]byte("x"), tc.value, nil)
		if err != nil || !bytes.Equal(got, append([]byte("x"), form...)) {
			t.Errorf("the form of %#v is %x, %v; want %s", tc.value, got, err, tc.form)
		}
		back, err := values.Value(form, nil)
		if err != nil || !same(back, tc.value) {
			t.Errorf("the value of %s is %#v, %v; want %#v", tc.form, back, err, tc.value)
		}
		var into any
		if err := values.Decode(form, &into, nil); err != nil || !same(into, tc.value) {
			t.Errorf("%s is decoded as %#v, %v; want %#v", tc.form, into, err, tc.value)
		}
	}
}

// TestEndsTooEarly: no beginning of a form is one, and nothing may follow one.
func TestEndsTooEarly(t *testing.T) {
	t.Parallel()
	for _, tc := range forms {
		form := unhex(t, tc.form)
		for n := range form {
			if v, err := values.Value(form[:n], nil); !errors.Is(err, core.ErrProtocol) {
				t.Errorf("%d bytes of %s are %#v, %v", n, tc.form, v, err)
			}
		}
		if v, err := values.Value(append(form, 0), nil); !errors.Is(err, core.ErrProtocol) {
			t.Errorf("%s and a byte are %#v, %v", tc.form, v, err)
		}
	}
}
