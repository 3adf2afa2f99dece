package views

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// TestSet: what is added stands until it is released, in whatever order and however many there are, and
// nothing is given back that was not added, or twice.
func TestSet(t *testing.T) {
	t.Parallel()
	released := make(map[core.LeaseID]int)
	s := New(func(id core.LeaseID) { released[id]++ })
	var leases []*Lease
	want := 0
	for id := range core.LeaseID(100) {
		for _, id := range []core.LeaseID{id, id | 1<<63} {
			l, err := s.Add(id)
			if err != nil || l.ID != id {
				t.Fatalf("Add(%d) = %+v, %v", id, l, err)
			}
			if again, err := s.Add(id); !errors.Is(err, core.ErrProtocol) {
				t.Errorf("Add(%d) again = %+v, %v", id, again, err)
			}
			leases = append(leases, l)
		}
		if id%3 == 0 {
			i := rand.IntN(len(leases))
			if err := leases[i].Release(); err != nil {
				t.Error(err)
			}
			leases = slices.Delete(leases, i, i+1)
			want++
		}
		if len(released) != want {
			t.Fatalf("%d leases were released, want %d", len(released), want)
		}
	}
	for _, l := range leases {
		id := l.ID
		if err := l.Release(); err != nil || released[id] != 1 {
			t.Errorf("lease %d was given back %d times, %v", id, released[id], err)
		}
	}
	if len(released) != 200 {
		t.Errorf("%d of 200 were given back", len(released))
	}
}

func TestAddAndReleaseMakeNoGarbage(t *testing.T) { //nolint:paralleltest // it counts allocations
	s := New(func(core.LeaseID) {})
	var last core.LeaseID
	var held [20]*Lease
	add := func() {
		for i := range held {
			var err error
			last++
			if held[i], err = s.Add(last); err != nil {
				t.Fatal(err)
			}
		}
		for _, l := range held {
			if err := l.Release(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := testing.AllocsPerRun(100, add); n != 0 {
		t.Errorf("%v allocations for %d leases", n, len(held))
	}
}

// TestCloseClosesTheViews: those that stand, and those that come too late.
func TestCloseClosesTheViews(t *testing.T) {
	t.Parallel()
	var released []core.LeaseID
	s := New(func(id core.LeaseID) { released = append(released, id) })
	open := func(v *core.View, id core.LeaseID) error {
		l, err := s.Add(id)
		if err != nil {
			t.Fatal(err)
		}
		layout, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{1}})
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Open(layout, coretest.NewMemory([]byte{1}), &core.ViewOptions{Release: l.Release}); err != nil {
			t.Fatal(err)
		}
		return s.lend(l, v)
	}
	var before, gone, after core.View
	if err := errors.Join(open(&before, 1), open(&gone, 2), gone.Close()); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := open(&after, 3); !errors.Is(err, core.ErrClosed) {
		t.Errorf("a view that comes too late: %v", err)
	}
	if !before.Closed() || !after.Closed() || !s.Closed() || !slices.Equal(released, []core.LeaseID{2, 1, 3}) {
		t.Errorf("closed: %v and %v; given back: %v", before.Closed(), after.Closed(), released)
	}
}
