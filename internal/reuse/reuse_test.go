package reuse_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/internal/reuse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// thing is open while it says so, and is slow to end.
type thing struct {
	entry *reuse.Entry[string, *thing]
	open  *atomic.Int32
}

func (t *thing) Size() int64 { return 1 }

func (t *thing) End() error {
	time.Sleep(time.Second)
	t.open.Add(-1)
	return nil
}

// TestOpenedAfterTheEnd: what is not kept is never open twice: who comes while it is being ended waits
// for that, but not beyond its context.
func TestOpenedAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := reuse.New[string, *thing](reuse.Limits{})
		var open atomic.Int32
		use := func(ctx context.Context) (*thing, error) {
			return c.Use(ctx, "key", 1, func(e *reuse.Entry[string, *thing]) (*thing, error) {
				if n := open.Add(1); n != 1 {
					t.Errorf("%d are open", n)
				}
				return &thing{e, &open}, nil
			})
		}
		first, err := use(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if err := first.entry.Release(); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait() // it is being ended
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := use(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Use with a context that ends = %v", err)
		}
		second, err := use(t.Context())
		if err != nil || second == first {
			t.Fatal(second, err)
		}
		if err := errors.Join(second.entry.Release(), c.Close()); err != nil || open.Load() != 0 {
			t.Errorf("%d are left, %v", open.Load(), err)
		}
	})
}

// counted is open until End, once.
type counted struct {
	entry *reuse.Entry[int, *counted]
	ends  atomic.Int32
	open  *atomic.Int32
}

func (c *counted) Size() int64 { return 1 }

func (c *counted) End() error {
	c.ends.Add(1)
	c.open.Add(-1)
	return nil
}

// opens makes counted things, and counts those that are open.
func opens(open *atomic.Int32) func(*reuse.Entry[int, *counted]) (*counted, error) {
	return func(e *reuse.Entry[int, *counted]) (*counted, error) {
		open.Add(1)
		return &counted{entry: e, open: open}, nil
	}
}

// TestHammer uses what is kept for a moment only, by its key and again by its entry: nothing is closed in
// use, or twice, or never.
func TestHammer(t *testing.T) {
	t.Parallel()
	for _, limits := range []reuse.Limits{
		{Time: 50 * time.Microsecond, Count: 2, Bytes: 2}, {Time: time.Hour, Count: 2, Bytes: 100}, {},
	} {
		c := reuse.New[int, *counted](limits)
		var open atomic.Int32
		var users sync.WaitGroup
		for range 4 {
			users.Go(func() {
				var last *counted
				for round := range 2000 {
					if last == nil || !last.entry.Use() {
						var err error
						last, err = c.Use(t.Context(), round/2%4, 1, opens(&open))
						if err != nil {
							t.Error(err)
							return
						}
					}
					if n := last.ends.Load(); n != 0 {
						t.Errorf("ended %d times in use", n)
					}
					if err := last.entry.Release(); err != nil {
						t.Error(err)
					}
					if round%8 == 0 {
						last = nil
					}
				}
			})
		}
		users.Wait()
		if err := c.Close(); err != nil || open.Load() != 0 {
			t.Errorf("%+v: %d are open after Close, %v", limits, open.Load(), err)
		}
	}
}

// TestUseAndReleaseMakeNoGarbage: of what is kept.
func TestUseAndReleaseMakeNoGarbage(t *testing.T) { //nolint:paralleltest // it counts allocations
	c := reuse.New[int, *counted](reuse.Limits{Time: time.Hour, Count: 1, Bytes: 1})
	var open atomic.Int32
	r, err := c.Use(t.Context(), 1, 1, opens(&open))
	if err != nil || r.entry.Release() != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if !r.entry.Use() || r.entry.Release() != nil {
			t.Fatal("it was closed")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := c.Close(); err != nil || open.Load() != 0 || r.entry.Use() {
		t.Errorf("%d are open after Close, %v", open.Load(), err)
	}
}

// TestOftenUsed: what is used again and again goes after its time too, or twice that.
func TestOftenUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := reuse.New[int, *counted](reuse.Limits{Time: time.Second, Count: 1, Bytes: 1})
		var open atomic.Int32
		r, err := c.Use(t.Context(), 1, 1, opens(&open))
		if err != nil || r.entry.Release() != nil {
			t.Fatal(err)
		}
		for range 100 {
			time.Sleep(99 * time.Millisecond)
			if !r.entry.Use() || r.entry.Release() != nil {
				t.Fatal("it was closed, and was never idle for its time")
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if open.Load() != 0 {
			t.Error("idle for ever")
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestCloseWaitsForEnds: what another goroutine closes already is closed when Close returns.
func TestCloseWaitsForEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int32
		c := reuse.New[string, *thing](reuse.Limits{Time: time.Minute, Count: 1, Bytes: 1})
		used, err := c.Use(t.Context(), "x", 1, func(e *reuse.Entry[string, *thing]) (*thing, error) {
			open.Add(1)
			return &thing{entry: e, open: &open}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := used.entry.Release(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute + time.Second/2) // it was due, and takes a second to end
		synctest.Wait()
		if err := c.Close(); err != nil || open.Load() != 0 {
			t.Errorf("Close = %v, and %d are open", err, open.Load())
		}
	})
}
