package e2e

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestCallsEnd: how calls end that do not return a value.
func TestCallsEnd(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import os, sys, time, remote
def raises(x): raise ValueError("no: %d" % x)
def exits(): sys.exit(3)
def base(): raise BaseException("odd")
def sleeps(n):
    time.sleep(n)
caught = []
def spin():
    while True: pass
def spins():
    try:
        spin() # for in CPython 3.11 the jump back of a loop is outside of the try that the loop stands in
    except BaseException as e:
        caught.append(type(e).__name__)
        raise
def forks():
    if os.fork() == 0: return "the child must not come back"
    return "parent"
def starts():
    import multiprocessing, threading
    threading.current_thread() # makes an entry for this thread, as multiprocessing.Queue does
    child = multiprocessing.get_context("fork").Process(target=plain)
    child.start()
    child.join()
    return child.exitcode
def plain(): return 1
def sock():
    import socket
    return {"a": [1, socket]}
def itself():
    a = []; a.append(a)
    return a
number = 5
remote.serve()
`, harness.Options{Configs: []func(*hostplugin.Config){func(c *hostplugin.Config) { c.Programs[0].Workers = 2 }}})
	t.Run("errors", func(t *testing.T) { callErrors(t, run) })
	t.Run("contexts", func(t *testing.T) { callContexts(t, run) })
	if v := value(t, fn(t, run, "forks")); v != "parent" {
		t.Errorf("a function that forks gave %v", v)
	}
	if v := value(t, fn(t, run, "starts")); v != int64(0) {
		t.Errorf("a child of multiprocessing that a function starts ends with the status %v", v)
	}
	if v := value(t, fn(t, run, "plain")); v != int64(1) {
		t.Errorf("plain gave %v after all that", v)
	}
	run.NoLeases(t)
}

func callErrors(t *testing.T, run *harness.Run) {
	_, err := fn(t, run, "raises").Call(t.Context(), 7)
	if e, ok := errors.AsType[*core.PythonError](err); !ok || e.Type != "ValueError" || e.Message != "no: 7" || !strings.Contains(e.Traceback, "in raises") {
		t.Errorf("the exception came as %+v", err)
	}
	fails(t, fn(t, run, "raises"), core.ErrPython, "TypeError")
	fails(t, fn(t, run, "raises"), core.ErrPython, "unexpected keyword", hostplugin.Kw{"y": 1})
	fails(t, fn(t, run, "exits"), core.ErrPython, "SystemExit")
	fails(t, fn(t, run, "base"), core.ErrPython, "BaseException: odd")
	fails(t, fn(t, run, "raises"), core.ErrPython, "takes 1 positional argument but 2", 1, 2)
	fails(t, fn(t, run, "sock"), core.ErrUnsupported, `["a"][1]`)
	fails(t, fn(t, run, "itself"), core.ErrUnsupported, "")
	fails(t, fn(t, run, "plain"), core.ErrUnsupported, "chan", make(chan int))
	if _, err := run.Func(t.Context(), "number"); !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("Func of a number = %v, want ErrUnsupported", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := run.Func(ctx, "plian"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "plain") {
		t.Errorf("Func of what is not there = %v, want what was meant", err)
	}
	closed := fn(t, run, "plain")
	if err := errors.Join(closed.Close(), closed.Close()); err != nil {
		t.Error(err)
	}
	fails(t, closed, core.ErrClosed, "")
}

func callContexts(t *testing.T, run *harness.Run) {
	interrupted(t, run, "spins")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := fn(t, run, "sleeps").Call(ctx, 2); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "still runs") {
		t.Errorf("a function that sleeps, whose context ends: %v, want that it still runs", err)
	}
	if v := harness.Eval[string](t, run.Remote, "caught[0]"); v != "Cancelled" {
		t.Errorf("the function caught %s, want Cancelled", v)
	}
	if v := value(t, fn(t, run, "plain")); v != int64(1) {
		t.Errorf("beside a call that is stuck, plain gave %v", v)
	}
	busy := fn(t, run, "sleeps").Go(t.Context(), 0.5) // on the second worker, at least
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if _, err := fn(t, run, "plain").Call(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a call whose context has ended = %v", err)
	}
	if _, err := busy.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCallsOfProgramThatDies: all calls fail at once, and what views show stays.
func TestCallsOfProgramThatDies(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import os, time, numpy as np, remote
def make(): return np.full(1 << 15, 7.0)
def sleeps(): time.sleep(60)
def dies(): os._exit(3)
remote.serve()
`, harness.Options{})
	kept := call(t, fn(t, run, "make"))
	mine := array(t, run, core.Float64, 16)
	sleeping, dies := fn(t, run, "sleeps").Go(t.Context()), fn(t, run, "dies")
	fails(t, dies, core.ErrUnavailable, "status 3")
	if _, err := sleeping.Wait(t.Context()); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("a call of a program that has died = %v", err)
	}
	if x := slice[float64](t, kept.View())[5]; x != 7 {
		t.Errorf("the result of before shows %v", x)
	}
	slice[float64](t, mine)[0] = 1
	fails(t, dies, core.ErrUnavailable, "status 3", mine)
}

