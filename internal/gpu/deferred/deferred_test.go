package deferred_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/internal/gpu/deferred"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// word is waited for until it is written.
type word struct{ written atomic.Bool }

func (w *word) Waiting() bool { return !w.written.Load() }

func nothing() error { return nil }

// TestAtOnce: while no stream waits a call is made at once, and its error comes back.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	var c deferred.Calls
	w := new(word)
	if err := c.Await(w, nothing); err != nil {
		t.Fatal(err)
	}
	w.written.Store(true)
	want := errors.New("refused")
	if err := c.Make(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("Make = %v", err)
	}
}

// TestHeldBack: calls are held back while a stream waits, and made in their order.
func TestHeldBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c deferred.Calls
		first, second := new(word), new(word)
		for _, w := range []*word{first, second, first} {
			if err := c.Await(w, nothing); err != nil {
				t.Fatal(err)
			}
		}
		var made []int
		for i := range 3 {
			err := c.Make(func() error {
				made = append(made, i)
				return errors.New("nobody is told")
			})
			if err != nil {
				t.Error(err)
			}
		}
		first.written.Store(true)
		time.Sleep(time.Second)
		synctest.Wait()
		if len(made) > 0 {
			t.Fatalf("calls %v were made while a stream waited", made)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush = %v", err)
		}
		second.written.Store(true)
		if err := c.Flush(t.Context()); err != nil || !slices.Equal(made, []int{0, 1, 2}) {
			t.Errorf("Flush = %v, and calls %v were made", err, made)
		}
		time.Sleep(time.Second) // until nobody tries any more
	})
}

// TestDo: who needs what came of a call waits until it was made, or for as long as its context lasts; then
// it is not made, and those after it are.
func TestDo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c deferred.Calls
		refused, late := errors.New("refused"), errors.New("late")
		if err := c.Do(t.Context(), func() error { return refused }); !errors.Is(err, refused) {
			t.Errorf("Do = %v", err)
		}
		w := new(word)
		if err := c.Await(w, nothing); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, late)
		defer cancel()
		made := false
		for range 2 { // the second one's context has ended before
			if err := c.Do(ctx, func() error { made = true; return nil }); !errors.Is(err, late) {
				t.Errorf("Do = %v", err)
			}
		}
		done := make(chan error)
		go func() { done <- c.Do(t.Context(), func() error { return refused }) }()
		time.Sleep(time.Second)
		w.written.Store(true)
		if err := <-done; !errors.Is(err, refused) || made {
			t.Errorf("Do = %v, and the call that came too late was made: %v", err, made)
		}
		time.Sleep(time.Second) // until nobody tries any more
	})
}

// TestDoWhileMade: whose context ends while its call is being made is told what came of it.
func TestDoWhileMade(t *testing.T) {
	t.Parallel()
	var c deferred.Calls
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	want := errors.New("refused")
	err := c.Do(ctx, func() error { cancel(); return want })
	if !errors.Is(err, want) {
		t.Errorf("Do = %v", err)
	}
}

// TestWorking: work of streams holds a call back until it is done, or for a second.
func TestWorking(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c deferred.Calls
		short, long := new(word), new(word)
		for range 100 { // of which none is kept
			over := new(word)
			over.written.Store(true)
			c.Working(over)
		}
		c.Working(short)
		start, made := time.Now(), time.Duration(0)
		call := func() error { made = time.Since(start); return nil }
		if err := c.Make(call); err != nil || made != 0 {
			t.Errorf("Make = %v, and the call was made beside work", err)
		}
		time.Sleep(500 * time.Millisecond)
		short.written.Store(true)
		if err := c.Flush(t.Context()); err != nil || made < 500*time.Millisecond || made > 600*time.Millisecond {
			t.Errorf("Flush = %v, and the call was made after %v", err, made)
		}
		c.Working(long)
		start = time.Now()
		if err := errors.Join(c.Make(call), c.Flush(t.Context())); err != nil || made < time.Second || made > 1100*time.Millisecond {
			t.Errorf("Flush = %v, and beside work without an end the call was made after %v", err, made)
		}
		if c.Awaited(func(deferred.Waiter) bool { return true }) {
			t.Error("work is awaited")
		}
		time.Sleep(time.Second) // until nobody tries any more
	})
}

