package leases

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ndbridge/ndbridge/core/contract"
)

// recorder keeps what is given back, call by call. A call takes a second.
type recorder struct {
	mu    sync.Mutex
	calls [][]contract.LeaseID
}

func (r *recorder) giveBack(ctx context.Context, ids []contract.LeaseID) bool {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, slices.Clone(ids))
	return true
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
		q := newReleases(r.giveBack)
		add := func(n int) {
			for id := range n {
				q.add(contract.LeaseID(id))
			}
		}
		add(3)
		synctest.Wait()
		if n := r.sizes(); n != nil {
			t.Errorf("calls of %d at once", n)
		}
		time.Sleep(releaseDelay + time.Millisecond)
		add(5) // while the first call is under way
		time.Sleep(3 * time.Second)
		if n := r.sizes(); !slices.Equal(n, []int{3, 5}) {
			t.Errorf("calls of %d, want 3 and then 5", n)
		}
		add(releaseBatch)
		synctest.Wait()
		time.Sleep(time.Second) // and no delay before it
		synctest.Wait()
		if n := r.sizes(); !slices.Equal(n, []int{3, 5, releaseBatch}) {
			t.Errorf("calls of %d, want a batch at once", n)
		}
		if !slices.Equal(r.calls[0], []contract.LeaseID{0, 1, 2}) {
			t.Errorf("given back: %d", r.calls[0])
		}
		q.close()
	})
}

// TestFlush waits for the call that is under way, and for what is pending, but no longer than its context.
func TestFlush(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		q := newReleases(r.giveBack)
		q.add(1)
		time.Sleep(releaseDelay + time.Millisecond) // the call is under way
		q.add(2)
		q.flush(t.Context())
		if n := r.sizes(); !slices.Equal(n, []int{1, 1}) {
			t.Errorf("calls of %d, want both done", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		q.add(3)
		begin := time.Now()
		q.flush(ctx)
		if d := time.Since(begin); d != 10*time.Millisecond {
			t.Errorf("flush took %v, its context 10ms", d)
		}
		q.close()
	})
}

// TestCloseOfReleases: nothing is given back after it, but by who asks for it.
func TestCloseOfReleases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		q := newReleases(r.giveBack)
		q.add(1)
		q.close()
		time.Sleep(time.Minute)
		if n := r.sizes(); n != nil {
			t.Errorf("calls of %d after close", n)
		}
		q.flush(t.Context())
		if n := r.sizes(); !slices.Equal(n, []int{1}) {
			t.Errorf("calls of %d, want 1", n)
		}
	})
}

// TestStoppedProgram: what a program cannot be told for a long time it is told when it goes on, once and in order, however
// many calls end meanwhile, and whoever made them.
func TestStoppedProgram(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r recorder
		var stopped atomic.Bool
		stopped.Store(true)
		q := newReleases(func(ctx context.Context, ids []contract.LeaseID) bool {
			if stopped.Load() {
				<-ctx.Done()
				return false
			}
			return r.giveBack(ctx, ids)
		})
		q.add(1)
		time.Sleep(7 * time.Second) // in the second call
		q.add(2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		q.flush(ctx) // cannot even begin
		time.Sleep(time.Hour)
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		q.flush(ctx)
		stopped.Store(false)
		time.Sleep(releaseTimeout + 2*time.Second)
		q.close()
		if len(r.calls) != 1 || !slices.Equal(r.calls[0], []contract.LeaseID{1, 2}) {
			t.Errorf("given back: %d, want 1 and 2 at once", r.calls)
		}
	})
}

// TestTakeAfterTheCallUnderWay waits for the call that is under way, for a moment.
func TestTakeAfterTheCallUnderWay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		takes time.Duration
		done  int32
	}{{releaseSoon / 2, 2}, {2 * releaseSoon, 0}} {
		synctest.Test(t, func(t *testing.T) {
			var done atomic.Int32
			q := newReleases(func(_ context.Context, ids []contract.LeaseID) bool {
				time.Sleep(tt.takes)
				done.Add(int32(len(ids))) //nolint:gosec // there are two
				return true
			})
			q.add(1)
			q.add(2)
			time.Sleep(releaseDelay + time.Millisecond) // and now they are told
			q.add(3)
			begun := time.Now()
			if ids := q.take(nil, 10); !slices.Equal(ids, []contract.LeaseID{3}) || done.Load() != tt.done {
				t.Errorf("a call of %v: %v, after %d were given back", tt.takes, ids, done.Load())
			}
			if waited := time.Since(begun); waited > releaseSoon {
				t.Errorf("a call of %v was waited for %v", tt.takes, waited)
			}
			q.close()
		})
	}
}
