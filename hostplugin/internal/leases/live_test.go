package leases

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

func (w *world) turnsStale(name string, followed bool, why Staleness, _ error) {
	if followed {
		name += ", followed"
	}
	w.stale <- fmt.Sprintf("%s: %s", name, why)
}

// TestLive: a view is live until it is not, which is said once, with the reason.
func TestLive(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare func(w *world)
		end     func(w *world)
		live    bool   // after the end
		says    string // once; "": nothing
	}{
		"a variable":           {func(w *world) { w.set("x", 1) }, func(*world) {}, true, ""},
		"a variable that goes": {func(w *world) { w.set("x", 1) }, func(w *world) { w.unset("x") }, false, "x: " + string(StaleRebound)},
		"another variable":     {func(w *world) { w.set("x", 1) }, func(w *world) { w.set("x", 2) }, false, "x: " + string(StaleRebound)},
		"a forked variable":    {func(w *world) { w.set("x", 1) }, (*world).fork, false, "x: " + string(StaleFork)},
		"a published name":     {func(w *world) { w.publish(1, "x") }, func(w *world) { w.publish(2, "other") }, true, ""},
		"a newer version":      {func(w *world) { w.publish(1, "x") }, func(w *world) { w.publish(2, "x") }, false, "x: " + string(StaleRebound)},
		"an unpublished name":  {func(w *world) { w.publish(1, "x") }, func(w *world) { w.unpublish("x") }, false, "x: " + string(StaleRebound)},
		"a forked offer":       {func(w *world) { w.publish(1, "x") }, (*world).fork, false, "x: " + string(StaleFork)},
		"another variable, and a fork": {
			func(w *world) { w.set("x", 1) }, func(w *world) { w.set("x", 2); w.writer.Forks().Add(1) }, false, "x: " + string(StaleRebound),
		},
		"a newer version, and a fork": {
			func(w *world) { w.publish(1, "x") }, func(w *world) { w.publish(2, "x"); w.fork() }, false, "x: " + string(StaleRebound),
		},
		"an unpublished name, and a fork": {
			func(w *world) { w.publish(1, "x") }, func(w *world) { w.unpublish("x"); w.fork() }, false, "x: " + string(StaleRebound),
		},
		"a copy":                 {func(w *world) { w.setCopied("x", 1) }, func(*world) {}, false, ""},
		"a program that is gone": {func(w *world) { w.set("x", 1) }, func(w *world) { close(w.gone) }, false, ""},
	} {
		for way, silent := range map[string]bool{"": false, ", by gRPC": true} {
			t.Run(name+way, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.mu.Lock()
				w.silent = silent
				w.mu.Unlock()
				test.prepare(w)
				v := w.view(&Source{Name: "x"})
				for range 2 {
					if v.Live() == v.Copied() {
						t.Errorf("live: %v, copied: %v", v.Live(), v.Copied())
					}
				}
				test.end(w)
				// Who is too busy to answer says nothing new.
				eventually(t, "Live says so", func() bool { return v.Live() == test.live })
				for range 2 {
					if v.Live() != test.live || valueOf(t, v) != 1 {
						t.Errorf("live: %v; it shows %v", v.Live(), valueOf(t, v))
					}
				}
				w.c.Forked()
				if test.says != "" {
					w.hears() // after a fork a little later: first the program is asked
				}
				w.says(test.says)
				closeView(t, v)
				if v.Live() {
					t.Error("a closed view is live")
				}
				w.says("")
				w.c.Flush(t.Context())
				eventually(t, "no lease stands", func() bool { return w.leases() == 0 })
			})
		}
	}
}

// TestLiveAgain: what takes memory away need not take all of it. A view whose memory the program says is still the
// array's is live again. Where the program cannot be asked, that is said, and a look at the name finds out.
func TestLiveAgain(t *testing.T) {
	t.Parallel()
	for _, renews := range []bool{true, false} {
		for _, silent := range []bool{false, true} {
			t.Run(fmt.Sprintf("renews %v, by gRPC %v", renews, silent), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.silent, w.renews = silent, renews
				w.set("x", 1)
				s := &Source{Name: "x"}
				v := w.view(s)
				for _, says := range []string{"x: ", "x, followed: "} {
					w.writer.Forks().Add(1)
					if v.Live() {
						t.Error("a view is live before the program has said so")
					}
					if !renews {
						w.hears()
						w.says(says + string(StaleFork))
					}
					eventually(t, "the view is live again", func() bool {
						if renews {
							return v.Live()
						}
						same, changed, err := w.c.Refresh(t.Context(), s, v, contract.Request{})
						if err != nil || changed || same != v {
							t.Fatalf("Refresh: changed %v, %v", changed, err)
						}
						return v.Live()
					})
					w.says("")
				}
				closeView(t, v)
			})
		}
	}
}

