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

// TestRefreshRenews: a look at views right after a fork renews them first, so that they stand, and the program is asked about no lease
// by a call of its own. A view that is being renewed is waited for.
func TestRefreshRenews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = renewMost + 4
	sources := make([]*Source, n)
	for i := range sources {
		sources[i] = &Source{Name: fmt.Sprintf("x%d", i)}
		w.set(sources[i].Name, 1)
	}
	g := w.c.Group(sources)
	if _, _, err := g.Refresh(t.Context(), contract.Request{}); err != nil {
		t.Fatal(err)
	}
	views := slices.Clone(g.Views)
	for value := 2.0; value < 5; value++ {
		w.took()
		w.forkMoved(value)
		if value == 4 {
			w.c.Forked() // both renew
		}
		if _, changed, err := w.c.Refresh(t.Context(), sources[3], views[3], contract.Request{}); err != nil || changed || valueOf(t, views[3]) != value {
			t.Errorf("a look at one view: changed %v, %v, shows %v, want %v", changed, err, valueOf(t, views[3]), value)
		}
		if changed, _, err := g.Refresh(t.Context(), contract.Request{}); err != nil || changed || !slices.Equal(g.Views, views) {
			t.Errorf("a look at all: changed %v, %v", changed, err)
		}
		for i, v := range views {
			if got := valueOf(t, v); got != value || !v.Live() {
				t.Errorf("%s shows %v, want %v; live %v", sources[i].Name, got, value, v.Live())
			}
		}
		if asked, _ := w.took(); len(asked) > 0 {
			t.Errorf("the program was asked %v", asked)
		}
	}
	w.says("")
	for _, v := range views {
		closeView(t, v)
	}
}

// TestRenewalBatches: views of few bytes are renewed together, and a large one alone.
func TestRenewalBatches(t *testing.T) {
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
		small, large int
		want         []int
	}{{1, 0, []int{1}}, {3, 0, []int{3}}, {renewMost + 1, 0, []int{renewMost, 1}}, {3, 1, []int{3, 1}}, {0, 2, []int{1, 1}}} {
		due := append(slices.Repeat([]renewal{large}, test.large), slices.Repeat([]renewal{small}, test.small)...)
		var got []int
		for batch := range batches(due) {
			got = append(got, len(batch))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%d small and %d large: %v", test.small, test.large, got)
		}
	}
	closeView(t, small.view)
	closeView(t, large.view)
}
