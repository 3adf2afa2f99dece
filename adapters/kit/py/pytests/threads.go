package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
)

// shortly is for what must not happen: how long a test waits to see that it does not.
const shortly = 100 * time.Millisecond

// patience is for what must happen: only failures take so long.
const patience = 20 * time.Second

func (l *library) testEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := l.interp.Do(ctx, func(*py.GIL) error { t.Error("entered with an ended context"); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func (l *library) testBusyInterpreter(t *testing.T) {
	const busy = 500 * time.Millisecond
	inside := make(chan struct{})
	go func() {
		_ = l.interp.Do(t.Context(), func(*py.GIL) error {
			close(inside)
			time.Sleep(busy) // with the lock held
			return nil
		})
	}()
	<-inside
	ctx, cancel := context.WithTimeout(t.Context(), busy/10)
	defer cancel()
	var entered atomic.Bool
	start := time.Now()
	err := l.interp.Do(ctx, func(*py.GIL) error { entered.Store(true); return nil })
	if took := time.Since(start); took > busy*8/10 {
		t.Errorf("took %v, with a deadline of %v", took, busy/10)
	}
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "busy") {
		t.Errorf("error %v, want the deadline, and that the interpreter was busy", err)
	}
	// When the interpreter is free again, the function must not run after all.
	l.do(t, func(*python) {})
	time.Sleep(shortly)
	if entered.Load() {
		t.Error("a function ran whose caller had gone")
	}
}

// gate is something that calls can be made to wait at, in Python with the GIL given back.
func (l *library) gate(t *testing.T) (wait func(g *py.GIL) error, open func()) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	fd := int64(r.Fd())
	wait = func(g *py.GIL) error {
		n, err := g.NewInt(fd)
		if err != nil {
			return err
		}
		module, err := g.Import("os")
		if err != nil {
			return err
		}
		one, err := g.NewInt(1)
		if err != nil {
			return err
		}
		_, err = g.CallMethod(module, "read", []py.Object{n, one}, nil)
		return err
	}
	return wait, func() { _ = w.Close() }
}

func (l *library) testStuckCallsLeaveRoom(t *testing.T) {
	wait, open := l.gate(t)
	ctx, cancel := context.WithCancel(t.Context())
	var stuck, returned, freed sync.WaitGroup
	stuck.Add(1)
	freed.Add(1)
	returned.Go(func() {
		err := l.interp.Do(ctx, func(g *py.GIL) error {
			defer freed.Done()
			stuck.Done()
			return wait(g)
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the stuck call: %v", err)
		}
	})
	stuck.Wait()
	l.do(t, func(*python) {}) // others pass
	cancel()
	returned.Wait() // although the call is still stuck
	open()
	freed.Wait() // before the next test's gate has this one's descriptor
}

func (l *library) testThreadsAreBounded(t *testing.T) {
	const calls, limit = 50, 8
	wait, open := l.gate(t)
	var inside, most atomic.Int32
	var group sync.WaitGroup
	for range calls {
		group.Go(func() {
			err := l.interp.Do(t.Context(), func(g *py.GIL) error {
				most.Store(max(most.Load(), inside.Add(1)))
				defer inside.Add(-1)
				return wait(g)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	for end := time.Now().Add(patience); inside.Load() < limit && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(shortly)
	if n := inside.Load(); n != limit {
		t.Errorf("%d calls inside, want %d", n, limit)
	}
	// With every thread taken, a further call still obeys its context.
	ctx, cancel := context.WithTimeout(t.Context(), shortly)
	defer cancel()
	if err := l.interp.Do(ctx, func(*py.GIL) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the deadline", err)
	}
	open()
	group.Wait()
	if most.Load() > limit {
		t.Errorf("%d threads at once", most.Load())
	}
}

func (l *library) testCommit(t *testing.T) {
	for name, test := range map[string]struct {
		leave bool // the caller leaves before the function commits
	}{"stays": {}, "leaves": {leave: true}} {
		t.Run(name, func(t *testing.T) {
			wait, open := l.gate(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var inside, after sync.WaitGroup
			inside.Add(1)
			after.Add(1)
			committed := false // read once after is done
			result := make(chan error, 1)
			go func() {
				result <- l.interp.Do(ctx, func(g *py.GIL) error {
					defer after.Done()
					if !test.leave {
						first, second := g.Commit(), g.Commit()
						committed = first && second
					}
					inside.Done()
					if err := wait(g); err != nil {
						return err
					}
					if test.leave {
						first, second := g.Commit(), g.Commit()
						committed = first || second
					}
					return nil
				})
			}()
			inside.Wait()
			cancel()
			var err error
			if test.leave {
				err = <-result
				open()
			} else {
				select {
				case err := <-result:
					t.Errorf("the caller left a committed call: %v", err)
				case <-time.After(shortly):
				}
				open()
				err = <-result
			}
			after.Wait()
			if committed == test.leave || errors.Is(err, context.Canceled) != test.leave {
				t.Errorf("committed %t, error %v", committed, err)
			}
		})
	}
}

func (l *library) testUnlocked(t *testing.T) {
	l.do(t, func(p *python) {
		o := p.eval("['kept']")
		p.Unlocked(func() {
			l.do(t, func(*python) {}) // gets in
		})
		if got, err := p.Repr(o); got != "['kept']" || err != nil {
			t.Errorf("after Unlocked: %s, %v", got, err)
		}
	})
}

// testConcurrent mixes calls that end, fail, wait and give up.
func (l *library) testConcurrent(t *testing.T) {
	var group sync.WaitGroup
	for i := range 32 {
		group.Go(func() {
			for j := range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*j%7)*50*time.Microsecond)
				err := l.interp.Do(ctx, func(g *py.GIL) error {
					if _, err := g.Import("no_such_module"); !errors.Is(err, core.ErrPython) {
						return err
					}
					if j%3 == 0 {
						g.Unlocked(func() { time.Sleep(time.Microsecond) })
					}
					_, err := g.NewTuple(g.None())
					return err
				})
				cancel()
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}
