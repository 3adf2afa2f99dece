package values_test

import (
	"errors"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/internal/values"
)

type inner struct {
	Deep int `python:"deep"`
	Name string
}

type tagged struct {
	Count   int             `python:"count"`
	Hidden  int             `python:"-"`
	Loss    float32         `python:"loss"`
	Words   []string        `python:"words"`
	By      map[string]int8 `python:"by"`
	Inner   inner           `python:"inner"`
	Pointer *inner          `python:"pointer"`
	Any     any             `python:"any"`
	Plain   bool
	inner
	Kept inner `python:"kept"`
	no   int   //nolint:unused // does not cross
}

type (
	word    string
	byteish uint8
	blob    []byteish
	pair    [2]int
)

func form(tb testing.TB, v any) []byte {
	tb.Helper()
	b, err := values.Append(nil, v, nil)
	if err != nil {
		tb.Fatalf("%#v: %v", v, err)
	}
	return b
}

// TestFits: what is written from one type is decoded into another one.
func TestFits(t *testing.T) {
	t.Parallel()
	one, large := 1, new(big.Int).Lsh(big.NewInt(1), 80)
	point := contract.Record{Type: "P", Fields: []contract.Field{{Name: "deep", Value: 1}, {Name: "Name", Value: "n"}}}
	for _, tc := range []struct{ from, want any }{
		{int8(-3), int64(-3)},
		{uint64(1<<64 - 1), uint64(1<<64 - 1)},
		{uint64(1<<64 - 1), *new(big.Int).SetUint64(1<<64 - 1)},
		{3, uint8(3)},
		{3, float32(3)},
		{3, complex64(3)},
		{large, large},
		{large, *large},
		{large, 1208925819614629174706176.0},
		{1.5, float32(1.5)},
		{1.5, complex(1.5, 0)},
		{complex64(1i), 1i},
		{word("w"), "w"},
		{"w", word("w")},
		{blob{1, 2}, []byte{1, 2}},
		{[2]byte{1, 2}, []byte{1, 2}},
		{[]byte{1, 2}, [2]byte{1, 2}},
		{[]byte{1, 2}, blob{1, 2}},
		{[]int{1, 2}, pair{1, 2}},
		{contract.Tuple{1, 2}, []int{1, 2}},
		{contract.Set{1}, []int64{1}},
		{[]int{1}, contract.Tuple{int64(1)}},
		{contract.FrozenSet{1}, contract.Set{int64(1)}},
		{point, inner{1, "n"}},
		{point, map[string]any{"deep": int64(1), "Name": "n"}},
		{point, []any{int64(1), "n"}},
		{point, [2]any{int64(1), "n"}},
		{map[pair]int{{1, 2}: 3}, map[pair]int{{1, 2}: 3}},
		{map[int]string{2: "b", -1: "a"}, map[int8]string{2: "b", -1: "a"}},
		{map[[2]byte]int{{1, 2}: 3}, map[[2]byte]int{{1, 2}: 3}},
		{contract.Dict{{Key: 1, Value: 2}, {Key: "a", Value: nil}}, contract.Dict{{Key: int64(1), Value: int64(2)}, {Key: "a", Value: nil}}},
		{map[string]any{"a": 1}, map[any]any{"a": int64(1)}},
		{&one, 1},
		{1, &one},
		{[]*int{&one, nil}, []any{int64(1), nil}},
		{[]any{1, nil}, []*int{&one, nil}},
		{nil, []int(nil)},
		{nil, map[string]int(nil)},
		{nil, (*big.Int)(nil)},
		{nil, (*core.View)(nil)},
		{nil, contract.Dict(nil)},
		{(*big.Int)(nil), []int(nil)},
		{(*core.View)(nil), []int(nil)},
		{[]int(nil), []int{}},
		{map[string]int(nil), map[string]int{}},
		{[]byte(nil), []byte{}},
		{inner{1, "n"}, inner{1, "n"}},
		{uintptrs(3000), uintptrs(3000)},
	} {
		got := reflect.New(reflect.TypeOf(tc.want))
		if err := values.Decode(form(t, tc.from), got.Interface(), nil); err != nil || !same(got.Elem().Interface(), tc.want) {
			t.Errorf("%#v becomes %#v, %v; want %#v", tc.from, got.Elem(), err, tc.want)
		}
	}
}

