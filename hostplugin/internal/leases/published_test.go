package leases

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
)

// latest takes the newest version, which there must be.
func (w *world) latest(s *Source, v *core.View) (*core.View, bool) {
	w.t.Helper()
	next, changed, err := w.c.Latest(w.t.Context(), s, v, core.Request{})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.keep(next), changed
}

// shows holds a view to a version and its value.
func (w *world) shows(v *core.View, version uint64, value float64) {
	w.t.Helper()
	if w.keep(v); v.Version() != version || v.Published().IsZero() || valueOf(w.t, v) != value {
		w.t.Errorf("version %d of %v shows %v, want version %d, which shows %v", v.Version(), v.Published(), valueOf(w.t, v), version, value)
	}
}

func isClosed(v *core.View) bool {
	_, err := v.Bytes()
	return errors.Is(err, core.ErrClosed)
}

// TestLatest follows the versions of a name and no variable; the program is asked for nothing that is offered.
func TestLatest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.set("x", 99)
	s := &Source{Name: "x"}
	missing := func(v *core.View) {
		t.Helper()
		next, changed, err := w.c.Latest(t.Context(), s, v, core.Request{})
		e, ok := errors.AsType[*core.Error](err)
		if !errors.Is(err, core.ErrNotFound) || changed || next != v || !ok || e.Remedy == "" {
			t.Errorf("Latest of what is not published = %v, %v, %v", next, changed, err)
		}
	}
	missing(nil)
	w.publish(1, "x")
	v, changed := w.latest(s, nil)
	if w.shows(v, 1, 1); !changed {
		t.Error("the first view is no other one")
	}
	for i := 2.0; i <= 4; i++ {
		w.publish(i, "other")
		if same, changed := w.latest(s, v); same != v || changed {
			t.Error("another view of the same version")
		}
	}
	w.publish(2, "x")
	w.publish(3, "x")
	w.publish(4, "x")
	next, changed := w.latest(s, v)
	if w.shows(next, 4, 4); !changed || !isClosed(v) {
		t.Errorf("a newer version: changed is %v, the view before is closed: %v", changed, isClosed(v))
	}
	v = next
	if asked, mailed := w.took(); len(asked)+len(mailed) != 0 {
		t.Errorf("the program was asked for %q and %q", asked, mailed)
	}
	w.unpublish("x")
	missing(v)
	w.set("x", 98)
	missing(v)
	w.shows(v, 4, 4)
	w.unset("x")
	w.publish(5, "x")
	if next, changed = w.latest(s, v); !changed || !isClosed(v) {
		t.Error("a name that came again has the same view")
	}
	w.shows(next, 5, 5)
	w.c.Flush(t.Context())
	if n := w.writer.Holds(); n != 1 {
		t.Errorf("%d offers are held for one view", n)
	}
}

// TestLatestOfWhatIsAskedFor: of what is not offered, or not in that way, the program gives a lease, and the
// table tells no less of it.
func TestLatestOfWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, req := range map[string]core.Request{"writable": {Writable: true}, "not offered": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := &Source{Name: "x"}
			publish := func(value float64) {
				w.publish(value, "x")
				if !req.Writable {
					w.withdraw("x")
				}
			}
			publish(1)
			v, _, err := w.c.Latest(t.Context(), s, nil, req)
			if err != nil {
				t.Fatal(err)
			}
			w.took()
			if same, changed := w.latest(s, v); changed || same != v {
				t.Error("another view of the same version")
			}
			if asked, mailed := w.took(); len(asked)+len(mailed) != 0 {
				t.Errorf("the program was asked for %q and %q though nothing was published", asked, mailed)
			}
			publish(2)
			next, changed := w.latest(s, v)
			if w.shows(next, 2, 2); !changed || !isClosed(v) || next.Writable() != req.Writable {
				t.Errorf("changed is %v, writable %v", changed, next.Writable())
			}
			if asked, mailed := w.took(); len(asked) != 0 || len(mailed) != 1 || mailed[0] != "lease x" {
				t.Errorf("the program was asked for %q and %q", asked, mailed)
			}
		})
	}
}

