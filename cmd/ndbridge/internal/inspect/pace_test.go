package inspect

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ndbridge/ndbridge/core/coretest"
)

// burn uses a processor on a thread of its own until that has taken as long.
func burn(long time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with the goroutine
		taken := time.Duration(0)
		for begun := clocks(); taken < long; {
			taken = clocks().minus(begun).own
		}
	}()
	<-done
}

// TestFiguresPayForThemselves has the process do other things while figures are made: pictures wait for that, and figures do not.
func TestFiguresPayForThemselves(t *testing.T) {
	t.Parallel()
	const other, copied = 50 * time.Millisecond, 3 * time.Millisecond
	w := newReading(&hub{pace: newPace(1), figures: newPace(1), asks: newPace(1)}, "x")
	look := func() time.Duration {
		burn(other)
		return copied
	}
	w.count(look)
	if all := w.hub.pace.spent; all < other+copied {
		t.Errorf("%v were counted for all, of %v", all, other+copied)
	}
	if own := w.hub.figures.spent; own < copied || own > other {
		t.Errorf("%v were counted for figures, want what this thread took and the %v of the program", own, copied)
	}
	before := w.hub.figures.spent + w.hub.pace.spent
	w.asked = true
	w.count(look)
	if asks := w.hub.asks.spent; asks < other+copied || w.hub.figures.spent+w.hub.pace.spent != before {
		t.Errorf("what was asked for was counted as %v, and for others, too", asks)
	}
}

// TestAskedAtOnce has a page that asks for something wait neither until looks are paid for nor until the next one.
func TestAskedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		owed := time.Now().Add(time.Hour)
		w := newReading(&hub{pace: newPace(1), figures: newPace(1)}, "x")
		w.hub.figures.free = owed
		w.poke()
		begun := time.Now()
		if err := w.rest(t.Context()); err != nil || !w.asked || time.Since(begun) > 0 {
			t.Errorf("rested for %v; asked: %v, %v", time.Since(begun), w.asked, err)
		}
	})
}

// TestUnwanted neither sums up nor draws what no page looks at any more.
func TestUnwanted(t *testing.T) {
	t.Parallel()
	w := newReading(&hub{}, "x")
	w.view = coretest.NewView(t, []float64{1})
	left := &sight{of: w, look: look{Name: "x", Auto: true, Width: 1, Height: 1}}
	if !w.pictures(t.Context(), []*sight{left}) || left.latest[aboutPicture].bytes != nil {
		t.Error("a picture was drawn")
	}
	if _, asked := w.figures(t.Context(), []*sight{left}); asked || left.latest[aboutArray].bytes != nil {
		t.Error("figures were made")
	}
}

// TestRestIsPaidMeanwhile waits until a look is paid for, or for as long as looks are apart, and not for both.
func TestRestIsPaidMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ owed, apart, want time.Duration }{
		"owed":  {600 * time.Millisecond, slowest, 600 * time.Millisecond},
		"apart": {300 * time.Millisecond, slowest, slowest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newReading(&hub{pace: newPace(1), figures: newPace(1)}, "x")
				w.waiting = c.apart
				begun := time.Now()
				w.hub.figures.free = begun.Add(c.owed)
				if err := w.rest(t.Context()); err != nil {
					t.Fatal(err)
				}
				if rested := time.Since(begun); rested != c.want {
					t.Errorf("rested for %v, want %v", rested, c.want)
				}
			})
		})
	}
}

// TestCredit spends at once what was not spent in the last second, and no more than that.
func TestCredit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit, looks, took = 0.01, 5, 10 * time.Millisecond
		p := newPace(limit)
		time.Sleep(time.Hour)
		begun := time.Now()
		for i := range looks {
			time.Sleep(took)
			p.spend(took)
			if err := p.wait(t.Context(), 0); err != nil {
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