// TestCallsStream: values come one by one, and who leaves the loop closes the generator.
func TestCallsStream(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import asyncio, numpy as np, remote
closed = []
def counts(n):
    try:
        for i in range(n): yield np.full(3, i)
    finally:
        closed.append(n)
def fails():
    yield 1
    raise KeyError("two")
async def twice(x):
    await asyncio.sleep(0.01)
    return 2 * x
async def acounts(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i
remote.serve()
`, harness.Options{})
	sum := int64(0)
	for r, err := range fn(t, run, "counts").Stream(t.Context(), 10) {
		if err != nil {
			t.Fatal(err)
		}
		sum += slice[int64](t, r.View())[2]
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if sum == 6 {
			break
		}
	}
	if n := harness.Eval[int](t, run.Remote, "closed[0]"); n != 10 {
		t.Errorf("the generator was not closed: %d", n)
	}
	var seen []string
	for r, err := range fn(t, run, "fails").Stream(t.Context()) {
		if err != nil {
			seen = append(seen, err.Error())
			continue
		}
		seen = append(seen, "value")
		r.Close()
	}
	if len(seen) != 2 || !strings.Contains(seen[1], "KeyError") {
		t.Errorf("a generator that raises gave %q", seen)
	}
	if v := value(t, fn(t, run, "twice"), 21); v != int64(42) {
		t.Errorf("a coroutine function gave %v", v)
	}
	total := 0
	for r, err := range fn(t, run, "acounts").Stream(t.Context(), 5) {
		var n int
		if err = errors.Join(err, r.Decode(&n), r.Close()); err != nil {
			t.Fatal(err)
		}
		total += n
	}
	if total != 10 {
		t.Errorf("an asynchronous generator gave %d in all, want 10", total)
	}
	run.NoLeases(t)
}

// TestCallsAtOnce: many callers, few workers, all answers right, and nothing stays.
func TestCallsAtOnce(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import numpy as np, remote
def add(x, n): return [n, x + n, "s" * (n % 40000)]
remote.serve()
`, harness.Options{Configs: []func(*hostplugin.Config){func(c *hostplugin.Config) { c.Programs[0].Workers = 3 }}})
	add := fn(t, run, "add")
	pool, err := run.Pool(core.Float32, 20000)
	if err != nil {
		t.Fatal(err)
	}
	files := func() int {
		names, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	callMany(t, pool, add, 200)
	before := files()
	callMany(t, pool, add, 1000)
	if now := files(); now > before+16 { // what is mapped stays open for a while
		t.Errorf("%d descriptors, %d before", now, before)
	}
	run.NoLeases(t)
}

func callMany(t *testing.T, pool *hostplugin.Pool, add *hostplugin.Func, calls int) {
	t.Helper()
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() {
			for j := range calls / 16 {
				if err := callOne(t.Context(), pool, add, i*1000+j); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
}

func callOne(ctx context.Context, pool *hostplugin.Pool, add *hostplugin.Func, n int) error {
	v, err := pool.Get()
	if err != nil {
		return err
	}
	data, err := core.Slice[float32](v)
	if err != nil {
		return err
	}
	for i := range data {
		data[i] = float32(n)
	}
	r, err := add.Call(ctx, v, n)
	if err != nil {
		return errors.Join(err, v.Close())
	}
	var got []any
	if err := r.Decode(&got); err != nil {
		return err
	}
	sum, err := core.At[float32](r.Views()[0], 19999)
	if err != nil {
		return err
	}
	if text, ok := got[2].(string); !ok || got[0] != int64(n) || sum != float32(2*n) || len(text) != n%40000 {
		return errors.New("a call got another one's answer")
	}
	return errors.Join(r.Close(), v.Close())
}