// TestFailedAwait: what no stream was told to wait for holds nothing back.
func TestFailedAwait(t *testing.T) {
	t.Parallel()
	var c deferred.Calls
	want := errors.New("refused")
	if err := c.Await(new(word), func() error { return want }); !errors.Is(err, want) {
		t.Errorf("Await = %v", err)
	}
	made := false
	if err := c.Make(func() error { made = true; return nil }); err != nil || !made {
		t.Errorf("Make = %v, and the call was made: %v", err, made)
	}
}

// TestAwaited: what streams wait for is told, as long as they do.
func TestAwaited(t *testing.T) {
	t.Parallel()
	var c deferred.Calls
	a, b := new(word), new(word)
	if err := errors.Join(c.Await(a, nothing), c.Await(b, nothing)); err != nil {
		t.Fatal(err)
	}
	is := func(w *word) func(deferred.Waiter) bool { return func(x deferred.Waiter) bool { return x == w } }
	a.written.Store(true)
	if c.Awaited(is(a)) || !c.Awaited(is(b)) {
		t.Errorf("awaited: the one that was written %v, the other %v", c.Awaited(is(a)), c.Awaited(is(b)))
	}
}

// TestNobodyIsKeptOut: who is in Await for long, as with a full stream, keeps others out neither of Await
// nor of Make, and no call is made meanwhile.
func TestNobodyIsKeptOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c deferred.Calls
		full, made := make(chan struct{}), false
		w := new(word)
		w.written.Store(true)
		var all sync.WaitGroup
		all.Go(func() {
			if err := c.Await(w, func() error { <-full; return nil }); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if err := c.Make(func() error { made = true; return nil }); err != nil {
			t.Error(err)
		}
		if err := c.Await(w, nothing); err != nil {
			t.Error(err)
		}
		if made {
			t.Error("a call was made while a stream was given something to wait for")
		}
		close(full)
		all.Wait()
		if err := c.Flush(t.Context()); err != nil || !made {
			t.Errorf("Flush = %v, and the call was made: %v", err, made)
		}
		time.Sleep(time.Second) // until nobody tries any more
	})
}

// TestAlwaysAwaited: calls are made though each stream is told to wait before the one before comes free.
func TestAlwaysAwaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c deferred.Calls
		var made atomic.Bool
		for n := 0; !made.Load(); n++ {
			w := new(word)
			if err := c.Await(w, nothing); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(15*time.Millisecond, func() { w.written.Store(true) })
			if n == 0 {
				if err := c.Make(func() error { made.Store(true); return nil }); err != nil {
					t.Fatal(err)
				}
			}
			if n > 1000 {
				t.Fatal("the call is never made")
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second) // until nobody tries any more
	})
}

// TestAwaitedForEver: beside a stream that waits on and on, others are not held up for long, nor often.
func TestAwaitedForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c deferred.Calls
		stuck := new(word)
		if err := errors.Join(c.Await(stuck, nothing), c.Make(nothing)); err != nil {
			t.Fatal(err)
		}
		w := new(word)
		w.written.Store(true)
		start, longest := time.Now(), time.Duration(0)
		const n = 60_000
		for range n {
			before := time.Now()
			if err := c.Await(w, nothing); err != nil {
				t.Fatal(err)
			}
			longest = max(longest, time.Since(before))
			time.Sleep(time.Millisecond)
		}
		if lost := time.Since(start) - n*time.Millisecond; longest > 51*time.Millisecond || lost > 500*time.Millisecond {
			t.Errorf("in a minute it took up to %v, and %v in all", longest, lost)
		}
		stuck.written.Store(true)
		if err := c.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second) // until nobody tries any more
	})
}

// TestHammer: no call is ever made while a stream waits, and all are made.
func TestHammer(t *testing.T) {
	t.Parallel()
	var c deferred.Calls
	var waiting, made atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				w := new(word)
				err := c.Await(w, func() error { waiting.Add(1); return nil })
				if err != nil {
					t.Error(err)
				}
				err = c.Make(func() error {
					if n := waiting.Load(); n > 0 {
						t.Errorf("a call beside %d that wait", n)
					}
					made.Add(1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				waiting.Add(-1)
				w.written.Store(true)
			}
		})
	}
	all.Wait()
	if err := c.Flush(t.Context()); err != nil || made.Load() != 8*500 {
		t.Errorf("Flush = %v after %d calls", err, made.Load())
	}
}
