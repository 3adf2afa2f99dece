package inspect

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ndbridge/ndbridge/core/coretest"
	"github.com/ndbridge/ndbridge/internal/watch"
)

// hubOf gives a hub that may take all of one core, and a part of it for figures.
func hubOf(figures float64) *hub {
	return &hub{pace: watch.NewPace(1, credit), figures: watch.NewPace(figures, credit), asks: watch.NewPace(1, credit), fine: watch.NewPace(1, credit)}
}

// burn uses a processor on a thread of its own until that has taken as long.
func burn(long time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with the goroutine
		taken := time.Duration(0)
		for begun := watch.Clock(unix.CLOCK_THREAD_CPUTIME_ID); taken < long; {
			taken = watch.Clock(unix.CLOCK_THREAD_CPUTIME_ID) - begun
		}
	}()
	<-done
}

// TestFiguresPayForThemselves has the process do other things while figures are made: pictures wait for that, and figures do not.
func TestFiguresPayForThemselves(t *testing.T) {
	t.Parallel()
	const other, copied = 50 * time.Millisecond, 3 * time.Millisecond
	w := newReading(hubOf(1), "x")
	look := func() time.Duration {
		burn(other)
		return copied
	}
	w.count(look)
	if all := w.hub.pace.Spent().Time; all < other+copied {
		t.Errorf("%v were counted for all, of %v", all, other+copied)
	}
	if own := w.hub.figures.Spent().Time; own < copied || own > other {
		t.Errorf("%v were counted for figures, want what this thread took and the %v of the program", own, copied)
	}
	w.asked = true
	w.count(look)
	if asks := w.hub.asks.Spent().Time; asks < other+copied || w.hub.figures.Spent().Time+w.hub.pace.Spent().Time > 0 {
		t.Errorf("what was asked for was counted as %v, and for others, too", asks)
	}
}

// TestAskedAtOnce has a page that asks for something wait neither until looks are paid for nor until the next one.
func TestAskedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newReading(hubOf(0.5), "x")
		w.soon.Spend(time.Hour)
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
	w := newReading(hubOf(1), "x")
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
				w := newReading(hubOf(0.5), "x")
				w.waiting = c.apart
				begun := time.Now()
				w.soon.Spend(credit + c.owed) // half of it while it is read
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

// TestTimeIsDivided has several readings look at once: what the process takes meanwhile is counted once, and for all of them.
func TestTimeIsDivided(t *testing.T) {
	t.Parallel()
	const readings, each = 8, 30 * time.Millisecond
	h := hubOf(1)
	before := watch.Clock(unix.CLOCK_PROCESS_CPUTIME_ID)
	var all sync.WaitGroup
	for range readings {
		w := newReading(h, "x")
		all.Go(func() {
			w.count(func() time.Duration {
				burn(each)
				return 0
			})
		})
	}
	all.Wait()
	taken := watch.Clock(unix.CLOCK_PROCESS_CPUTIME_ID) - before
	if counted := h.pace.Spent().Time; counted < readings*each || counted > taken {
		t.Errorf("%v were counted for %d looks of %v each, beside which the process has taken %v", counted, readings, each, taken)
	}
}
