package leases

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

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
		v, err := w.c.Next(ctx, s, v, contract.Request{})
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
			v, err := w.c.Next(t.Context(), s, nil, contract.Request{})
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
			next, err := w.c.Next(t.Context(), s, v, contract.Request{})
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
			next, err := w.c.Next(t.Context(), s, v, contract.Request{})
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
			_, err := w.c.nextAll(t.Context(), []*Source{s}, all)
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
			if err := w.c.CloseViews(); err != nil {
				t.Error(err)
			}
			test.end(w)
			if got := <-result; !errors.Is(got.err, test.kind) || got.v != v {
				t.Errorf("Next = %v, %v", got.v, got.err)
			}
			if v, err := w.c.View(t.Context(), s, contract.Request{}); !errors.Is(err, core.ErrClosed) {
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
		_, err := w.c.nextAll(t.Context(), []*Source{s}, all)
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
