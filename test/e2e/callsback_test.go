package e2e

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// back is a program that calls its host.
const back = `
import gc, os, signal, sys, threading, time, numpy as np, ndbridge, remote
def host(name, *args, **kw): return getattr(ndbridge.host, name)(*args, **kw)
def raised(name, *args):
    try: return host(name, *args)
    except Exception as e: return "%s: %s" % (type(e).__name__, e)
kept = []
def keeps(name):
    kept.append(host(name))
    return [type(kept[-1]).__name__, float(kept[-1][1])]
def lends():
    a = np.arange(1 << 14, dtype="f8")
    return [host("sum", a, twice=True), float(a[0])]
def swallowed():
    try: host("stuck")
    except BaseException as e: caught.append(type(e).__name__); raise
caught = []
def down(n): return n if n == 0 else host("down", n) + 1
def on_main(): return threading.current_thread() is threading.main_thread()
def threads(n, times):
    def many(i):
        for j in range(times):
            if host("echo", [i, j]) != [i, j]: caught.append((i, j))
    all = [threading.Thread(target=many, args=(i,)) for i in range(n)]
    for t in all: t.start()
    for t in all: t.join()
    return len(caught)
def forks():
    r, w = os.pipe()
    if os.fork() == 0:
        os.write(w, raised("echo", 1).encode())
        os._exit(0)
    os.close(w)
    return os.read(r, 1000).decode()
def waiting():
    try: host("stuck")
    except BaseException as e: os.write(1, b"%s in a thread\n" % type(e).__name__.encode())
def collects(): return gc.isenabled()
`

// handle lets the program call functions of this test's. stuck counts the handlers of that name whose contexts have not ended.
func handle(t *testing.T, run *harness.Run) (stuck *atomic.Int32) {
	t.Helper()
	stuck = new(atomic.Int32)
	for name, h := range map[string]func(context.Context, hostplugin.Args) (any, error){
		"echo": func(_ context.Context, args hostplugin.Args) (x any, err error) {
			err = args.Decode(&x)
			return x, err
		},
		"all": func(_ context.Context, args hostplugin.Args) (any, error) {
			var x []int
			var y string
			kw := map[string]any{}
			err := errors.Join(args.Decode(&x, &y), args.Keywords(&kw))
			return []any{args.Len(), x, y, kw}, err
		},
		"sum": func(_ context.Context, args hostplugin.Args) (any, error) {
			var v *core.View
			var kw struct {
				Twice bool `python:"twice"`
			}
			if err := errors.Join(args.Decode(&v), args.Keywords(&kw)); err != nil {
				return nil, err
			}
			data, err := core.Slice[float64](v)
			if err != nil {
				return nil, err
			}
			sum := 0.0
			for _, x := range data {
				sum += x
			}
			if kw.Twice {
				sum *= 2
			}
			return sum, nil
		},
		"make": func(ctx context.Context, _ hostplugin.Args) (any, error) {
			v, err := run.New(core.Float32, 3)
			if err != nil {
				return nil, err
			}
			context.AfterFunc(ctx, func() { v.Close() })
			data, err := core.Slice[float32](v)
			if err == nil {
				data[1] = 7
			}
			return v, err
		},
		"fails":  func(context.Context, hostplugin.Args) (any, error) { return nil, errors.New("no such frame") },
		"panics": func(context.Context, hostplugin.Args) (any, error) { panic("oh") },
		"odd":    func(context.Context, hostplugin.Args) (any, error) { return make(chan int), nil }, //nolint:unparam // a handler
		"stuck": func(ctx context.Context, _ hostplugin.Args) (any, error) { //nolint:unparam // a handler
			stuck.Add(1)
			<-ctx.Done()
			stuck.Add(-1)
			return nil, ctx.Err()
		},
		"down": func(ctx context.Context, args hostplugin.Args) (any, error) {
			var n int
			if err := args.Decode(&n); err != nil {
				return nil, err
			}
			f, err := run.Func(ctx, "down")
			if err != nil {
				return nil, err
			}
			r, err := f.Call(ctx, n-1)
			if err != nil {
				return nil, err
			}
			return n, errors.Join(r.Decode(&n), r.Close(), f.Close())
		},
	} {
		if err := run.Handle(name, h); err != nil {
			t.Fatal(err)
		}
	}
	return stuck
}

