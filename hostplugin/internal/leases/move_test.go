package leases

import (
	"errors"
	"os"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// ints is an array of so many int64 from an offset on.
func ints(t *testing.T, offset, n int) core.Layout {
	t.Helper()
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Int64, Shape: []int{n}, Offset: offset})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestMove: a part of a mapping shows another file then, and the rest what it showed; who lends the memory lends that file.
func TestMove(t *testing.T) {
	t.Parallel()
	page := os.Getpagesize()
	from, to := newDescriber(t, int64(4*page)), newDescriber(t, int64(2*page))
	for i, d := range []*describer{from, to} {
		for at := range 4 - 2*i {
			if _, err := d.file.WriteAt([]byte{byte(10*i + at + 1)}, int64(at*page)); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := NewSegments(from, true)
	m := mapped(t, c, segment(1, int64(4*page)), false)
	from.file = to.file // what is asked for from now on
	array := ints(t, page+64, (page-64)/8)
	for name, bad := range map[string]struct {
		segment contract.Segment
		offset  int
	}{
		"not sealed":            {contract.Segment{ID: 2, Size: int64(2 * page)}, 64},
		"too small":             {segment(2, int64(page)/2), 64},
		"before its first byte": {segment(2, int64(2*page)), 32},
		"between pages":         {segment(2, int64(2*page)), 72},
		"larger than its file":  {segment(2, int64(3*page)), 64},
	} {
		if err := m.move(t.Context(), bad.segment, bad.offset, array, nil); err == nil {
			t.Errorf("%s: moved", name)
		}
	}
	holds := func(want ...byte) {
		t.Helper()
		for i, x := range want {
			if got := m.Bytes()[i*page]; got != x {
				t.Errorf("page %d holds %d, want %d", i, got, x)
			}
		}
	}
	holds(1, 2, 3, 4)
	m.Hold()
	if err := m.move(t.Context(), segment(2, int64(2*page)), 64, array, nil); !errors.Is(err, errHeld) {
		t.Errorf("memory that is held: %v", err)
	}
	m.Let()
	for range 2 {
		if err := m.move(t.Context(), segment(2, int64(2*page)), 64, array, nil); err != nil {
			t.Fatal(err)
		}
		holds(1, 11, 12, 4)
	}
	v, err := core.NewView(array, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	file, lent, err := Lendable(t.Context(), m, v)
	if err != nil || file == nil || lent.Offset() != array.Offset()-page {
		t.Errorf("what is lent has the array at %d: %v", lent.Offset(), err)
	}
	if p := m.partOf(ints(t, 0, 1)); p != m.whole {
		t.Error("the rest is another segment's")
	}
	if err := m.move(t.Context(), segment(3, int64(2*page)), 64, array, nil); err != nil || len(m.parts) != 1 {
		t.Errorf("moved again: %d parts, %v", len(m.parts), err)
	}
	if same := m.again(t.Context()); same != m {
		t.Error("the memory is not there once more")
	} else {
		closed(t, same)
	}
	closed(t, v, c)
	if m.again(t.Context()) != nil {
		t.Error("memory that nobody uses is there once more")
	}
}