func uintptrs(n int) []uint16 {
	all := make([]uint16, n)
	for i := range all {
		all[i] = uint16(i)
	}
	return all
}

func TestStruct(t *testing.T) {
	t.Parallel()
	in := tagged{
		Count: 1, Hidden: 2, Loss: 1.5, Words: []string{"a"}, By: map[string]int8{"b": 3}, Inner: inner{4, "i"},
		Pointer: &inner{5, "p"}, Any: []any{int64(6)}, Plain: true, inner: inner{7, "e"},
	}
	b := form(t, in)
	v, err := values.Value(b, nil)
	want := map[string]any{
		"count": int64(1), "loss": 1.5, "words": []any{"a"}, "by": map[string]any{"b": int64(3)},
		"inner": map[string]any{"deep": int64(4), "Name": "i"}, "pointer": map[string]any{"deep": int64(5), "Name": "p"},
		"any": []any{int64(6)}, "Plain": true, "deep": int64(7), "Name": "e",
		"kept": map[string]any{"deep": int64(0), "Name": ""},
	}
	if err != nil || !same(v, want) {
		t.Errorf("the form of a struct is %#v, %v; want %#v", v, err, want)
	}
	out := tagged{Hidden: 2}
	if err := values.Decode(b, &out, nil); err != nil || !same(out, in) {
		t.Errorf("the struct becomes %+v, %v; want %+v", out, err, in)
	}
	// What it does not know is passed over, and what does not come stays.
	odd := contract.Dict{
		{Key: 1, Value: 2}, {Key: contract.Tuple{"count", []any{1}}, Value: []any{map[string]any{"count": 9}}}, {Key: "unknown", Value: []any{[]any{}}}, {Key: "Hidden", Value: 9}, {Key: "count", Value: 8},
	}
	out = tagged{Count: 1, Plain: true, Hidden: 3}
	if err := values.Decode(form(t, odd), &out, nil); err != nil || out.Count != 8 || !out.Plain || out.Hidden != 3 {
		t.Errorf("decoded %+v, %v", out, err)
	}
}

// circle is a type whose pointers lead to no variable.
type circle *circle

func TestMisfits(t *testing.T) {
	t.Parallel()
	record := contract.Record{Type: "m.P", Fields: []contract.Field{{Name: "deep", Value: "x"}}}
	for _, tc := range []struct {
		from any
		into any
		want string
	}{
		{300, new(int8), "decode: bad configuration: int 300 does not fit int8"},
		{-1, new(uint), "int -1 does not fit uint"},
		{new(big.Int).Lsh(big.NewInt(1), 80), new(int), "int of 81 bits does not fit int"},
		{new(big.Int).Lsh(big.NewInt(1), 2000), new(float64), "int of 2001 bits does not fit float64"},
		{1.5, new(int), "float 1.5 does not fit int"},
		{1e300, new(float32), "float 1e+300 does not fit float32"},
		{1i, new(float64), "complex does not fit float64"},
		{nil, new(int), "None does not fit int"},
		{true, new(int), "bool does not fit int"},
		{1, new(bool), "int 1 does not fit bool"},
		{"a", new([]byte), "str does not fit []uint8"},
		{[]byte("a"), new(string), "bytes does not fit string"},
		{[]byte("a"), new([2]byte), "bytes does not fit [2]uint8"},
		{[]int{1}, new([2]int), "a list of 1 items does not fit [2]int"},
		{[]int{1}, new(int), "list does not fit int"},
		{map[string]int{}, new([]int), "dict does not fit []int"},
		{record, new(int), "m.P does not fit int"},
		{record, new([2]any), "m.P with 1 fields does not fit [2]interface"},
		{record, new(inner), "decode .deep: bad configuration: str does not fit int"},
		{record, new([]int), "decode .deep: bad configuration"},
		{map[int]int{1: 2}, new(map[string]int), "decode [...]: bad configuration: int 1 does not fit string"},
		{1, new(error), "int 1 does not fit error"},
		{1, new(*core.View), "int 1 does not fit *core.View"},
		{"a", new(*big.Int), "str does not fit *big.Int"},
		{1, new(contract.Tuple), "int 1 does not fit contract.Tuple"},
		{1, new(contract.Dict), "does not fit contract.Dict"},
		{1, new(contract.Record), "does not fit contract.Record"},
		{contract.Dict{{Key: contract.Tuple{}, Value: 1}}, new(map[any]any), "a key of the type contract.Tuple does not fit map"},
		{map[string]any{"a": []any{0, map[int]string{3: "x"}}}, new(map[string][]map[int]int), `decode ["a"][0]: bad configuration: int 0 does not fit map[int]int`},
		{map[string]any{"a": []any{map[int]string{3: "x"}}}, new(map[string][]map[int]int), `decode ["a"][0][3]: bad configuration: str does not fit int`},
		{map[string]any{"inner": map[string]any{"deep": "x"}}, new(tagged), `decode ["inner"]["deep"]: bad configuration: str does not fit int`},
		{1, new(circle), "nothing but None fits values_test.circle"},
		{1, 1, "int is not a pointer to a variable"},
		{1, (*int)(nil), "*int is not a pointer to a variable"},
		{1, nil, "<nil> is not a pointer to a variable"},
	} {
		err := values.Decode(form(t, tc.from), tc.into, nil)
		if !errors.Is(err, core.ErrConfig) || core.Category(err) != "bad configuration" || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%#v into %T: %v; want %s", tc.from, tc.into, err, tc.want)
		}
	}
}

