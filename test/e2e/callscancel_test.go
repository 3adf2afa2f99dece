package e2e

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

const cancelling = `
import asyncio, threading, remote
closed = []
def one(): return 1
def spawn():
    while True:
        t = threading.Thread(target=len, args=((),)); t.start(); t.join()
async def slow(t): await asyncio.sleep(t)
async def ignores(t):
    try: await asyncio.sleep(t)
    except asyncio.CancelledError: await asyncio.sleep(t)
    return "went on"
async def mine(): raise asyncio.CancelledError("mine")
async def tokens():
    try:
        for i in range(9): yield i
    finally:
        await asyncio.sleep(0.01); closed.append("tokens")
remote.serve()
`

// TestCancelledCallsLeaveAProgramWhole gives calls up at all moments: while a function makes threads, while a coroutine begins, runs or ends. Other
// calls go on, in every Python.
func TestCancelledCallsLeaveAProgramWhole(t *testing.T) {
	t.Parallel()
	eachPython(t, func(t *testing.T, python string) {
		t.Helper()
		run := harness.Start(t, cancelling, harness.Options{Python: python})
		one, slow, spawn := fn(t, run, "one"), fn(t, run, "slow"), fn(t, run, "spawn")
		for i := range 60 { // the first one begins the event loop
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%12)*time.Millisecond/4)
			_, err := slow.Call(ctx, 0.0025)
			cancel()
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		for i := range 30 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(5+i%9)*time.Millisecond)
			_, err := spawn.Call(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("an endless function gave %v", err)
			}
		}
		if got := value(t, one); got != int64(1) {
			t.Errorf("one() = %v", got)
		}
		if got := value(t, slow, 0); got != nil {
			t.Errorf("slow(0) = %v", got)
		}
		harness.Eventually(t, 30*time.Second, "no thread is left of those that were cancelled", func() bool {
			return harness.Eval[bool](t, run.Remote, "all(not t.name.startswith('Thread-') for t in threading.enumerate())")
		})
	})
}

// TestCoroutinesThatGoOn: a coroutine that goes on when it was cancelled is not said to be interrupted, and its own exceptions arrive whole.
func TestCoroutinesThatGoOn(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, cancelling, harness.Options{})
	ignores := fn(t, run, "ignores")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := ignores.Call(ctx, 30)
	if err == nil || !strings.Contains(err.Error(), "still runs") {
		t.Errorf("a coroutine that goes on: %v", err)
	}
	fails(t, fn(t, run, "mine"), core.ErrPython, "CancelledError: mine")
}

// TestAsyncGeneratorsAreClosed when the loop over them is left.
func TestAsyncGeneratorsAreClosed(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, cancelling, harness.Options{})
	for result, err := range fn(t, run, "tokens").Stream(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if err := result.Close(); err != nil {
			t.Error(err)
		}
		break
	}
	if got := harness.Eval[[]string](t, run.Remote, "closed"); !slices.Equal(got, []string{"tokens"}) {
		t.Errorf("the generators that have cleaned up are %q", got)
	}
}

// TestCallsOfWhatPythonHas finds functions of Python's own, and refuses what would arrive as nothing.
func TestCallsOfWhatPythonHas(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, cancelling, harness.Options{})
	if got := value(t, fn(t, run, "len"), []int{1, 2}); got != int64(2) {
		t.Errorf("len([1, 2]) = %v", got)
	}
	if got := value(t, fn(t, run, "str.upper"), "a"); got != "A" {
		t.Errorf("str.upper('a') = %v", got)
	}
	one := fn(t, run, "one")
	fails(t, one, core.ErrUnsupported, "arguments[0]: a time.Time cannot cross", time.Now())
	fails(t, one, core.ErrUnsupported, `arguments["when"][1]: a time.Time cannot cross`, hostplugin.Kw{"when": []any{1, time.Now()}})
	fails(t, one, core.ErrConfig, "comes behind all others", hostplugin.Kw{"a": 1}, 2)
	fails(t, one, core.ErrConfig, "pass it to Session.Func", 1, hostplugin.As("torch"))
}