// TestNoTable: without shared memory there are no versions to follow, and views by gRPC.
func TestNoTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.c.Handoff = nil
	w.publish(1, "x")
	s := &Source{Name: "x"}
	_, _, latest := w.c.Latest(t.Context(), s, nil, core.Request{})
	_, next := w.c.Next(t.Context(), s, nil, core.Request{})
	_, nextAll := w.c.NextAll(t.Context(), []*Source{s}, make([]*core.View, 1), core.Request{})
	for call, err := range map[string]error{"Latest": latest, "Next": next, "NextAll": nextAll} {
		if e, ok := errors.AsType[*core.Error](err); !errors.Is(err, core.ErrUnsupported) || !ok || e.Remedy == "" {
			t.Errorf("%s: %v", call, err)
		}
	}
	w.shows(w.view(s), 1, 1)
	if asked, mailed := w.took(); len(asked) != 1 || len(mailed) != 0 {
		t.Errorf("the program was asked for %q and %q", asked, mailed)
	}
}

// looked is what a call that waits has given.
type looked struct {
	v   *core.View
	err error
}

// next calls Next in the background, and returns when that sleeps.
func (w *world) next(ctx context.Context, s *Source, v *core.View) <-chan looked {
	w.t.Helper()
	before, result := w.sleepers(), make(chan looked, 1)
	go func() {
		v, err := w.c.Next(ctx, s, v, core.Request{})
		result <- looked{v, err}
	}()
	eventually(w.t, "Next sleeps", func() bool { return w.sleepers() > before })
	return result
}

// sleeps holds that a call goes on waiting.
func (w *world) sleeps(result <-chan looked, n uint64) {
	w.t.Helper()
	eventually(w.t, "Next sleeps again", func() bool { return w.sleepers() >= n || len(result) > 0 })
	if len(result) > 0 {
		w.t.Fatalf("Next does not wait: %+v", <-result)
	}
}

// TestNext waits for what is newer than a view, and takes the newest there is.
func TestNext(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(t *testing.T, w *world, s *Source){
		"a name that is not published yet": func(t *testing.T, w *world, s *Source) {
			result := w.next(t.Context(), s, nil)
			w.publish(7, "other")
			w.sleeps(result, 1)
			w.publish(1, "x")
			w.shows((<-result).v, 1, 1)
		},
		"any version": func(t *testing.T, w *world, s *Source) {
			w.publish(1, "x")
			v, err := w.c.Next(t.Context(), s, nil, core.Request{})
			if err != nil {
				t.Fatal(err)
			}
			w.shows(v, 1, 1)
		},
		"one newer version": func(t *testing.T, w *world, s *Source) {
			w.publish(1, "x")
			v, _ := w.latest(s, nil)
			result := w.next(t.Context(), s, v)
			w.publish(7, "other")
			w.sleeps(result, 1)
			w.publish(2, "x")
			if w.shows((<-result).v, 2, 2); !isClosed(v) {
				t.Error("the view before is open")
			}
		},
		"several newer versions": func(t *testing.T, w *world, s *Source) {
			w.publish(1, "x")
			v, _ := w.latest(s, nil)
			w.publish(2, "x")
			w.publish(3, "x")
			next, err := w.c.Next(t.Context(), s, v, core.Request{})
			if err != nil {
				t.Fatal(err)
			}
			w.shows(next, 3, 3)
		},
		"a name that goes and comes": func(t *testing.T, w *world, s *Source) {
			w.publish(1, "x")
			v, _ := w.latest(s, nil)
			result := w.next(t.Context(), s, v)
			w.unpublish("x")
			w.sleeps(result, 1)
			w.publish(7, "other") // it may have the name's entry
			w.sleeps(result, 1)
			w.publish(2, "x")
			w.shows((<-result).v, 2, 2)
		},
		"what no variable is": func(t *testing.T, w *world, s *Source) {
			w.publish(1, "x")
			v, _ := w.latest(s, nil)
			result := w.next(t.Context(), s, v)
			w.unpublish("x")
			w.set("x", 99)
			w.publish(7, "other")
			w.sleeps(result, 1)
			w.unset("x")
			w.publish(2, "x")
			w.shows((<-result).v, 2, 2)
		},
	} {
		for spins, spin := range map[string]time.Duration{", asleep": 0, ", awake": time.Millisecond} {
			t.Run(name+spins, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.c.Spin = spin
				test(t, w, &Source{Name: "x"})
			})
		}
	}
}

