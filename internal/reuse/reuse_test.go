package reuse_test

import (
	"context"
	"errors"
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