// TestProgramsCallTheHost: values and arrays cross both ways, and errors say what happened.
func TestProgramsCallTheHost(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, back+"remote.serve()", harness.Options{})
	none := value(t, fn(t, run, "raised"), "echo", 1)
	if none != "AttributeError: the host has no function 'echo': it has none" {
		t.Errorf("without a handler: %v", none)
	}
	handle(t, run)
	host, raised := fn(t, run, "host"), fn(t, run, "raised")
	for _, x := range []any{nil, true, int64(5), 2.5, "ä", []any{int64(1), "x"}, map[string]any{"a": nil}, contract.Tuple{}} {
		if got := value(t, host, "echo", x); !reflect.DeepEqual(got, x) {
			t.Errorf("%#v came back as %#v", x, got)
		}
	}
	want := []any{int64(2), []any{int64(1), int64(2)}, "y", map[string]any{"k": int64(3)}}
	if got := value(t, host, "all", []int{1, 2}, "y", hostplugin.Kw{"k": 3}); !reflect.DeepEqual(got, want) {
		t.Errorf("arguments arrived as %v, want %v", got, want)
	}
	long := strings.Repeat("x", 5<<20)
	if got := value(t, host, "echo", long); got != long {
		t.Error("5 MiB of text came back as something else")
	}
	if got := value(t, fn(t, run, "lends")); !reflect.DeepEqual(got, []any{float64((1 << 14) * (1<<14 - 1)), 0.0}) {
		t.Errorf("the sum of an array is %v", got)
	}
	if got := value(t, fn(t, run, "keeps"), "make"); !reflect.DeepEqual(got, []any{"ndarray", 7.0}) {
		t.Errorf("an array of the host's arrived as %v", got)
	}
	for name, says := range map[string]string{
		"fails": "HostError: no such frame", "panics": "HostError: panics: panic: oh", "odd": "HostError: ", "nothing": "AttributeError: the host has no function 'nothing': it has all, down, ",
		"sum": "HostError: arguments sum:", "stuck_": "AttributeError",
	} {
		if got, ok := value(t, raised, name, 1, 2).(string); !ok || !strings.HasPrefix(got, says) {
			t.Errorf("%s: %v, want %s", name, got, says)
		}
	}
	if got := harness.Eval[string](t, run.Remote, `raised("echo", threading)`); !strings.HasPrefix(got, "TypeError") || !strings.Contains(got, "module") {
		t.Errorf("an argument that cannot cross: %s", got)
	}
	if !harness.Eval[bool](t, run.Remote, `"echo" in dir(ndbridge.host) and hasattr(ndbridge.host, "sum") and not hasattr(ndbridge.host, "_sum")`) {
		t.Error("the functions of the host are not listed")
	}
	if got, ok := value(t, fn(t, run, "forks")).(string); !ok || !strings.Contains(got, "RuntimeError: a forked process has no host") {
		t.Errorf("a forked child calls the host: %v", got)
	}
	if n := value(t, fn(t, run, "threads"), 60, 20); n != int64(0) {
		t.Errorf("%v calls got the results of others", n)
	}
	if value(t, fn(t, run, "collects")) != true {
		t.Error("Python's garbage collector was left off")
	}
	if err := run.Handle("_x", func(context.Context, hostplugin.Args) (any, error) { return nil, nil }); !errors.Is(err, core.ErrConfig) { //nolint:nilnil // None
		t.Errorf("a handler whose name begins with an underscore: %v", err)
	}
	run.NoLeases(t)
}

