package watch

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/stats"
)

// TestCredit spends at once what was not spent in the last seconds, and no more than that.
func TestCredit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit, looks, took = 0.01, 5, 40 * time.Millisecond
		p := NewPace(limit, credit)
		time.Sleep(time.Hour)
		begun := time.Now()
		for i := range looks {
			time.Sleep(took)
			p.Spend(took)
			if err := p.Wait(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			if i == 0 && time.Since(begun) != took {
				t.Errorf("the first look was paid for after %v, and not at once", time.Since(begun))
			}
		}
		if all, want := time.Since(begun), time.Duration(looks*float64(took)/limit)-credit; all != want {
			t.Errorf("%d looks were paid for after %v, want %v", looks, all, want)
		}
	})
}

// TestParts has one read much of what it shares with others, who read little: none of these waits for longer than its own part has it wait,
// and all together keep to the share.
func TestParts(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]int{"alone": 0, "beside one": 1, "beside many": 50} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const limit, much, little, least, long = 0.01, 80 * time.Millisecond, 100 * time.Microsecond, 100 * time.Millisecond, 10 * time.Minute
				p := NewPace(limit, time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), long)
				defer cancel()
				longest := make([]time.Duration, others+1)
				var all sync.WaitGroup
				core := make(chan struct{}, 1)
				for i := range longest {
					part, takes := p.Part(), little
					if i == 0 {
						takes = much
					}
					all.Go(func() {
						defer part.Leave()
						for ctx.Err() == nil {
							last := time.Now()
							core <- struct{}{}
							time.Sleep(takes)
							<-core
							part.Spend(takes)
							_ = part.Wait(ctx, least)
							longest[i] = max(longest[i], time.Since(last))
						}
					})
				}
				all.Wait()
				if share := p.Spent().Share; share > 1.03*limit || share < 0.7*limit {
					t.Errorf("%v of the core was taken, want %v", share, limit)
				}
				parts := float64(others + 1)
				// It may have read just before that when all was paid for.
				if most := 3*much + max(least, 2*time.Duration(little.Seconds()*parts/limit*float64(time.Second))); others > 0 && slices.Max(longest[1:]) > most {
					t.Errorf("one who reads little did so after %v, want %v", slices.Max(longest[1:]), most)
				}
				if most := time.Duration(much.Seconds()*parts/limit*float64(time.Second)) + least; longest[0] > most {
					t.Errorf("who reads much did so after %v, want %v", longest[0], most)
				}
				if p.parts != 0 {
					t.Errorf("%d parts are left", p.parts)
				}
			})
		})
	}
}

// TestLeftIsNoDebt has one of two read alone for long, with all of the share: when the other one reads much, it still has its part.
func TestLeftIsNoDebt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit, little = 0.01, time.Millisecond
		p := NewPace(limit, time.Second)
		one, other := p.Part(), p.Part()
		for begun := time.Now(); time.Since(begun) < time.Hour; {
			one.Spend(little)
			if err := one.Wait(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
		other.Spend(time.Second)
		one.Spend(little)
		if owed := one.Owed(); owed > 2*time.Duration(2*float64(little)/limit) {
			t.Errorf("it waits for %v", owed)
		}
	})
}

// TestBudget looks at much with little, and holds what that took against the budget.
func TestBudget(t *testing.T) {
	t.Parallel()
	v := coretest.NewView(t, make([]float32, 1<<22))
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	s := New(Options{Interval: time.Millisecond, Budget: 0.02, Looked: func() {
		if looks++; looks == 4 {
			cancel()
		}
	}})
	s.pace.Spend(time.Duration(s.pace.Limit() * float64(credit))) // so that there is none
	for i := range 200 {
		s.Add(array("x"+strconv.Itoa(i), of(v)))
	}
	if err := s.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	u := s.State().Usage
	if share := u.Looking.Seconds() / time.Since(u.Since).Seconds(); share > 0.05 {
		t.Errorf("looks took %v of a core", share)
	}
	if a := s.State().Arrays[0]; a.Last.Exact() || a.Last.Seen > a.Last.Len/4 {
		t.Errorf("looks at %d elements", a.Last.Seen)
	}
}

// TestWholeOverSamples looks at all elements of arrays for which the budget of a second pays, and not at samples that come more often.
func TestWholeOverSamples(t *testing.T) {
	t.Parallel()
	const arrays, size = 64, 1 << 18
	s := New(Options{Interval: time.Nanosecond, Budget: 1})
	for i := range arrays {
		s.Add(array("x"+strconv.Itoa(i), of(coretest.NewView(t, make([]float32, size)))))
	}
	rounds(t, s, 5, func(int) {})
	for _, a := range s.State().Arrays {
		if !a.Last.Exact() {
			t.Fatalf("%d of %d elements of %s are looked at", a.Last.Seen, size, a.Name)
		}
	}
}

// TestSmallArraysAreReadAsAWhole: a look at all elements of an array that a sample would hardly read in less time finds one NaN at once,
// whatever the budget.
func TestSmallArraysAreReadAsAWhole(t *testing.T) {
	t.Parallel()
	data := make([]float32, 1<<15)
	s := New(Options{Budget: 1e-9, Bins: stats.Auto})
	s.Add(array("x", of(coretest.NewView(t, data))))
	found := 0
	rounds(t, s, 100, func(i int) {
		if last := s.State().Arrays; i > 20 && last[0].Last.NaN > 0 {
			found++
		}
		data[777*i%len(data)] = float32(math.NaN())
		if i > 0 {
			data[777*(i-1)%len(data)] = 1
		}
	})
	if found < 60 {
		t.Errorf("%d of 79 looks have found it", found)
	}
}

// TestDelayedIsSaidAllTheTime has somebody wait for longer than what was spent is asked for.
func TestDelayedIsSaidAllTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPace(0.5, 0)
		part := p.Part()
		part.Spend(5 * time.Second) // five have passed, and five are to pass
		done := make(chan error, 1)
		go func() { done <- part.Wait(t.Context(), 0) }()
		for second, want := range []bool{true, true, true, true, true, true, false} {
			time.Sleep(990 * time.Millisecond)
			if got := p.Spent().Delayed; got != want {
				t.Errorf("second %d: delayed %v, want %v", second, got, want)
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
