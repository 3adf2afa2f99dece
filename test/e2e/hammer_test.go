package e2e

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// hammerScript makes, drops, replaces and publishes arrays without pause, while its own threads
// compute. Every array is filled with one value, so that a torn or reused block shows.
const hammerScript = `
import gc, random, threading
import numpy as np, ndbridge, remote

slots = {}
stop = False

def turnover(seed):
    rng = random.Random(seed)
    while not stop:
        key = "k%d" % rng.randrange(8)
        size = rng.choice([16, 1 << 13, 1 << 15, 1 << 17])
        slots[key] = np.full(size, float(rng.randrange(1, 1000)))
        if rng.random() < 0.1: ndbridge.publish("latest", np.full(1 << 14, 7.0))
        if rng.random() < 0.01: gc.collect()

for seed in range(3):
    threading.Thread(target=turnover, args=(seed,), daemon=True).start()
remote.serve()
`

// TestHammer takes, derives from, reads and closes views from many goroutines of two sessions, while
// the programs' threads replace the arrays. A view's memory must hold one value throughout: what
// Python filled it with before it could be leased.
func TestHammer(t *testing.T) {
	t.Parallel()
	duration := 10 * time.Second
	if testing.Short() {
		duration = time.Second
	}
	runs := []*harness.Run{
		harness.Start(t, hammerScript, harness.Options{}),
		harness.Start(t, hammerScript, harness.Options{}),
	}
	for _, run := range runs {
		becomesTrue(t, run, "len(slots) == 8")
	}
	// Not a deadline, which the program's side may find passed a little earlier.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	defer time.AfterFunc(duration, cancel).Stop()
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() { hammer(ctx, t, runs[worker%len(runs)], rand.New(rand.NewPCG(1, uint64(worker)))) })
	}
	wg.Wait()
	for _, run := range runs {
		run.Remote.Exec(t, "stop = True")
		run.NoLeases(t)
	}
}

func hammer(ctx context.Context, t *testing.T, run *harness.Run, rng *rand.Rand) {
	views := 0
	for ctx.Err() == nil {
		name := "latest"
		if n := rng.IntN(9); n < 8 {
			name = "slots['k" + itoa(n) + "']"
		}
		var opts []hostplugin.ViewOption
		if rng.IntN(4) == 0 {
			opts = append(opts, hostplugin.NoCopy())
		}
		view, err := run.Session.View(ctx, name, opts...)
		if err != nil && (ctx.Err() != nil || errors.Is(err, core.ErrNotShared)) {
			continue
		}
		if err != nil {
			t.Errorf("view %s: %v", name, err)
			return
		}
		if err := oneValue(view, rng); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := view.Close(); err != nil {
			t.Errorf("close %s: %v", name, err)
		}
		views++
	}
	if views == 0 {
		t.Error("a worker saw no view at all")
	}
}

// oneValue reads a view, then a part of it that outlives it.
func oneValue(view *core.View, rng *rand.Rand) error {
	data, err := core.Slice[float64](view)
	if err != nil {
		return err
	}
	want := data[0]
	for _, x := range data {
		if x != want {
			return errors.New("holds more than one value")
		}
	}
	at := rng.IntN(view.Len())
	part, err := view.Sub(0, at, at+1)
	if err != nil {
		return err
	}
	if err := view.Close(); err != nil {
		return err
	}
	x, err := core.At[float64](part, 0)
	if err == nil && x != want {
		err = errors.New("a part holds another value than the whole")
	}
	return errors.Join(err, part.Close())
}

// TestCloseBesideCalls closes a session while many goroutines use it: each call ends, with a view or
// with ErrClosed or ErrUnavailable.
func TestCloseBesideCalls(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, twoArrays, harness.Options{})
	var wg sync.WaitGroup
	begun := make(chan struct{}, 16)
	for range 8 {
		wg.Go(func() {
			for first := true; ; first = false {
				view, err := run.Session.View(t.Context(), "a")
				if first {
					begun <- struct{}{}
				}
				if err != nil {
					if !errors.Is(err, core.ErrClosed) && !errors.Is(err, core.ErrUnavailable) {
						t.Errorf("a view beside Close: %v", err)
					}
					return
				}
				if _, err := core.At[float64](view, 0); err != nil && !errors.Is(err, core.ErrClosed) {
					t.Errorf("a read beside Close: %v", err)
				}
				if err := view.Close(); err != nil {
					t.Errorf("a close beside Close: %v", err)
				}
			}
		})
	}
	for range 8 {
		<-begun
	}
	for range 2 {
		wg.Go(func() {
			if err := run.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
	wg.Wait()
}
