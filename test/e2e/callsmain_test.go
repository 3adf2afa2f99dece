package e2e

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// serves is a program that serves calls on its main thread, and again after each KeyboardInterrupt.
const serves = `
import gc, os, signal, sys, threading, time, numpy as np, ndbridge, remote
begun, handled, ran = [], [], []
def on_main(): return threading.current_thread() is threading.main_thread()
class Thing:
    def __setattr__(self, name, value): object.__setattr__(self, name, [value, on_main()])
thing = Thing()
def collects(): return gc.isenabled()
def double(x): return x * 2
def spin():
    while True: pass
def spins():
    begun.append(1)
    spin()
def sleeps(n): begun.append(1); time.sleep(n)
def runs(x): ran.append(x)
def counts(n):
    try:
        for i in range(n): yield on_main()
    finally:
        closed.append(on_main())
closed = []
async def coroutine(x): return x + 1
def raises(x): raise x
def exits(): sys.exit(3)
def nested():
    try: ndbridge.serve()
    except RuntimeError as e: return str(e)
def forks():
    if os.fork() == 0: return "the child must not come back"
    return "parent"
signal.signal(signal.SIGUSR1, lambda *a: handled.append(on_main()))
def elsewhere():
    try: ndbridge.serve()
    except RuntimeError as e: handled.append(str(e))
other = threading.Thread(target=elsewhere); other.start(); other.join()
remote.start()
while True:
    try:
        ndbridge.serve()
        break
    except KeyboardInterrupt:
        handled.append("interrupted")
        time.sleep(0.5) # meanwhile calls run on workers
print("the last line", flush=True)
`

// TestCallsOnTheMainThread: while the program serves, calls run there, one at a time.
func TestCallsOnTheMainThread(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, serves, patient())
	if v := harness.Eval[string](t, run.Remote, "handled.pop()"); !strings.Contains(v, "main thread") {
		t.Errorf("serve on another thread: %q", v)
	}
	onMain := fn(t, run, "on_main")
	harness.Eventually(t, harness.StartBound, "the program serves", func() bool { return value(t, onMain) == true })
	x := array(t, run, core.Float64, 3)
	slice[float64](t, x)[1] = 4
	twice := call(t, fn(t, run, "double"), x)
	if y := slice[float64](t, twice.View()); y[1] != 8 {
		t.Errorf("twice 4 is %v", y)
	}
	twice.Close()
	if v := value(t, fn(t, run, "coroutine"), 1); v != int64(2) {
		t.Errorf("a coroutine function gave %v", v)
	}
	if err := run.Set(t.Context(), "thing.x", 5); err != nil {
		t.Fatal(err)
	}
	if !harness.Eval[bool](t, run.Remote, "thing.x == [5, True]") {
		t.Error("an attribute was not set on the main thread")
	}
	for r, err := range fn(t, run, "counts").Stream(t.Context(), 3) {
		if err != nil {
			t.Fatal(err)
		}
		if v, err := r.Value(); v != true || err != nil {
			t.Errorf("a generator ran elsewhere: %v, %v", v, err)
		}
		break
	}
	if !harness.Eval[bool](t, run.Remote, "closed == [True]") {
		t.Error("a generator was closed elsewhere")
	}
	if v, ok := value(t, fn(t, run, "nested")).(string); !ok || !strings.Contains(v, "already") {
		t.Errorf("serve within a call: %v", v)
	}
	if v := value(t, fn(t, run, "forks")); v != "parent" {
		t.Errorf("a function that forks gave %v", v)
	}
	fails(t, fn(t, run, "raises"), core.ErrPython, "TypeError", 5)
	if value(t, fn(t, run, "collects")) != true {
		t.Error("Python's garbage collector was left off")
	}
	mainCancels(t, run)
	run.NoLeases(t)
	if err := run.Close(); err != nil {
		t.Error(err)
	}
	if status, signal, err := run.ExitStatus(t.Context()); err != nil || status != 0 || signal != 0 {
		t.Errorf("the program ended with status %d, signal %v, %v", status, signal, err)
	}
	if text := run.Log.Text(); !strings.Contains(text, "the last line") || strings.Contains(text, "KeyboardInterrupt") {
		t.Errorf("the program said %s", text)
	}
}