// TestCallsWithinCallsOfTheHost: a handler's own calls run on the thread that waits for it, as deep as there are lanes, without a worker.
func TestCallsWithinCallsOfTheHost(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]string{"workers": "remote.serve()", "main thread": "remote.start()\nndbridge.serve()"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, back+end, harness.Options{Configs: []func(*hostplugin.Config){
				func(c *hostplugin.Config) { c.Programs[0].Workers = 2 },
			}})
			stuck := handle(t, run)
			down := fn(t, run, "down")
			var futures []*hostplugin.Future
			for range 8 {
				futures = append(futures, down.Go(t.Context(), 12))
			}
			for _, f := range futures {
				r, err := f.Wait(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if n, err := r.Value(); n != int64(12) || err != nil {
					t.Errorf("12 calls down and up gave %v, %v", n, err)
				}
			}
			fails(t, down, core.ErrPython, "RecursionError", 100)
			if v := value(t, down, 3); v != int64(3) {
				t.Errorf("after that: %v", v)
			}
			ctx, cancel := context.WithCancel(t.Context())
			swallowed := fn(t, run, "swallowed").Go(ctx)
			harness.Eventually(t, 10*time.Second, "the handler runs", func() bool { return stuck.Load() == 1 })
			cancel()
			if _, err := swallowed.Wait(t.Context()); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "interrupted") {
				t.Errorf("a call that waits for the host, given up: %v", err)
			}
			harness.Eventually(t, 10*time.Second, "the handler's context ends", func() bool { return stuck.Load() == 0 })
			if !harness.Eval[bool](t, run.Remote, `caught == ["Cancelled"]`) {
				t.Error("the function did not catch Cancelled, once")
			}
			if v := value(t, down, 3); v != int64(3) {
				t.Errorf("after that: %v", v)
			}
		})
	}
}

// TestCancelledFarOutside: a call is given up while its function has called the host, and the host a function that runs: both end.
func TestCancelledFarOutside(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, back+`
def spin():
    begun.append(1)
    while True: pass
begun = []
def outer():
    try: host("inner")
    finally: begun.append(2)
def after(): return begun
remote.serve()`, harness.Options{})
	failed := make(chan error, 1)
	if err := run.Handle("inner", func(ctx context.Context, _ hostplugin.Args) (any, error) {
		_, err := fn(t, run, "spin").Call(context.WithoutCancel(ctx))
		failed <- err
		return nil, nil //nolint:nilnil // None: as if nothing had been interrupted
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	outer := fn(t, run, "outer").Go(ctx)
	harness.Eventually(t, 10*time.Second, "the inner function runs", func() bool { return harness.Eval[int](t, run.Remote, "len(begun)") == 1 })
	cancel()
	if _, err := outer.Wait(t.Context()); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("the outer call: %v", err)
	}
	if err := <-failed; !errors.Is(err, core.ErrPython) {
		t.Errorf("the inner call: %v", err)
	}
	if got := value(t, fn(t, run, "after")); !reflect.DeepEqual(got, []any{int64(1), int64(2)}) {
		t.Errorf("the functions left %v", got)
	}
}

// TestWaitingForTheHostEnds: threads that wait for the host are interrupted by signals, and by the end of the session.
func TestWaitingForTheHostEnds(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, back+`
remote.start()
while not hasattr(ndbridge.host, "stuck"): time.sleep(0.01)
try: host("stuck")
except KeyboardInterrupt: print("interrupted", flush=True)
try: time.sleep(60)
except KeyboardInterrupt: print("the end", flush=True)
said = 1
while said == 1: said = raised("echo", 1) # the host may hear that one yet
os.write(1, b"then %s\n" % said.encode())
`, patient())
	harness.Eval[int](t, run.Remote, "1")
	stuck := handle(t, run)
	logged := func(text string) func() bool { return func() bool { return strings.Contains(run.Log.Text(), text) } }
	run.Remote.Exec(t, "for i in range(3): threading.Thread(target=waiting, daemon=False).start()")
	harness.Eventually(t, 10*time.Second, "all wait for the host", func() bool { return stuck.Load() == 4 })
	if err := syscall.Kill(run.PID(t), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 10*time.Second, "the main thread was interrupted", logged("interrupted"))
	harness.Eventually(t, 10*time.Second, "its handler's context ends", func() bool { return stuck.Load() == 3 })
	begun := time.Now()
	if err := run.Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(begun); d > 10*time.Second {
		t.Errorf("threads that waited for the host kept the program for %v", d)
	}
	text := run.Log.Text()
	if n := strings.Count(text, "ConnectionError in a thread"); n != 3 || !strings.Contains(text, "then ConnectionError: ") {
		t.Errorf("%d threads were told; the log:\n%s", n, text)
	}
	harness.Eventually(t, 10*time.Second, "the handlers' contexts end", func() bool { return stuck.Load() == 0 })
	if err := run.Handle("late", func(context.Context, hostplugin.Args) (any, error) { return nil, errors.New("never") }); !errors.Is(err, core.ErrClosed) {
		t.Errorf("Handle of a closed session: %v", err)
	}
}