// TestNextSpins: who looks for long enough needs nobody to wake it.
func TestNextSpins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.c.Spin = time.Hour
	s := &Source{Name: "x"}
	var v *core.View
	for i := range 20 {
		result := make(chan looked, 1)
		go func() {
			next, err := w.c.Next(t.Context(), s, v, core.Request{})
			result <- looked{next, err}
		}()
		w.publish(float64(i), "x")
		got := <-result
		if got.err != nil {
			t.Fatal(got.err)
		}
		w.shows(got.v, uint64(i+1), float64(i))
		if v = got.v; w.sleepers() != 0 {
			t.Error("Next has slept")
		}
	}
}

// TestNextEnds with its context and with the program; the view stands.
func TestNextEnds(t *testing.T) {
	t.Parallel()
	for _, published := range []bool{true, false} {
		w := newWorld(t)
		s := &Source{Name: "x"}
		var v *core.View
		if published {
			w.publish(1, "x")
			v, _ = w.latest(s, nil)
		}
		want := func(got looked, kind error) {
			t.Helper()
			if !errors.Is(got.err, kind) || got.v != v {
				t.Errorf("Next = %v, %v; want %v and the view that it was given", got.v, got.err, kind)
			}
			if v != nil {
				w.shows(v, 1, 1)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		result := w.next(ctx, s, v)
		cancel()
		want(<-result, context.Canceled)
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		want(<-w.next(ctx, s, v), context.DeadlineExceeded)
		result = w.next(t.Context(), s, v)
		all := []*core.View{v}
		failed := make(chan error, 1)
		go func() {
			_, err := w.c.NextAll(t.Context(), []*Source{s}, all, core.Request{})
			failed <- err
		}()
		eventually(t, "both sleep", func() bool { return w.sleepers() == 2 })
		close(w.gone)
		want(<-result, core.ErrUnavailable)
		want(looked{all[0], <-failed}, core.ErrUnavailable)
	}
}

// TestCloseBesideNext: who waits with a view of a client that is closed has an error with the next version, at
// the latest with the program's end.
func TestCloseBesideNext(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  func(w *world)
		kind error
	}{
		"the program ends": {func(w *world) { close(w.gone) }, core.ErrUnavailable},
		"another version":  {func(w *world) { w.publish(2, "x") }, core.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.publish(1, "x")
			s := &Source{Name: "x"}
			v, _ := w.latest(s, nil)
			result := w.next(t.Context(), s, v)
			w.c.CloseViews()
			test.end(w)
			if got := <-result; !errors.Is(got.err, test.kind) || got.v != v {
				t.Errorf("Next = %v, %v", got.v, got.err)
			}
			if v, err := w.c.View(t.Context(), s, core.Request{}); !errors.Is(err, core.ErrClosed) {
				t.Errorf("View of a client that is closed = %v, %v", v, err)
			}
		})
	}
}

// TestSameVersionIsNotNew: a fork makes the program describe anew what it has published, which is no newer for it.
func TestSameVersionIsNotNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(1, "x")
	s := &Source{Name: "x"}
	v, _ := w.latest(s, nil)
	all := []*core.View{w.view(s)}
	result, both := w.next(t.Context(), s, v), make(chan looked, 1)
	go func() {
		_, err := w.c.NextAll(t.Context(), []*Source{s}, all, core.Request{})
		both <- looked{all[0], err}
	}()
	eventually(t, "both sleep", func() bool { return w.sleepers() == 2 })
	w.fork()
	w.separate()
	mails := 0
	eventually(t, "the program is asked for both", func() bool {
		_, mailed := w.took()
		mails += len(mailed)
		return mails >= 2 || len(result)+len(both) > 0
	})
	w.sleeps(result, 2)
	w.sleeps(both, 2)
	w.publish(2, "x")
	w.shows((<-result).v, 2, 2)
	w.shows((<-both).v, 2, 2)
}