// mainCancels cancels calls that run on the main thread, and those that wait for it.
func mainCancels(t *testing.T, run *harness.Run) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	spins := fn(t, run, "spins").Go(ctx)
	harness.Eventually(t, 10*time.Second, "the call has begun", func() bool { return harness.Eval[int](t, run.Remote, "len(begun)") == 1 })
	short, giveUp := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer giveUp()
	if _, err := fn(t, run, "runs").Call(short, 1); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "never will") {
		t.Errorf("a call behind another one, given up: %v", err)
	}
	waits := fn(t, run, "runs").Go(t.Context(), 2)
	cancel()
	if _, err := spins.Wait(t.Context()); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("a call that runs, given up: %v", err)
	}
	if _, err := waits.Wait(t.Context()); err != nil {
		t.Errorf("the call behind it: %v", err)
	}
	if !harness.Eval[bool](t, run.Remote, "ran == [2]") {
		t.Error("a call that was given up has run all the same, or the next one has not")
	}
	for range 200 { // an exception that comes too late must not end serve, or another call
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Microsecond)
		r, err := fn(t, run, "sleeps").Call(ctx, 0.0003)
		cancel()
		if err == nil {
			r.Close()
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a call that is given up just when it ends: %v", err)
		}
		if v := value(t, fn(t, run, "coroutine"), 1); v != int64(2) {
			t.Fatalf("the next call gave %v", v)
		}
	}
	if n := harness.Eval[int](t, run.Remote, "handled.count('interrupted')"); n != 0 {
		t.Errorf("serve was interrupted %d times", n)
	}
}

// TestServingIsInterrupted: signals are handled as in any program, while the main thread waits for calls and while it runs one.
func TestServingIsInterrupted(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, serves, patient())
	harness.Eval[string](t, run.Remote, "handled.pop()")
	pid, onMain := run.PID(t), fn(t, run, "on_main")
	serving := func() {
		t.Helper()
		harness.Eventually(t, harness.StartBound, "the program serves", func() bool { return value(t, onMain) == true })
	}
	kill := func(s syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(pid, s); err != nil {
			t.Fatal(err)
		}
	}
	has := func(what, expression string) {
		t.Helper()
		harness.Eventually(t, 10*time.Second, what, func() bool { return harness.Eval[bool](t, run.Remote, expression) })
	}
	serving()
	kill(syscall.SIGUSR1)
	has("the handler has run on the main thread", "handled == [True]")
	kill(syscall.SIGINT)
	has("an interrupt ended serve", "handled == [True, 'interrupted']")
	if value(t, onMain) != false {
		t.Error("a call ran on a main thread that does not serve")
	}
	serving()
	stuck, behind := fn(t, run, "spins").Go(t.Context()), fn(t, run, "runs").Go(t.Context(), 3)
	has("the call runs", "len(begun) == 1")
	kill(syscall.SIGINT)
	if _, err := stuck.Wait(t.Context()); !errors.Is(err, core.ErrPython) || !strings.Contains(err.Error(), "KeyboardInterrupt") {
		t.Errorf("the call that was interrupted: %v", err)
	}
	has("the interrupt ended serve, too", "handled == [True, 'interrupted', 'interrupted']")
	if _, err := behind.Wait(t.Context()); err != nil {
		t.Errorf("the call behind it: %v", err)
	}
	serving()
	fails(t, fn(t, run, "exits"), core.ErrPython, "SystemExit")
	if status, _, err := run.ExitStatus(t.Context()); status != 3 || err != nil {
		t.Errorf("the program ended with status %d, %v; want 3", status, err)
	}
}

// patient lets a program end on a busy machine.
func patient() harness.Options {
	return harness.Options{Configs: []func(*hostplugin.Config){func(c *hostplugin.Config) { c.Programs[0].StopTimeout = harness.StartBound }}}
}
