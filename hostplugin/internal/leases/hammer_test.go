package leases

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// TestVersionsRace: while the program publishes version after version, and uses the memory again of what nobody
// holds, each view shows its version, unchanged for as long as it is open, and none older than the one before.
func TestVersionsRace(t *testing.T) {
	t.Parallel()
	const versions = 3000
	w := newWorld(t)
	w.publish(1, "x")
	shared := &Source{Name: "x"}
	var views atomic.Int64
	var all sync.WaitGroup
	for reader, look := range []func(s *Source, v *core.View) (*core.View, error){
		func(s *Source, v *core.View) (*core.View, error) {
			next, _, err := w.c.Latest(t.Context(), s, v, contract.Request{})
			return next, err
		},
		func(s *Source, v *core.View) (*core.View, error) {
			next, _, err := w.c.Refresh(t.Context(), s, v, contract.Request{})
			return next, err
		},
		func(s *Source, v *core.View) (*core.View, error) {
			return w.c.Next(t.Context(), s, v, contract.Request{})
		},
		func(s *Source, v *core.View) (*core.View, error) {
			next, err := w.c.View(t.Context(), s, contract.Request{})
			if err == nil && v != nil {
				err = v.Close()
			}
			return next, err
		},
	} {
		source := shared
		if reader%2 == 0 {
			source = &Source{Name: "x"}
		}
		all.Go(func() {
			var v *core.View
			for last := uint64(0); last < versions && !t.Failed(); {
				next, err := look(source, v)
				if err != nil {
					t.Error(err)
					return
				}
				v = next
				views.Add(1)
				for range 3 {
					if x := valueOf(t, v); x != float64(v.Version()) || v.Version() < last {
						t.Errorf("reader %d: version %d shows %v, after version %d", reader, v.Version(), x, last)
					}
					runtime.Gosched()
				}
				last = v.Version()
			}
			closeView(t, v)
		})
	}
	for i := 2; i <= versions; i++ {
		w.publish(float64(i), "x")
		runtime.Gosched()
		if i%10 == 0 && i < versions {
			seen := views.Load()
			eventually(t, "the readers look", func() bool { return views.Load() > seen || t.Failed() })
		}
	}
	all.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.files); n > 100 {
		t.Errorf("%d pieces of memory for one name: it is not used again, so this shows little", n)
	}
}

// TestNamesRace: while names come and go, and have each other's entries in the table, no view of one name shows
// what was another's, or what is a variable.
func TestNamesRace(t *testing.T) {
	t.Parallel()
	const rounds = 2000
	w := newWorld(t)
	var done atomic.Bool
	var all sync.WaitGroup
	var views [2]atomic.Int64
	for i, name := range []string{"x", "y"} {
		for range 2 {
			all.Go(func() {
				s := &Source{Name: name}
				var v *core.View
				for !done.Load() && !t.Failed() {
					next, changed, err := w.c.Latest(t.Context(), s, v, contract.Request{NoWait: true})
					if v = next; err != nil {
						if !errors.Is(err, core.ErrNotFound) {
							t.Error(err)
						}
						continue
					}
					if x := valueOf(t, v); x != float64(i) {
						t.Errorf("a view of %s shows %v", name, x)
					}
					if changed {
						views[i].Add(1)
					}
				}
				if v != nil {
					closeView(t, v)
				}
			})
		}
	}
	for i := range rounds {
		n := i % 2
		seen := views[n].Load()
		w.publish(float64(n), []string{"x", "y"}[n])
		if i < 100 {
			eventually(t, "somebody sees it", func() bool { return views[n].Load() > seen || t.Failed() })
		}
		w.unpublish([]string{"x", "y"}[n])
		w.set([]string{"x", "y"}[n], 99)
	}
	done.Store(true)
	all.Wait()
	t.Logf("%d and %d views", views[0].Load(), views[1].Load())
}

// TestNextSeesTheFirst: who waits for a name that is published once, at any moment, is not left waiting.
func TestNextSeesTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 1000 {
		var all sync.WaitGroup
		for range 2 {
			delay := rand.IntN(300)
			all.Go(func() {
				for range delay {
					runtime.Gosched()
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				v, err := w.c.Next(ctx, &Source{Name: "x"}, nil, contract.Request{})
				if err != nil {
					t.Errorf("Next of what was published = %v, %v", v, err)
					return
				}
				closeView(t, v)
			})
		}
		for range rand.IntN(300) {
			runtime.Gosched()
		}
		w.publish(1, "x")
		all.Wait()
		w.unpublish("x")
		if t.Failed() {
			break
		}
	}
}
