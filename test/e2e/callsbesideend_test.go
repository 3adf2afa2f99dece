package e2e

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestCallsBesideTheEnd: whatever is asked for while the host closes the session, that is why it fails; and while the program dies likewise.
func TestCallsBesideTheEnd(t *testing.T) {
	t.Parallel()
	run := harness.RunAlone(t, `
import ndbridge, numpy as np, remote
print(ndbridge.listen(), flush=True)
lr = 0.5
def plain(): return lr
def long(): return "s" * 40000
def array(x): return x + 1
def counts():
    while True: yield np.full(1 << 15, 1.0)
remote.serve()
`, harness.RunningOptions{Heap: true})
	host := harness.NewHost(t)
	for range 3 {
		s := run.Attach(t, host)
		endBesideCalls(t, s, core.ErrClosed, s.Close)
	}
	endBesideCalls(t, run.Attach(t, host), core.ErrUnavailable, func() error { return syscall.Kill(run.PID, syscall.SIGKILL) })
}

// endBesideCalls ends a session while all that makes calls is done at once.
func endBesideCalls(t *testing.T, run *harness.Run, want error, end func() error) {
	t.Helper()
	var going, begun sync.WaitGroup
	for name, do := range callers(t, run) {
		for range 2 {
			begun.Add(1)
			going.Go(func() {
				err := do()
				begun.Done()
				for err == nil {
					err = do()
				}
				if !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", name, err, want)
				}
			})
		}
	}
	begun.Wait()
	if err := end(); err != nil {
		t.Error(err)
	}
	going.Wait()
}

// callers make calls of each kind.
func callers(t *testing.T, run *harness.Run) map[string]func() error {
	t.Helper()
	ctx := t.Context()
	plain, long, counts, double := fn(t, run, "plain"), fn(t, run, "long"), fn(t, run, "counts"), fn(t, run, "array")
	called := func(f *hostplugin.Func, args ...any) error {
		r, err := f.Call(ctx, args...)
		return errors.Join(err, r.Close())
	}
	return map[string]func() error{
		"Call":       func() error { return called(plain) },
		"Call, long": func() error { return called(long) },
		"Call, an array": func() error {
			v, err := run.New(core.Float64, 1<<15)
			if err != nil {
				return err
			}
			return errors.Join(called(double, v), v.Close())
		},
		"Stream": func() (err error) {
			n := 0
			for r, err := range counts.Stream(ctx) {
				if err = errors.Join(err, r.Close()); err != nil {
					return err
				}
				if n++; n == 3 {
					break
				}
			}
			return nil
		},
		"Value": func() error {
			r, err := run.Value(ctx, "lr")
			return errors.Join(err, r.Close())
		},
		"Set": func() error { return run.Set(ctx, "lr", 0.25) },
		"Set, an array": func() error {
			v, err := run.New(core.Float64, 1<<15)
			if err != nil {
				return err
			}
			return errors.Join(run.Set(ctx, "y", v), v.Close())
		},
		"Func": func() error {
			f, err := run.Func(ctx, "plain")
			if err != nil {
				return err
			}
			return f.Close()
		},
		"Handle": func() error {
			return run.Handle("told", func(context.Context, hostplugin.Args) (any, error) { return nil, nil })
		},
	}
}
