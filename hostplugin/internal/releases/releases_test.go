package releases

import (
	"context"
	"errors"
	"slices"
	"sync"
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