// TestCannotCross: what has no form, and where it is.
func TestCannotCross(t *testing.T) {
	t.Parallel()
	type loop *loop
	var pointers loop
	pointers = &pointers
	circle := []any{nil}
	circle[0] = circle
	ring := map[string]any{}
	ring["k"] = []any{ring}
	type node struct{ Next *node }
	nodes := &node{}
	nodes.Next = nodes
	deep := any(1)
	for range values.MaxDepth {
		deep = []any{deep}
	}
	form(t, deep)
	for _, tc := range []struct {
		v    any
		want string
	}{
		{make(chan int), "encode: unsupported operation: a chan int cannot cross"},
		{time.Time{}, "encode: unsupported operation: a time.Time cannot cross: it has no exported fields"},
		{[]any{errors.New("x")}, "encode [0]: unsupported operation: an errors.errorString cannot cross: it has no exported fields"},
		{map[string]any{"a": []any{0, 1, 2, make(chan int)}}, `encode ["a"][3]: unsupported operation: a chan int cannot cross`},
		{map[int]any{-3: struct{ F func() }{}}, `encode [-3].F: unsupported operation: a func() cannot cross`},
		{struct {
			F func() `python:"f"`
		}{}, `.f: unsupported operation: a func() cannot cross`},
		{map[any]int{make(chan int): 1}, "[a chan int]: unsupported operation"},
		{contract.Tuple{contract.Dict{{Key: nil, Value: func() {}}}}, "[0][None]: unsupported"},
		{contract.Dict{{Key: true, Value: func() {}}}, "[true]"},
		{contract.Dict{{Key: func() {}, Value: 1}}, "[a func()]"},
		{contract.Record{Fields: []contract.Field{{Name: "x", Value: func() {}}}}, ".x: unsupported"},
		{contract.Record{Type: "\xff"}, "not UTF-8"},
		{contract.Record{Fields: []contract.Field{{Name: "\xff"}}}, "not UTF-8"},
		{"\xff", "a text that is not UTF-8 cannot cross; pass bytes"},
		{map[string]int{"\xff": 1}, "not UTF-8"},
		{map[string]any{strings.Repeat("x", 100): "\xff"}, `["` + strings.Repeat("x", 40) + `..."]`},
		{map[any]int{int8(1): 1, int16(1): 2}, "[1]: unsupported operation: two keys of a map are the same in Python"},
		{pointers, "a pointer that leads to itself"},
		{circle, "[0][0]"},
		{circle, "containers lie more than 100 deep"},
		{ring, "containers lie more than 100 deep"},
		{nodes, "containers lie more than 100 deep"},
		{[]any{deep}, "containers lie more than 100 deep"},
		{[][]any{{deep}}, "containers lie more than 100 deep"},
		{core.View{}, "pass a pointer to it"},
		{new(core.View), "an array cannot cross here"},
	} {
		b, err := values.Append([]byte("x"), tc.v, nil)
		e, ok := errors.AsType[*core.Error](err)
		if !ok || !errors.Is(e.Kind, core.ErrUnsupported) || !strings.Contains(err.Error(), tc.want) || string(b) != "x" {
			t.Errorf("%T: %q, %v; want %s", tc.v, b, err, tc.want)
		}
		if err != nil && len(err.Error()) > 500 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	}
}

