package values_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/values"
)

// TestSplit: each row gets its share, as a form that stands alone.
func TestSplit(t *testing.T) {
	t.Parallel()
	view := new(core.View)
	from := contract.Dict{
		{Key: "list", Value: []any{[]any{1, view}, "b"}},
		{Key: "tuple", Value: contract.Tuple{nil, []any{true, 2.5}, contract.Tuple{}}},
		{Key: contract.Tuple{1, 2}, Value: contract.Record{Type: "P", Fields: []contract.Field{{Name: "x", Value: []any{contract.Set{1}, view}}, {Name: "y", Value: view}}}},
	}
	arrays := 0
	b, err := values.Append(nil, from, func(*core.View) (int, error) {
		arrays++
		return arrays - 1, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	type share struct {
		number, row int
		whole       bool
	}
	var shares []share
	forms, err := values.Split(b, 2, func(number, row int, whole bool) (int, error) {
		shares = append(shares, share{number, row, whole})
		return 10*row + number, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []share{{0, 0, true}, {1, 1, true}, {2, 0, false}, {2, 1, false}}; !reflect.DeepEqual(shares, want) {
		t.Errorf("the arrays were shared as %v, want %v", shares, want)
	}
	views := make(map[int]*core.View)
	for i, form := range forms {
		got, err := values.Value(form, func(n int) (*core.View, error) {
			views[n] = new(core.View)
			return views[n], nil
		})
		list, set := []any{int64(1), views[0]}, contract.Set{int64(1)}
		want := contract.Dict{
			{Key: "list", Value: list},
			{Key: "tuple", Value: contract.Tuple{nil, true, contract.Tuple{}}},
			{Key: contract.Tuple{int64(1), int64(2)}, Value: contract.Record{Type: "P", Fields: []contract.Field{{Name: "x", Value: set}, {Name: "y", Value: views[2]}}}},
		}
		if i == 1 {
			want[0].Value, want[1].Value = "b", contract.Tuple{nil, 2.5, contract.Tuple{}}
			want[2].Value = contract.Record{Type: "P", Fields: []contract.Field{{Name: "x", Value: views[11]}, {Name: "y", Value: views[12]}}}
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("row %d has %#v, %v; want %#v", i, got, err, want)
		}
	}
}

// TestSplitRefuses: what has no rows, and what is no form.
func TestSplitRefuses(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd")
	array := func(int, int, bool) (int, error) { return 0, odd }
	write := func(*core.View) (int, error) { return 0, nil }
	for _, tc := range []struct {
		from     any
		category error
		says     string
	}{
		{5, core.ErrUnsupported, "int has no rows; expected an array or a list of 2"},
		{map[string]any{"a": contract.Tuple{[]int{1, 2}, []int{1}}}, core.ErrUnsupported, `["a"][1]: unsupported operation: a list of 1 items for a batch of 2 rows`},
		{contract.Dict{{Key: 5, Value: "x"}}, core.ErrUnsupported, "[a int]"},
		{contract.Dict{{Key: contract.Tuple{5}, Value: "x"}}, core.ErrUnsupported, "[a tuple]"},
		{new(core.View), odd, "odd"},
		{[]any{new(core.View), 1}, odd, "[0]: odd"},
	} {
		b, err := values.Append(nil, tc.from, write)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := values.Split(b, 2, array); !errors.Is(err, tc.category) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%#v: %v, want that it says %q", tc.from, err, tc.says)
		}
		for cut := range b {
			if _, err := values.Split(b[:cut], 2, array); err == nil {
				t.Errorf("%#v, cut after %d bytes: no error", tc.from, cut)
			}
		}
		if _, err := values.Split(append(b, 0xf6), 2, array); err == nil {
			t.Errorf("%#v with more behind: no error", tc.from)
		}
	}
	long, err := values.Append(nil, map[string]any{strings.Repeat("k", 1<<20): nil}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := values.Split(long, 1<<11, array); !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("2 GiB of forms: %v", err)
	}
}
