package arrays_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin/internal/arrays"
)

// TestPut: a long message lies in memory that the program may only read, until it is done with.
func TestPut(t *testing.T) {
	t.Parallel()
	p := &program{}
	s := arrays.NewSpace(p, p.word)
	room := &arrays.Room{Space: s}
	message := []byte("message " + strings.Repeat("x", 100000))
	a, done, err := room.Put(t.Context(), message)
	if err != nil {
		t.Fatal(err)
	}
	if has := p.at(a.Segment); has != (given{"message ", int64(len(message)), false}) {
		t.Errorf("the program has %+v", has)
	}
	if !a.ReadOnly || a.Lease != 0 || a.Layout.NBytes() != int64(len(message)) || a.Layout.DType() != core.Uint8 {
		t.Errorf("the message is %+v", a)
	}
	done()
	s.Close()
	if has, _ := p.count(); has != 0 {
		t.Errorf("the program has %d messages", has)
	}
	_, _, err = room.Put(t.Context(), message)
	wants(t, err, core.ErrClosed)
}

// TestPutRefused leaves nothing.
func TestPutRefused(t *testing.T) {
	t.Parallel()
	p := &program{refuses: true}
	_, _, err := (&arrays.Room{Space: space(t, p)}).Put(t.Context(), []byte("x"))
	wants(t, err, errProgram)
}

// longest is how many bytes a message may have.
const longest = 2 << 30

// lent is a memory whose view is closed once.
type lent struct {
	core.Memory
	closed int
}

func (l *lent) Close() error { l.closed++; return nil }

// TestTake gives private bytes, and gives the lease back whatever it shows.
func TestTake(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec core.LayoutSpec
		want string
		says string
	}{
		"whole":      {core.LayoutSpec{DType: core.Uint8, Shape: []int{8}}, "abcdefgh", ""},
		"a part":     {core.LayoutSpec{DType: core.Uint8, Shape: []int{3}, Offset: 2}, "cde", ""},
		"nothing":    {core.LayoutSpec{DType: core.Uint8, Shape: []int{0}}, "", ""},
		"past":       {core.LayoutSpec{DType: core.Uint8, Shape: []int{9}}, "", "refuses"}, // to make a view
		"backwards":  {core.LayoutSpec{DType: core.Uint8, Shape: []int{3}, Strides: []int{-1}, Offset: 5}, "", "not a row of bytes"},
		"no bytes":   {core.LayoutSpec{DType: core.Int16, Shape: []int{4}}, "", "not a row of bytes"},
		"one byte":   {core.LayoutSpec{DType: core.Uint8, Shape: []int{1 << 40}, Strides: []int{0}}, "", "not a row of bytes"},
		"too long":   {core.LayoutSpec{DType: core.Uint8, Shape: []int{longest + 1}}, "", "too long"},
		"a few rows": {core.LayoutSpec{DType: core.Uint8, Shape: []int{2, 2}, Strides: []int{4, 1}}, "", "not a row of bytes"},
	} {
		layout, err := core.NewLayout(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		m, given := &lent{Memory: memory(t, 8, "abcdefgh")}, 0
		room := &arrays.Room{
			Open: func(context.Context, string, contract.Lease) (*core.View, error) {
				v, err := core.NewView(layout, m, nil)
				if err != nil {
					given++
					return nil, errProgram
				}
				return v, nil
			},
			Stray: func(contract.LeaseID) { given++ },
		}
		got, err := room.Take(t.Context(), contract.Lease{ID: 1, Layout: layout})
		if string(got) != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if given+m.closed != 1 {
			t.Errorf("%s: the lease was given back %d times, the view closed %d times", name, given, m.closed)
		}
		if len(got) > 0 {
			got[0] = 'x'
			if slices.Contains(m.Bytes(), 'x') {
				t.Errorf("%s: the bytes are the program's", name)
			}
		}
	}
}

// TestRelease gives each lease back.
func TestRelease(t *testing.T) {
	t.Parallel()
	var back []contract.LeaseID
	room := &arrays.Room{Stray: func(id contract.LeaseID) { back = append(back, id) }}
	room.Release()
	room.Release(3, 5)
	if !slices.Equal(back, []contract.LeaseID{3, 5}) {
		t.Errorf("leases %v were given back", back)
	}
}