func TestArrays(t *testing.T) {
	t.Parallel()
	views := []*core.View{coretest.NewView(t, []int32{1, 2}), coretest.NewView(t, []int32{3})}
	defer views[0].Close()
	defer views[1].Close()
	var seen []*core.View
	write := func(v *core.View) (int, error) {
		seen = append(seen, v)
		return len(seen) - 1, nil
	}
	type args struct {
		X *core.View `python:"x"`
	}
	b, err := values.Append(nil, []any{args{views[0]}, map[string]*core.View{"y": views[1]}}, write)
	if err != nil || !same(seen, views) {
		t.Fatalf("%v, %v", seen, err)
	}
	read := func(i int) (*core.View, error) { return views[i], nil }
	v, err := values.Value(b, read)
	if want := []any{map[string]any{"x": views[0]}, map[string]any{"y": views[1]}}; err != nil || !same(v, want) {
		t.Errorf("%#v, %v", v, err)
	}
	var into []map[string]*core.View
	if err := values.Decode(b, &into, read); err != nil || into[1]["y"] != views[1] {
		t.Errorf("%#v, %v", into, err)
	}
	if err := values.Decode(b, new([]map[string]int), read); !errors.Is(err, core.ErrConfig) {
		t.Errorf("an array as an int: %v", err)
	}
	lost := &core.Error{Op: "lease", Kind: core.ErrClosed}
	_, err = values.Value(b, func(int) (*core.View, error) { return nil, lost })
	if !errors.Is(err, lost) || core.Category(err) != "closed" || err.Error() != `[0]["x"]: lease: closed` {
		t.Errorf("an array that is lost: %v", err)
	}
	if _, err = values.Append(nil, views[0], func(*core.View) (int, error) { return 0, lost }); err != lost { //nolint:errorlint // itself
		t.Errorf("an array that is closed: %v", err)
	}
	if _, err = values.Value(b, nil); !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("without arrays: %v", err)
	}
}

// TestDecodeFieldsByTheirOwnNames: a field without a tag gets what is under its very name, or else under its name in other letters.
func TestDecodeFieldsByTheirOwnNames(t *testing.T) {
	t.Parallel()
	type own struct {
		Loss, LR float64
		Name     string `python:"title"`
	}
	for _, c := range []struct {
		from contract.Dict
		want own
	}{
		{contract.Dict{{Key: "loss", Value: 0.5}, {Key: "lr", Value: 2}, {Key: "title", Value: "t"}}, own{0.5, 2, "t"}},
		{contract.Dict{{Key: "Loss", Value: 0.5}, {Key: "loss", Value: 1}}, own{Loss: 0.5}},
		{contract.Dict{{Key: "loss", Value: 1}, {Key: "Loss", Value: 0.5}}, own{Loss: 0.5}},
		{contract.Dict{{Key: "Title", Value: "t"}, {Key: "Name", Value: "n"}, {Key: "name", Value: "n"}}, own{}},
	} {
		form, err := values.Append(nil, c.from, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got own
		if err := values.Decode(form, &got, nil); err != nil || got != c.want {
			t.Errorf("%v became %+v, %v, want %+v", c.from, got, err, c.want)
		}
	}
}

func TestDecodeOfAnArraySaysHow(t *testing.T) {
	t.Parallel()
	form, err := values.Append(nil, map[string]any{"x": new(core.View)}, func(*core.View) (int, error) { return 0, nil })
	if err != nil {
		t.Fatal(err)
	}
	var got map[string][]float64
	err = values.Decode(form, &got, func(int) (*core.View, error) { return new(core.View), nil })
	if err == nil || !strings.Contains(err.Error(), `["x"]: bad configuration: array does not fit []float64; decode it into a *core.View`) {
		t.Errorf("an array into a slice: %v", err)
	}
}
