package e2e

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// batchCall is a call that is under way.
type batchCall struct {
	done   chan struct{}
	result hostplugin.Result
	err    error
}

func begin(ctx context.Context, b *hostplugin.Batch, fill func(*core.View) error) *batchCall {
	c := &batchCall{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.result, c.err = b.Call(ctx, fill)
	}()
	return c
}

// has waits for a result whose first number is n, and closes it.
func (c *batchCall) has(t *testing.T, n float32) {
	t.Helper()
	<-c.done
	if c.err != nil {
		t.Errorf("the caller with %v got %v", n, c.err)
		return
	}
	if got := slice[float32](t, c.result.View())[0]; got != n {
		t.Errorf("the caller with %v got %v", n, got)
	}
	if err := c.result.Close(); err != nil {
		t.Error(err)
	}
}

// fails waits for an error.
func (c *batchCall) fails(t *testing.T, category error, says string) {
	t.Helper()
	<-c.done
	if c.result != (hostplugin.Result{}) || !errors.Is(c.err, category) || !strings.Contains(c.err.Error(), says) {
		t.Errorf("a caller got %v and the error %v, want %v: %s", c.result, c.err, category, says)
	}
}

// stuck begins a call whose row is filled with n when release is called.
func stuck(ctx context.Context, b *hostplugin.Batch, n float32, err error) (c *batchCall, release func()) {
	got, free := make(chan struct{}), make(chan struct{})
	c = begin(ctx, b, func(row *core.View) error {
		close(got)
		<-free
		return errors.Join(number(n)(row), err)
	})
	<-got
	return c, func() { close(free) }
}

// queued waits until that many callers wait for a row.
func queued(t *testing.T, b *hostplugin.Batch, n int) {
	t.Helper()
	for deadline := time.Now().Add(harness.StartBound); b.Stats().Waiting != n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d callers wait, want %d", b.Stats().Waiting, n)
		}
	}
}

// sawBatches tells what the function has seen of each batch, and forgets it.
func sawBatches(t *testing.T, run *harness.Run) (seen [][]float64) {
	t.Helper()
	r, err := run.Value(t.Context(), "seen")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Decode(&seen), r.Close(), run.Set(t.Context(), "seen", []any{})); err != nil {
		t.Fatal(err)
	}
	return seen
}