// TestFollowed: who refreshes views, or waits for new ones, is said to follow their names.
func TestFollowed(t *testing.T) {
	t.Parallel()
	for name, follow := range map[string]func(w *world, s *Source, v *core.View) (*core.View, bool, error){
		"a refresh": func(w *world, s *Source, v *core.View) (*core.View, bool, error) {
			w.set("x", 2)
			return w.c.Refresh(w.t.Context(), s, v, contract.Request{})
		},
		"a wait": func(w *world, s *Source, v *core.View) (*core.View, bool, error) {
			w.publish(2, "x")
			next, err := w.c.Next(w.t.Context(), s, v, contract.Request{})
			return next, true, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s := newWorld(t), &Source{Name: "x"}
			w.set("x", 1)
			v, changed, err := follow(w, s, w.view(s))
			if err != nil || !changed || !v.Live() {
				t.Fatalf("changed %v, %v", changed, err)
			}
			w.fork()
			eventually(t, "the view is not live", func() bool { return !v.Live() })
			w.hears()
			w.says("x, followed: " + string(StaleFork))
			closeView(t, v)
		})
	}
}

// TestLiveAfterAnotherFork: a view that could not be live again after a fork, of which that is said once, may be after the next.
func TestLiveAfterAnotherFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renews = false
	w.set("x", 1)
	v := w.view(&Source{Name: "x"})
	for range 2 {
		w.writer.Forks().Add(1)
		w.c.Forked()
		w.hears()
		eventually(t, "it was tried", func() bool { return len(w.c.forked) == 0 })
	}
	w.says("x: " + string(StaleFork))
	w.mu.Lock()
	w.renews = true
	w.mu.Unlock()
	if v.Live() {
		t.Error("a view is live, and nobody has tried")
	}
	w.writer.Forks().Add(1)
	w.c.Forked()
	eventually(t, "the view is live again", v.Live)
	w.says("")
	closeView(t, v)
}

// hears waits until something is said.
func (w *world) hears() {
	w.t.Helper()
	eventually(w.t, "it is said that a view is not live", func() bool { return len(w.stale) > 0 })
}

// TestLiveKnowsOfRefresh: a name that a look again does not find makes the view stale, whether or not the program answers Live.
// The error of the look says it, so nothing else does.
func TestLiveKnowsOfRefresh(t *testing.T) {
	t.Parallel()
	for _, copied := range []bool{false, true} {
		w := newWorld(t)
		w.set("x", 1)
		if copied {
			w.setCopied("x", 1)
		}
		s := &Source{Name: "x"}
		v := w.view(s)
		w.unset("x")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		next, changed, err := w.c.Refresh(ctx, s, v, contract.Request{NoWait: true})
		cancel()
		if err == nil || changed || next != v {
			t.Errorf("Refresh of a name that is gone: changed %v, %v", changed, err)
		}
		if l, ok := v.Lender().(*Lease); !ok || l.stale.Load() == copied {
			t.Errorf("copied %v: a lease %v, and not as stale as it is", copied, ok)
		}
		w.says("")
		closeView(t, v)
	}
}

// says holds that something was said of views that are not live any more; "": nothing was.
func (w *world) says(want string) {
	w.t.Helper()
	select {
	case got := <-w.stale:
		if got != want {
			w.t.Errorf("it is said %q, want %q", got, want)
		}
		if len(w.stale) != 0 {
			w.t.Errorf("and %q", <-w.stale)
		}
	default:
		if want != "" {
			w.t.Errorf("it is not said that %q", want)
		}
	}
}

// TestForked says of each view what the fork has done, and nothing of those that were taken after it.
func TestForked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(1, "offered")
	w.set("x", 1)
	w.setCopied("copy", 1)
	before := []*core.View{w.view(&Source{Name: "offered"}), w.view(&Source{Name: "x"}), w.view(&Source{Name: "copy"})}
	w.c.Forked()
	w.says("")
	w.fork()
	w.set("y", 1)
	after := w.view(&Source{Name: "y"})
	for range 2 {
		w.c.Forked()
	}
	eventually(t, "it is said of two", func() bool { return len(w.stale) == 2 })
	said := map[string]int{}
	for len(w.stale) > 0 {
		said[<-w.stale]++
	}
	if len(said) != 2 || said["offered: "+string(StaleFork)] != 1 || said["x: "+string(StaleFork)] != 1 {
		t.Errorf("it is said %v", said)
	}
	for _, v := range before {
		if v.Live() {
			t.Errorf("%s is live after a fork", v.Name())
		}
	}
	if !after.Live() {
		t.Error("an array that was made after the fork is not live")
	}
	w.says("")
}

