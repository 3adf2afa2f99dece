package leases

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// TestRefreshAll: one question for all that has to be asked, each name with its own result.
func TestRefreshAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	names := []string{"a", "b", "c", "offered"}
	for i, name := range names {
		w.set(name, float64(i+1))
	}
	w.publish(4, "offered")
	var sources []*Source
	for _, name := range names {
		sources = append(sources, &Source{Name: name})
	}
	views := make([]*core.View, len(names))
	refresh := func(wantChanged bool, want ...float64) {
		t.Helper()
		before := slices.Clone(views)
		changed, failed, err := w.c.refreshAll(t.Context(), sources, views, contract.Request{})
		if err != nil || changed != wantChanged {
			t.Fatalf("RefreshAll = %v, %d, %v", changed, failed, err)
		}
		for i, v := range views {
			if got := valueOf(t, v); got != want[i] {
				t.Errorf("%s shows %v, want %v", names[i], got, want[i])
			}
			if before[i] != nil && before[i] != v {
				if _, err := before[i].Bytes(); !errors.Is(err, core.ErrClosed) {
					t.Errorf("the view of %s that was replaced is open", names[i])
				}
			}
		}
	}
	refresh(true, 1, 2, 3, 4)
	refresh(false, 1, 2, 3, 4)
	w.set("b", 20)
	refresh(true, 1, 20, 3, 4)
	w.publish(40, "offered")
	w.set("c", 30)
	refresh(true, 1, 20, 30, 40)
	refresh(false, 1, 20, 30, 40)
	w.mu.Lock()
	w.silent = true
	w.mu.Unlock()
	w.set("a", 10)
	refresh(true, 10, 20, 30, 40)
	w.mu.Lock()
	w.silent = false
	delete(w.arrays, "b")
	w.arrays["a"].value = 11
	w.mu.Unlock()
	w.set("c", 31)
	changed, failed, err := w.c.refreshAll(t.Context(), sources, views, contract.Request{NoWait: true})
	if !errors.Is(err, core.ErrNotFound) || failed != 1 || !changed || valueOf(t, views[1]) != 20 || valueOf(t, views[2]) != 31 {
		t.Errorf("with a name that has gone: %v, %d, %v; it shows %v and %v", changed, failed, err, valueOf(t, views[1]), valueOf(t, views[2]))
	}
	w.stand(4)
	for _, v := range views {
		closeView(t, v)
	}
}

// TestRefreshAllKeepsRequests: what is taken again is asked for as it was before, whatever the others are.
func TestRefreshAllKeepsRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(1, "x", "y")
	sources := []*Source{{Name: "x"}, {Name: "y"}, {Name: "z"}}
	shared, err := w.c.View(t.Context(), sources[0], contract.Request{Copy: contract.CopyNever})
	if err != nil {
		t.Fatal(err)
	}
	views := []*core.View{w.keep(shared), w.view(sources[1]), nil}
	w.fork()
	w.setCopied("z", 3)
	changed, failed, err := w.c.refreshAll(t.Context(), sources, views, contract.Request{})
	if !errors.Is(err, core.ErrNotShared) || failed != 0 || !changed || views[0] != shared || valueOf(t, shared) != 1 {
		t.Errorf("RefreshAll of what would be a copy now, and must not = %v, %d, %v", changed, failed, err)
	}
	for i, want := range map[int]float64{1: 1, 2: 3} {
		if v := views[i]; v == nil || !v.Copied() || valueOf(t, v) != want {
			t.Errorf("the view of %s is %v", sources[i].Name, v)
		} else {
			w.keep(v)
		}
	}
}

// group is a look at several names.
type group struct {
	*world
	sources []*Source
	views   []*core.View
}

func (w *world) group(names ...string) *group {
	g := &group{world: w, views: make([]*core.View, len(names))}
	for _, name := range names {
		g.sources = append(g.sources, &Source{Name: name})
	}
	w.t.Cleanup(func() {
		for _, v := range g.views {
			if v != nil {
				closeView(w.t, v)
			}
		}
	})
	return g
}

func (g *group) next(ctx context.Context) error {
	_, err := g.c.nextAll(ctx, g.sources, g.views)
	return err
}

// asleep calls next in the background, and returns when that sleeps.
func (g *group) asleep(ctx context.Context) <-chan looked {
	g.t.Helper()
	result := make(chan looked, 1)
	go func() { result <- looked{err: g.next(ctx)} }()
	g.sleeps(result, 1)
	return result
}

