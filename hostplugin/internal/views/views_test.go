package views

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
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

// open opens v as a view of some memory.
func open(tb testing.TB, s *Set, v *core.View, id core.LeaseID) error {
	tb.Helper()
	layout, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{1}})
	if err != nil {
		tb.Fatal(err)
	}
	l, err := s.Add(id)
	if err != nil {
		tb.Fatal(err)
	}
	if err := v.Open(layout, coretest.NewMemory([]byte{1}), &core.ViewOptions{Release: l.Release}); err != nil {
		return errors.Join(err, l.Release())
	}
	return s.lend(l, id, v)
}

// TestCloseClosesTheViews: those that stand, and those that come too late.
func TestCloseClosesTheViews(t *testing.T) {
	t.Parallel()
	var released []core.LeaseID
	s := New(func(id core.LeaseID) { released = append(released, id) })
	open := func(v *core.View, id core.LeaseID) error { return open(t, s, v, id) }
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

// TestCloseBesideOpen opens and closes views from several goroutines while the set is closed, some of them
// closed by others as soon as they are open. No view stays open, and each lease is given back once.
func TestCloseBesideOpen(t *testing.T) {
	t.Parallel()
	const workers, each = 4, 20
	for range 300 {
		var released [workers][each]atomic.Int32
		s := New(func(id core.LeaseID) { released[id>>8][id&0xff].Add(1) })
		var opened atomic.Int32 // views, by all
		var all sync.WaitGroup
		for i := range workers {
			var views [3]core.View
			all.Go(func() {
				for n := range each {
					v := &views[n%len(views)]
					err := open(t, s, v, core.LeaseID(i<<8|n))
					opened.Add(1)
					if err != nil && !errors.Is(err, core.ErrClosed) {
						t.Error(err)
					}
					if err != nil && !v.Closed() {
						t.Error("a view that came too late stayed open")
					}
					shut(t, &views[(n+1)%len(views)]) // the last one stays open, for the set to close
				}
			})
			all.Go(func() {
				for !s.Closed() {
					shut(t, &views[0])
					runtime.Gosched()
				}
			})
		}
		for want := min(rand.Int32N(3*workers*each/2), workers*each); opened.Load() < want; {
			runtime.Gosched()
		}
		s.Close()
		all.Wait()
		if s.count != 0 {
			t.Fatalf("%d views are open", s.count)
		}
		for i := range released {
			for n := range released[i] {
				if got := released[i][n].Load(); got != 1 {
					t.Fatalf("lease %d of %d was given back %d times", n, i, got)
				}
			}
		}
	}
}

func shut(tb testing.TB, v *core.View) {
	tb.Helper()
	if err := v.Close(); err != nil {
		tb.Error(err)
	}
}