// TestForkMoves: views show where a fork has moved their memory, at the same addresses, as soon as nobody holds it.
func TestForkMoves(t *testing.T) {
	t.Parallel()
	for _, told := range []bool{true, false} {
		t.Run(fmt.Sprintf("told of it %v", told), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.publish(1, "offered")
			w.set("x", 1)
			views := []*core.View{w.view(&Source{Name: "offered"}), w.view(&Source{Name: "x"}), w.view(&Source{Name: "x"})}
			var addresses []uintptr
			for _, v := range views {
				addresses = append(addresses, v.Addr())
			}
			w.stand(3)
			for value := 2.0; value < 5; value++ {
				_, _, release, err := views[2].Acquire()
				if err != nil {
					t.Fatal(err)
				}
				w.forkMoved(value)
				if told {
					w.c.Forked()
				}
				eventually(t, "the offered one is live", views[0].Live)
				if views[2].Live() || valueOf(t, views[2]) != value-1 {
					t.Errorf("memory that is held has moved: live %v, %v", views[2].Live(), valueOf(t, views[2]))
				}
				release()
				for i, v := range views {
					eventually(t, fmt.Sprintf("%s is live: %v", v.Name(), value), v.Live)
					if got := valueOf(t, v); got != value || v.Addr() != addresses[i] {
						t.Errorf("%s shows %v, want %v, at %#x", v.Name(), got, value, v.Addr())
					}
				}
				w.stand(4) // the offer's, and one more for the memory of after the fork
			}
			w.says("")
			for _, v := range views {
				closeView(t, v)
			}
			w.stand(0)
		})
	}
}

// TestRefreshDuringRenewal: a look at a view whose memory is about to be mapped anew waits for that, and the view stands.
func TestRefreshDuringRenewal(t *testing.T) {
	t.Parallel()
	for _, moved := range []bool{false, true} {
		t.Run(fmt.Sprintf("moved %v", moved), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			begun, goOn := make(chan struct{}, 1), make(chan struct{})
			w.renewing = func([]contract.Renewal) { begun <- struct{}{}; <-goOn }
			w.set("x", 1)
			s, want := &Source{Name: "x"}, 1.0
			v := w.view(s)
			if moved {
				want = 2
				w.forkMoved(want)
			} else {
				w.writer.Forks().Add(1)
			}
			if v.Live() {
				t.Error("a view is live before the program has said so")
			}
			<-begun
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if next, changed, err := w.c.Refresh(ctx, s, v, contract.Request{}); !errors.Is(err, context.DeadlineExceeded) || changed || next != v {
				t.Errorf("before the end: changed %v, %v", changed, err)
			}
			time.AfterFunc(20*time.Millisecond, func() { close(goOn) })
			if next, changed, err := w.c.Refresh(t.Context(), s, v, contract.Request{}); err != nil || changed || next != v || valueOf(t, v) != want {
				t.Errorf("it is changed %v, %v; it shows %v, want %v", changed, err, valueOf(t, v), want)
			}
			w.says("")
			closeView(t, v)
		})
	}
}

// TestLeft: a view shows what a program has left that is gone, unless it is a copy, or has not been the array's memory for sure until then.
func TestLeft(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare func(w *world)
		end     func(w *world)
		left    bool
	}{
		"a variable":         {func(w *world) { w.set("x", 1) }, func(*world) {}, true},
		"a published name":   {func(w *world) { w.publish(1, "x") }, func(*world) {}, true},
		"a forked variable":  {func(w *world) { w.set("x", 1) }, (*world).fork, false},
		"a variable renewed": {func(w *world) { w.set("x", 1) }, func(w *world) { w.forkMoved(2); w.c.renewAll(w.t.Context()) }, true},
		"another variable":   {func(w *world) { w.set("x", 1) }, func(w *world) { w.set("x", 2) }, false},
		"a copy":             {func(w *world) { w.setCopied("x", 1) }, func(*world) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			test.prepare(w)
			v := w.view(&Source{Name: "x"})
			test.end(w)
			v.Live() // finds what has become of the name
			close(w.gone)
			if left := v.Lender().(*Lease).Left(); left != test.left { //nolint:errcheck,forcetypeassert // of this package
				t.Errorf("left: %v", left)
			}
		})
	}
}
