package leases

import (
	"errors"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// TestRefresh: as long as a name leads to the same memory, the view is the same one; otherwise it is another,
// and the one before is closed. By the mailbox, by gRPC, and by comparing two leases.
func TestRefresh(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(w *world){
		"mailbox":   func(*world) {},
		"gRPC":      func(w *world) { w.silent = true },
		"comparing": func(w *world) { w.able = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, req := range []contract.Request{{}, {Writable: true}} {
				w := newWorld(t)
				prepare(w)
				w.set("x", 1)
				s := &Source{Name: "x"}
				v, changed, err := w.c.Refresh(t.Context(), s, nil, req)
				if err != nil || !changed || valueOf(t, v) != 1 || v.Writable() != req.Writable {
					t.Fatalf("Refresh without a view = %v, %v, %v", v, changed, err)
				}
				for i := range 6 {
					want := float64(i/2 + 1)
					if i%2 == 0 && i > 0 {
						w.set("x", want)
					}
					next, changed, err := w.c.Refresh(t.Context(), s, v, contract.Request{})
					if err != nil || changed != (i%2 == 0 && i > 0) || changed == (next == v) || valueOf(t, next) != want || next.Writable() != req.Writable {
						t.Errorf("%d: Refresh = %v, %v, %v; it shows %v", i, next, changed, err, valueOf(t, next))
					}
					if _, err := v.Bytes(); changed != errors.Is(err, core.ErrClosed) {
						t.Errorf("%d: the view before: %v", i, err)
					}
					v = next
				}
				w.stand(1)
				closeView(t, v)
			}
		})
	}
}

// TestRefreshOfCopies: a program that looks again copies again; otherwise there is another copy each time.
func TestRefreshOfCopies(t *testing.T) {
	t.Parallel()
	for able, want := range map[bool]bool{true: false, false: true} {
		w := newWorld(t)
		w.able = able
		w.setCopied("x", 1)
		s := &Source{Name: "x"}
		v := w.view(s)
		next, changed, err := w.c.Refresh(t.Context(), s, v, contract.Request{})
		if err != nil || changed != want || !next.Copied() || valueOf(t, next) != 1 {
			t.Errorf("a program that is able: %v: Refresh = %v, %v, %v", able, next, changed, err)
		}
		closeView(t, next)
	}
}

// TestRefreshAfterErrors: the view stands, as it was, and can be refreshed later.
func TestRefreshAfterErrors(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(w *world){
		"refused":          func(w *world) { w.refused = &core.Error{Op: "lease", Kind: core.ErrPython} },
		"refused, silent":  func(w *world) { w.refused, w.silent = &core.Error{Op: "lease", Kind: core.ErrPython}, true },
		"refused, unable":  func(w *world) { w.refused, w.able = &core.Error{Op: "lease", Kind: core.ErrPython}, false },
		"the same lease":   func(w *world) { w.sameLeases = true },
		"the same, silent": func(w *world) { w.sameLeases, w.silent = true, true },
		"out of reach": func(w *world) {
			w.granted = func(l *contract.Lease) { // memory of which there is no descriptor
				l.Handle = contract.Segment{ID: 999, Size: 4096, Sealed: true}
				w.mu.Lock()
				defer w.mu.Unlock()
				w.standing[l.ID] = *l
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.set("x", 1)
			s := &Source{Name: "x"}
			v := w.view(s)
			w.set("x", 2)
			w.mu.Lock()
			prepare(w)
			w.mu.Unlock()
			for range 3 {
				next, changed, err := w.c.Refresh(t.Context(), s, v, contract.Request{})
				if err == nil || changed || next != v || valueOf(t, v) != 1 {
					t.Fatalf("Refresh = %v, %v, %v", next, changed, err)
				}
			}
			w.mu.Lock()
			w.refused, w.sameLeases, w.granted = nil, false, nil
			w.mu.Unlock()
			next, changed, err := w.c.Refresh(t.Context(), s, v, contract.Request{})
			if err != nil || !changed || valueOf(t, next) != 2 {
				t.Fatalf("afterwards: Refresh = %v, %v, %v", next, changed, err)
			}
			w.stand(1)
			closeView(t, next)
		})
	}
}