func (g *group) show(want ...float64) {
	g.t.Helper()
	for i, v := range g.views {
		if got := valueOf(g.t, v); got != want[i] {
			g.t.Errorf("%s shows %v, want %v", g.sources[i].Name, got, want[i])
		}
	}
}

// TestNextAll waits until all names are published, and then for a newer version of any of them.
func TestNextAll(t *testing.T) {
	t.Parallel()
	for _, spin := range []time.Duration{0, time.Millisecond} {
		w := newWorld(t)
		w.c.Spin = spin
		g := w.group("a", "b")
		ends := func(result <-chan looked) {
			t.Helper()
			if got := <-result; got.err != nil {
				t.Fatal(got.err)
			}
		}
		result := g.asleep(t.Context())
		w.publish(1, "a")
		w.sleeps(result, 1)
		w.publish(2, "b")
		ends(result)
		g.show(1, 2)
		a, b := g.views[0], g.views[1]
		result = g.asleep(t.Context())
		w.publish(9, "other")
		w.sleeps(result, 1)
		w.publish(3, "b")
		ends(result)
		if g.show(1, 3); g.views[0] != a || isClosed(a) || !isClosed(b) {
			t.Errorf("one name has a new version: the other's view is the same: %v", g.views[0] == a)
		}
		w.publish(4, "a", "b")
		w.publish(5, "a")
		if err := g.next(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.show(5, 4)
		result = g.asleep(t.Context())
		w.unpublish("a")
		w.sleeps(result, 1)
		w.publish(6, "b")
		w.sleeps(result, 1)
		w.publish(7, "a")
		ends(result)
		g.show(7, 6)
		ctx, cancel := context.WithCancel(t.Context())
		result = g.asleep(ctx)
		cancel()
		if got := <-result; !errors.Is(got.err, context.Canceled) {
			t.Errorf("NextAll = %v", got.err)
		}
		g.show(7, 6)
		result = g.asleep(t.Context())
		if err := w.c.CloseViews(); err != nil {
			t.Error(err)
		}
		w.publish(8, "b")
		if got := <-result; !errors.Is(got.err, core.ErrClosed) {
			t.Errorf("NextAll of views that were closed: %v", got.err)
		}
	}
}

// TestNextAllIsOfOneMoment: what is published at once comes at once, whatever comes, goes and is passed over.
func TestNextAllIsOfOneMoment(t *testing.T) {
	t.Parallel()
	const rounds = 2000
	w := newWorld(t)
	var seen atomic.Int64
	var all sync.WaitGroup
	for range 3 {
		g := w.group("a", "b")
		all.Go(func() {
			for last := 0.0; last < rounds && !t.Failed(); seen.Add(1) {
				if err := g.next(t.Context()); err != nil {
					t.Error(err)
					return
				}
				a, b := valueOf(t, g.views[0]), valueOf(t, g.views[1])
				if a != b || a <= last {
					t.Errorf("after %v come %v and %v", last, a, b)
				}
				last = a
			}
		})
	}
	for i := 1; i <= rounds; i++ {
		before := seen.Load()
		w.publish(float64(i), "a", "b")
		if i%10 == 0 && i < rounds {
			eventually(t, "somebody looks", func() bool { return seen.Load() > before || t.Failed() })
		}
		if i%50 == 0 && i < rounds {
			w.unpublish([]string{"a", "b"}[i/50%2])
		}
	}
	all.Wait()
}

// refreshAll is [Group.Refresh] of views that the test has.
func (c *Client) refreshAll(ctx context.Context, sources []*Source, views []*core.View, req contract.Request) (bool, int, error) {
	return (&Group{client: c, Sources: sources, Views: views}).Refresh(ctx, req)
}

func (c *Client) nextAll(ctx context.Context, sources []*Source, views []*core.View) (int, error) {
	return (&Group{client: c, Sources: sources, Views: views}).Next(ctx, contract.Request{})
}

// TestNextOfAGroupObeysItsContext: a program that publishes faster than the views of all names can be taken.
func TestNextOfAGroupObeysItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(1, "x", "y")
	w.withdraw("x") // so that the program is asked for it
	g := w.group("x", "y")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const patience = 10
	asked := 0
	w.mu.Lock()
	w.granted = func(*contract.Lease) {
		switch asked++; {
		case asked > 10*patience:
			return // it is lost
		case asked == patience:
			cancel()
		}
		w.publish(float64(asked), "x", "y")
		w.withdraw("x")
	}
	w.mu.Unlock()
	if err := g.next(ctx); !errors.Is(err, context.Canceled) || asked >= 2*patience { // a lease may be on its way
		t.Errorf("%v after %d leases", err, asked)
	}
}
