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
	if has := p.has[a.Segment]; has != (given{"message ", int64(len(message)), false}) {
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

// lent is a memory whose view is closed once.
type lent struct {
	core.Memory
	closed int
}

func (l *lent) Close() error { l.closed++; return nil }

// TestTake gives private bytes, and closes the view whatever it shows.
func TestTake(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec core.LayoutSpec
		open error
		want string
		says string
	}{
		"whole":       {core.LayoutSpec{DType: core.Uint8, Shape: []int{8}}, nil, "abcdefgh", ""},
		"a part":      {core.LayoutSpec{DType: core.Uint8, Shape: []int{3}, Offset: 2}, nil, "cde", ""},
		"backwards":   {core.LayoutSpec{DType: core.Uint8, Shape: []int{3}, Strides: []int{-1}, Offset: 5}, nil, "fed", ""},
		"a table":     {core.LayoutSpec{DType: core.Uint8, Shape: []int{2, 2}, Strides: []int{4, 1}}, nil, "abef", ""},
		"no bytes":    {core.LayoutSpec{DType: core.Int16, Shape: []int{4}}, nil, "", "not made of bytes"},
		"cannot open": {core.LayoutSpec{DType: core.Uint8, Shape: []int{8}}, errProgram, "", "refuses"},
	} {
		m := &lent{Memory: memory(t, 8, "abcdefgh")}
		room := &arrays.Room{Open: func(_ context.Context, _ string, l contract.Lease) (*core.View, error) {
			if c.open != nil {
				return nil, c.open
			}
			layout, err := core.NewLayout(c.spec)
			if err != nil {
				return nil, err
			}
			return core.NewView(layout, m, nil)
		}}
		got, err := room.Take(t.Context(), contract.Lease{ID: 1})
		if string(got) != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if opened := c.open == nil; opened != (m.closed == 1) {
			t.Errorf("%s: the memory was closed %d times", name, m.closed)
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