// TestRefreshOfOtherViews: a view that the source has not given is refused, and stands.
func TestRefreshOfOtherViews(t *testing.T) {
	t.Parallel()
	w, elsewhere := newWorld(t), newWorld(t)
	for _, w := range []*world{w, elsewhere} {
		w.set("x", 1)
		w.set("y", 2)
		w.publish(3, "offered")
	}
	x, y := &Source{Name: "x"}, &Source{Name: "y"}
	offered := &Source{Name: "offered"}
	foreign := elsewhere.view(x)
	other := w.view(y)
	whole, wholeOffer := w.view(x), w.view(offered)
	derive := func(v *core.View) *core.View {
		d, err := v.Sub(0, 0, 4)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeView(t, d) })
		return d
	}
	l, err := core.NewLayout(core.LayoutSpec{DType: core.Int64, Shape: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	own, err := core.NewView(l, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closeView(t, own)
	for name, tt := range map[string]struct {
		source *Source
		view   *core.View
	}{
		"of another session":        {x, foreign},
		"of another name":           {x, other},
		"derived":                   {x, derive(whole)},
		"derived from an offer":     {offered, derive(wholeOffer)},
		"nobody's":                  {x, own},
		"the zero View":             {x, new(core.View)},
		"of a variable, as offered": {offered, whole},
	} {
		for call, refresh := range map[string]func() (*core.View, bool, error){
			"Refresh": func() (*core.View, bool, error) {
				return w.c.Refresh(t.Context(), tt.source, tt.view, contract.Request{})
			},
			"Latest": func() (*core.View, bool, error) {
				return w.c.Latest(t.Context(), tt.source, tt.view, contract.Request{})
			},
			"Next": func() (*core.View, bool, error) {
				v, err := w.c.Next(t.Context(), tt.source, tt.view, contract.Request{})
				return v, false, err
			},
		} {
			v, changed, err := refresh()
			if !errors.Is(err, core.ErrConfig) || changed || v != tt.view {
				t.Errorf("%s of a view %s = %v, %v, %v; want ErrConfig", call, name, v, changed, err)
			}
			if isPart := strings.HasPrefix(name, "derived"); strings.Contains(err.Error(), "was derived from the source's") != isPart {
				t.Errorf("%s of a view %s: %v", call, name, err)
			}
		}
	}
	sameName := &Source{Name: "x"}
	if v, changed, err := w.c.Refresh(t.Context(), sameName, whole, contract.Request{}); err != nil || changed || v != whole {
		t.Errorf("Refresh by another source of the same name = %v, %v, %v", v, changed, err)
	}
}

// TestRefreshOfClosedViews: what is closed has no lease to look at again.
func TestRefreshOfClosedViews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set("x", 1)
	w.publish(3, "offered")
	for _, name := range []string{"x", "offered"} {
		s := &Source{Name: name}
		for range 2 { // the second time it may be offered
			v := w.view(s)
			closeView(t, v)
			if next, changed, err := w.c.Refresh(t.Context(), s, v, contract.Request{}); !errors.Is(err, core.ErrClosed) || changed || next != v {
				t.Errorf("Refresh of a closed view of %s = %v, %v, %v", name, next, changed, err)
			}
			if next, changed, err := w.c.Latest(t.Context(), s, v, contract.Request{}); !errors.Is(err, core.ErrClosed) || changed || next != v {
				t.Errorf("Latest of a closed view of %s = %v, %v, %v", name, next, changed, err)
			}
		}
	}
}

// TestRefreshMakesNoGarbage of what has not changed: not of variables, nor of what is offered.
func TestRefreshMakesNoGarbage(t *testing.T) { //nolint:paralleltest // it counts allocations
	w := newWorld(t)
	w.set("x", 1)
	w.publish(3, "offered")
	for _, name := range []string{"x", "offered"} {
		s := &Source{Name: name}
		closeView(t, w.view(s))
		v := w.view(s)
		w.c.Flush(t.Context())
		w.took()
		refresh := func() {
			if next, changed, err := w.c.Refresh(t.Context(), s, v, contract.Request{}); err != nil || changed || next != v {
				t.Fatal(next, changed, err)
			}
		}
		// On a busy machine an answer may come late, and then it is asked for by gRPC.
		eventually(t, "Refresh of "+name+" without an allocation", func() bool { return testing.AllocsPerRun(50, refresh) == 0 })
		if asked, _ := w.took(); name == "offered" && len(asked) != 0 {
			t.Errorf("the program was asked for %q", asked)
		}
	}
	s := &Source{Name: "offered"}
	g := w.c.Group([]*Source{{Name: "x"}, s})
	refresh := func() {
		if _, _, err := g.Refresh(t.Context(), contract.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "Refresh of a group without an allocation", func() bool { return testing.AllocsPerRun(50, refresh) == 0 })
	v := w.view(s)
	if n := testing.AllocsPerRun(50, func() {
		if next, changed, err := w.c.Latest(t.Context(), s, v, contract.Request{}); err != nil || changed || next != v {
			t.Fatal(next, changed, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for Latest", n)
	}
}
