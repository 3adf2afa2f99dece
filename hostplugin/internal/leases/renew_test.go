package leases

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// TestRenewedTogether: a program is asked about many views in few calls, and each has its own answer: some are live again, one whose
// memory was freed is not, one that is held is live later, and one that was closed meanwhile is nobody's concern.
func TestRenewedTogether(t *testing.T) {
	t.Parallel()
	const n, held, freed = 2*renewMost + 3, 5, 20
	w := newWorld(t)
	calls := make(chan []contract.Renewal, 100)
	w.renewing = func(leases []contract.Renewal) { calls <- slices.Clone(leases) }
	name := func(i int) string { return fmt.Sprintf("x%d", i) }
	views := make([]*core.View, n)
	for i := range views {
		w.set(name(i), 1)
		views[i] = w.view(&Source{Name: name(i)})
	}
	_, _, release, err := views[held].Acquire()
	if err != nil {
		t.Fatal(err)
	}
	w.unset(name(freed))
	w.forkMoved(2)
	w.c.Forked()
	w.hears()
	for i, v := range views {
		if i != held && i != freed {
			eventually(t, name(i)+" is live", v.Live)
		}
	}
	w.says(name(freed) + ": " + string(StaleRebound))
	if views[freed].Live() || views[held].Live() || valueOf(t, views[held]) != 1 {
		t.Errorf("freed: live %v; held: live %v, shows %v", views[freed].Live(), views[held].Live(), valueOf(t, views[held]))
	}
	var sizes []int
	for asked := 0; asked < n; {
		leases := <-calls
		asked += len(leases)
		sizes = append(sizes, len(leases))
	}
	if !slices.Equal(sizes, []int{renewMost, renewMost, 3}) {
		t.Errorf("the program was asked about %v leases at once", sizes)
	}
	release()
	eventually(t, "what was held is live", views[held].Live)
	for i, v := range views {
		if got := valueOf(t, v); i != freed && got != 2 {
			t.Errorf("%s shows %v", name(i), got)
		}
		closeView(t, v)
	}
	w.says("")
}

// TestTogether: views of few bytes are renewed together, and a large one alone.
func TestTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set("x", 1)
	var small, large renewal
	for r, size := range map[*renewal]int{&small: 1, &large: renewBytes} {
		l, err := core.NewLayout(core.LayoutSpec{DType: core.Uint8, Shape: []int{size}, Strides: []int{0}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := w.c.Segments.use(t.Context(), contract.Segment{ID: 1, Size: 4096, Sealed: true}, false)
		if err != nil {
			t.Fatal(err)
		}
		if r.view, err = core.NewView(l, m, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		small, large, want int
	}{{1, 0, 1}, {3, 0, 3}, {renewMost + 1, 0, renewMost}, {3, 1, 3}, {0, 2, 1}} {
		due := append(slices.Repeat([]renewal{small}, test.small), slices.Repeat([]renewal{large}, test.large)...)
		if got := together(due); got != test.want {
			t.Errorf("%d small and %d large: %d", test.small, test.large, got)
		}
	}
	closeView(t, small.view)
	closeView(t, large.view)
}