// TestBatchesGoWithoutThoseWhoGiveUp: at each moment at which a caller can give up, the others get their answers, and the
// function sees rows that were filled and no others.
func TestBatchesGoWithoutThoseWhoGiveUp(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, batchModel, harness.Options{})
	t.Run("fills with an error", func(t *testing.T) {
		b := batch(t, fn(t, run, "look"), hostplugin.BatchOptions{Max: 3, Wait: long})
		odd := errors.New("odd")
		first, release := stuck(t.Context(), b, 9, odd)
		last, releaseLast := stuck(t.Context(), b, 2, nil)
		other, releaseOther := stuck(t.Context(), b, 1, nil) // now the batch is full
		release()
		releaseLast()
		releaseOther()
		first.fails(t, odd, "odd")
		last.has(t, 2)
		other.has(t, 1)
		if seen := sawBatches(t, run); !reflect.DeepEqual(seen, [][]float64{{2, 1}}) {
			t.Errorf("the function saw %v", seen)
		}
	})
	t.Run("panics", func(t *testing.T) {
		b := batch(t, fn(t, run, "look"), hostplugin.BatchOptions{Max: 2, Wait: long})
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic of fill was swallowed")
				}
			}()
			_, _ = b.Call(t.Context(), func(*core.View) error { panic("odd") })
		}()
		x, y := begin(t.Context(), b, number(1)), begin(t.Context(), b, number(2))
		x.has(t, 1)
		y.has(t, 2)
		if seen := sawBatches(t, run); len(seen) != 1 || len(seen[0]) != 2 {
			t.Errorf("the function saw %v", seen)
		}
	})
	t.Run("still writes", func(t *testing.T) {
		b := batch(t, fn(t, run, "look"), hostplugin.BatchOptions{Max: 3, Wait: long})
		ctx, cancel := context.WithCancel(t.Context())
		late, release := stuck(ctx, b, 9, nil)
		x, y := begin(t.Context(), b, number(1)), begin(t.Context(), b, number(2))
		cancel()
		x.has(t, 1)
		y.has(t, 2)
		again := begin(t.Context(), b, number(3))
		release()
		late.fails(t, context.Canceled, "not filled")
		more := begin(t.Context(), b, number(4))
		begin(t.Context(), b, number(5)).has(t, 5)
		again.has(t, 3)
		more.has(t, 4)
		seen := sawBatches(t, run)
		if len(seen) != 2 || len(seen[0]) != 2 || seen[0][0]+seen[0][1] != 3 || len(seen[1]) != 3 {
			t.Errorf("the function saw %v", seen)
		}
		if s := b.Stats(); s.GaveUp != 1 || s.Calls != 5 || s.Failed != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("waits for others", func(t *testing.T) {
		b := batch(t, fn(t, run, "look"), hostplugin.BatchOptions{Max: 2, Wait: long})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		begin(ctx, b, number(9)).fails(t, context.DeadlineExceeded, "")
		x, y := begin(t.Context(), b, number(1)), begin(t.Context(), b, number(2))
		x.has(t, 1)
		y.has(t, 2)
		if seen := sawBatches(t, run); len(seen) != 1 || len(seen[0]) != 2 || seen[0][0]+seen[0][1] != 3 {
			t.Errorf("the function saw %v", seen)
		}
	})
	t.Run("runs", func(t *testing.T) { batchRuns(t, run) })
	t.Run("queues", func(t *testing.T) { batchQueues(t, run) })
	run.NoLeases(t)
}

// batchRuns: callers go while the function runs.
func batchRuns(t *testing.T, run *harness.Run) {
	b := batch(t, fn(t, run, "blocked"), hostplugin.BatchOptions{Max: 2, Wait: long})
	waits, opened, closed := fn(t, run, "waits"), fn(t, run, "opened"), fn(t, run, "closed")
	ctx, cancel := context.WithCancelCause(t.Context())
	x, y := begin(ctx, b, number(1)), begin(t.Context(), b, number(2))
	call(t, waits)
	odd := errors.New("odd")
	cancel(odd)
	x.fails(t, context.Canceled, "goes on for the others")
	if !errors.Is(x.err, odd) {
		t.Errorf("%v does not wrap the cause", x.err)
	}
	call(t, opened)
	y.has(t, 2)
	call(t, closed)
	both, gone := context.WithCancel(t.Context())
	x, y = begin(both, b, number(1)), begin(both, b, number(2))
	call(t, waits)
	gone()
	x.fails(t, context.Canceled, "the function")
	y.fails(t, context.Canceled, "the function")
	if err := b.Close(); err != nil { // waits for the end of the call
		t.Error(err)
	}
	if v := harness.Eval[string](t, run.Remote, "interrupted[0]"); v != "Cancelled" {
		t.Errorf("the function caught %s, want Cancelled", v)
	}
	if s := b.Stats(); s.GaveUp != 3 || s.Batches != 2 || s.Failed != 1 {
		t.Errorf("%+v", s)
	}
	sawBatches(t, run)
	call(t, closed)
}

// batchQueues: callers without a row are served in their order, and can go.
func batchQueues(t *testing.T, run *harness.Run) {
	b := batch(t, fn(t, run, "blocked"), hostplugin.BatchOptions{Max: 1, Batches: 1})
	calls := []*batchCall{begin(t.Context(), b, number(0))}
	call(t, fn(t, run, "waits"))
	ctx, cancel := context.WithCancel(t.Context())
	leaves := begin(ctx, b, number(9))
	queued(t, b, 1)
	for i := range 5 {
		calls = append(calls, begin(t.Context(), b, number(float32(i+1))))
		queued(t, b, i+2)
	}
	cancel()
	leaves.fails(t, context.Canceled, "no row of a batch yet")
	begin(ctx, b, number(9)).fails(t, context.Canceled, "no row of a batch yet")
	call(t, fn(t, run, "opened"))
	for i, c := range calls {
		c.has(t, float32(i))
	}
	if seen := sawBatches(t, run); !reflect.DeepEqual(seen, [][]float64{{0}, {1}, {2}, {3}, {4}, {5}}) {
		t.Errorf("the function saw %v", seen)
	}
}

// TestBatchesClose: what has a row comes to its end, and nothing else does.
func TestBatchesClose(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, batchModel, harness.Options{})
	b := batch(t, fn(t, run, "blocked"), hostplugin.BatchOptions{Max: 1, Batches: 1})
	running := begin(t.Context(), b, number(1))
	call(t, fn(t, run, "waits"))
	waiting := begin(t.Context(), b, number(2))
	queued(t, b, 1)
	closed := make(chan error)
	go func() { closed <- b.Close() }()
	waiting.fails(t, core.ErrClosed, "blocked")
	begin(t.Context(), b, number(2)).fails(t, core.ErrClosed, "blocked")
	select {
	case err := <-closed:
		t.Errorf("Close did not wait for the function: %v", err)
	default:
	}
	call(t, fn(t, run, "opened"))
	running.has(t, 1)
	if err := errors.Join(<-closed, b.Close()); err != nil {
		t.Error(err)
	}
	b = batch(t, fn(t, run, "look"), hostplugin.BatchOptions{Wait: long})
	filled, release := stuck(t.Context(), b, 5, nil)
	go func() { closed <- b.Close() }()
	release()
	filled.has(t, 5) // and does not wait for more
	if err := <-closed; err != nil {
		t.Error(err)
	}
	b = batch(t, fn(t, run, "dies"), hostplugin.BatchOptions{Max: 2, Wait: long})
	_, errs := inOneBatch(t, b, 2)
	for _, err := range errs {
		wantCategory(t, err, core.ErrUnavailable)
	}
	late, release := stuck(t.Context(), b, 5, nil)
	if err := run.Close(); err != nil && !errors.Is(err, core.ErrUnavailable) {
		t.Error(err)
	}
	go func() { closed <- b.Close() }()
	release()
	late.fails(t, core.ErrClosed, "")
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
