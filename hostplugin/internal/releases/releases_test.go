package releases

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ndbridge/ndbridge/core"
)

// recorder keeps what is given back, call by call. A call takes a second.
type recorder struct {
	mu    sync.Mutex
	calls [][]core.LeaseID
}

func (r *recorder) Release(ctx context.Context, ids ...core.LeaseID) error {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, slices.Clone(ids))
	return errors.New("nobody hears this")
}

func (r *recorder) sizes() (n []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ids := range r.calls {
		n = append(n, len(ids))
	}
	return n
}

func TestBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		q := New(&r)
		add := func(n int) {
			for id := range n {
				q.Add(core.LeaseID(id))
			}
		}
		add(3)
		synctest.Wait()
		if n := r.sizes(); n != nil {
			t.Errorf("calls of %d at once", n)
		}
		time.Sleep(delay + time.Millisecond)
		add(5) // while the first call is under way
		time.Sleep(3 * time.Second)
		if n := r.sizes(); !slices.Equal(n, []int{3, 5}) {
			t.Errorf("calls of %d, want 3 and then 5", n)
		}
		add(batch)
		synctest.Wait()
		time.Sleep(time.Second) // and no delay before it
		synctest.Wait()
		if n := r.sizes(); !slices.Equal(n, []int{3, 5, batch}) {
			t.Errorf("calls of %d, want a batch at once", n)
		}
		if !slices.Equal(r.calls[0], []core.LeaseID{0, 1, 2}) {
			t.Errorf("given back: %d", r.calls[0])
		}
		q.Close()
	})
}

func TestFlush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		q := New(&r)
		q.Add(1)
		time.Sleep(delay + time.Millisecond) // the call is under way
		q.Add(2)
		q.Flush(t.Context())
		if n := r.sizes(); !slices.Equal(n, []int{1, 1}) {
			t.Errorf("calls of %d, want both done", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		q.Add(3)
		begin := time.Now()
		q.Flush(ctx)
		if d := time.Since(begin); d != 10*time.Millisecond {
			t.Errorf("Flush took %v, its context 10ms", d)
		}
		q.Close()
	})
}

// TestFlushAwaitsTaken: it waits for what was taken before, though somebody gave up waiting for that, and not
// for what is taken meanwhile. What was taken in vain is given back with the rest.
func TestFlushAwaitsTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		q := New(&r)
		take := func() ([]core.LeaseID, int) {
			q.Add(7)
			return q.Take(make([]core.LeaseID, 0, 1))
		}
		first, turn := take()
		impatient, cancel := context.WithTimeout(t.Context(), time.Microsecond)
		defer cancel()
		q.Flush(impatient)
		second, next := take()
		if turn == next || !slices.Equal(first, []core.LeaseID{7}) || !slices.Equal(second, first) {
			t.Errorf("taken: %d in turn %d and %d in turn %d", first, turn, second, next)
		}
		q.Taken(second, next, true)
		q.Flush(t.Context())
		third, turn3 := take()
		if turn3 != turn {
			t.Errorf("turns %d and %d", turn, turn3)
		}
		var flushed atomic.Bool
		go func() {
			q.Flush(t.Context())
			flushed.Store(true)
		}()
		synctest.Wait()
		_, meanwhile := take()
		q.Taken(third, turn3, true)
		if synctest.Wait(); flushed.Load() || meanwhile == turn {
			t.Errorf("Flush did not wait, or turn %d is not new", meanwhile)
		}
		q.Taken(first, turn, false)
		time.Sleep(time.Second)
		if synctest.Wait(); !flushed.Load() || !slices.Equal(slices.Concat(r.calls...), first) {
			t.Errorf("Flush: %v; given back: %d", flushed.Load(), r.calls)
		}
		q.Close()
	})
}

// TestFlushBesideTaken: nobody waits in vain.
func TestFlushBesideTaken(t *testing.T) {
	t.Parallel()
	q := New(releaser{})
	defer q.Close()
	var all sync.WaitGroup
	var stop atomic.Bool
	for range 3 {
		all.Go(func() {
			for id := core.LeaseID(0); !stop.Load(); id++ {
				q.Add(id)
				ids, turn := q.Take(make([]core.LeaseID, 0, 4))
				q.Taken(ids, turn, id%5 != 0)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	for range 3000 {
		q.Flush(ctx)
	}
	stop.Store(true)
	all.Wait()
	if ctx.Err() != nil {
		t.Error("Flush waited for what was done")
	}
	q.awaitTaken(t.Context())
	if q.awaited.Load() || q.back != [2]chan struct{}{} {
		t.Errorf("somebody still waits: %v", q.back)
	}
}

// releaser gives everything back at once.
type releaser struct{}

func (releaser) Release(context.Context, ...core.LeaseID) error { return nil }

func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		q := New(&r)
		q.Add(1)
		q.Close()
		time.Sleep(time.Minute)
		if n := r.sizes(); n != nil {
			t.Errorf("calls of %d after Close", n)
		}
		q.Flush(t.Context()) // does what it says, also then
		if n := r.sizes(); !slices.Equal(n, []int{1}) {
			t.Errorf("calls of %d, want 1", n)
		}
	})
}
