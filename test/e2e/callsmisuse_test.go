package e2e

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// workers sets how many calls may run at once.
func workers(n int) []func(*hostplugin.Config) {
	return []func(*hostplugin.Config){func(c *hostplugin.Config) { c.Programs[0].Workers = n }}
}

// TestCallsOverPythons calls functions in every CPython of this machine.
func TestCallsOverPythons(t *testing.T) {
	t.Parallel()
	eachPython(t, callsWorkIn)
}

func callsWorkIn(t *testing.T, python string) {
	t.Helper()
	run := harness.Start(t, `
import asyncio, numpy as np, remote
def double(x: np.ndarray, *, by=2):
    x[0] = 5
    return {"y": x * by, "n": len(x)}
def fails(): raise KeyError("k")
async def later(n):
    await asyncio.sleep(0.01)
    return n + 1
def counts(n):
    for i in range(n): yield i
def spin():
    while True: pass
def spins(): spin()
remote.serve()
`, harness.Options{Python: python, Configs: workers(1)})
	v := array(t, run, core.Float64, 1<<15)
	var got struct {
		Y *core.View `python:"y"`
		N int        `python:"n"`
	}
	if err := call(t, fn(t, run, "double"), v, hostplugin.Kw{"by": 3}).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if y := slice[float64](t, got.Y); got.N != 1<<15 || y[0] != 15 || slice[float64](t, v)[0] != 5 {
		t.Errorf("double gave %d elements, the first %v; the view shows %v", got.N, y[0], slice[float64](t, v)[0])
	}
	fails(t, fn(t, run, "fails"), core.ErrPython, "KeyError")
	if n := value(t, fn(t, run, "later"), 1); n != int64(2) {
		t.Errorf("a coroutine function gave %v", n)
	}
	sum := 0
	for r, err := range fn(t, run, "counts").Stream(t.Context(), 4) {
		var n int
		if err = errors.Join(err, r.Decode(&n), r.Close()); err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if sum != 6 {
		t.Errorf("a generator gave %d in all, want 6", sum)
	}
	interrupted(t, run, "spins")
}

// interrupted calls a function without end, and gives up when it runs. On a machine with much to do it may not have begun by then, or not
// end as soon as a call waits for that: it is called again.
func interrupted(t *testing.T, run *harness.Run, name string) {
	t.Helper()
	f := fn(t, run, name)
	var err error
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err = f.Call(ctx)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if strings.Contains(err.Error(), "interrupted") {
			return
		}
	}
	t.Errorf("%s whose context ends: %v, want that it is interrupted", name, err)
}

// TestCallsThatSwallowCancelled: a function that catches what interrupts it returns as it wishes, and the next call on its
// worker is not disturbed.
func TestCallsThatSwallowCancelled(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import ndbridge, time, remote
begun = 0
def spin():
    global begun
    begun += 1
    while True: pass
def returns():
    try: spin()
    except ndbridge.Cancelled: return "all the same"
def stays():
    try: spin()
    except ndbridge.Cancelled: pass
    while not done: time.sleep(0.001)
    return "much later"
def plain(): return sum(range(1000))
done = False
remote.serve()
`, harness.Options{Configs: workers(1)})
	for n, name := range []string{"returns", "stays"} {
		ctx, cancel := context.WithCancel(t.Context())
		f := fn(t, run, name).Go(ctx)
		becomesTrue(t, run, "begun == "+itoa(n+1))
		cancel()
		<-f.Done()
		r, err := f.Wait(t.Context())
		if name == "stays" {
			if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "still runs") {
				t.Errorf("a function that stays: %v", err)
			}
			run.Remote.Exec(t, "done = True")
		} else if err != nil {
			t.Errorf("a function that returns: %v", err)
		} else if v, err := r.Value(); v != "all the same" || err != nil {
			t.Errorf("a function that returns gave %v, %v", v, err)
		}
		for range 20 {
			if v := value(t, fn(t, run, "plain")); v != int64(499500) {
				t.Errorf("after %s, plain gave %v", name, v)
			}
		}
	}
	run.NoLeases(t)
}

// TestCallsBesideALoop: coroutines run on the loop that the program runs, and functions do not hold it up.
func TestCallsBesideALoop(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import asyncio, threading, time, remote
cancelled = []
def main_thread(): return threading.current_thread() is threading.main_thread()
async def awaited():
    await asyncio.sleep(0.001)
    return main_thread() and asyncio.get_running_loop() is loop
async def forever():
    try: await asyncio.sleep(3600)
    except asyncio.CancelledError as e:
        cancelled.append(type(e).__name__)
        raise
def ticking():
    before = ticks
    while ticks < before + 10: time.sleep(0.001)
    return not main_thread()
async def both(): return await asyncio.gather(awaited(), awaited())
loop, ticks = None, 0
remote.start()
async def main():
    global loop, ticks
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(0.001)
        ticks += 1
asyncio.run(main())
`, harness.Options{})
	becomesTrue(t, run, "ticks > 0")
	for _, name := range []string{"awaited", "ticking"} {
		if v := value(t, fn(t, run, name)); v != true {
			t.Errorf("%s ran elsewhere: %v", name, v)
		}
	}
	var both []bool
	if err := call(t, fn(t, run, "both")).Decode(&both); err != nil || len(both) != 2 || !both[0] || !both[1] {
		t.Errorf("both gave %v, %v", both, err)
	}
	interrupted(t, run, "forever")
	becomesTrue(t, run, "cancelled == ['CancelledError']")
	if v := value(t, fn(t, run, "ticking")); v != true {
		t.Errorf("after a coroutine was cancelled, the loop stood: %v", v)
	}
}

// TestCallsThatExit: what ends a program elsewhere ends the call only, on a worker as on the loop for coroutines.
func TestCallsThatExit(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import asyncio, os, sys, remote
def system(): raise SystemExit("bye")
def keyboard(): raise KeyboardInterrupt
def stops(): return iter([]).__next__()
async def asystem():
    await asyncio.sleep(0)
    sys.exit(3)
async def akeyboard(): raise KeyboardInterrupt
async def stoploop(): asyncio.get_running_loop().stop()
async def plain(): return os.getpid()
remote.serve()
`, harness.Options{})
	pid := int64(run.PID(t))
	for _, c := range []struct{ name, says string }{
		{"system", "SystemExit: bye"},
		{"keyboard", "KeyboardInterrupt"},
		{"stops", "StopIteration"},
		{"asystem", "SystemExit: 3"},
		{"akeyboard", "KeyboardInterrupt"},
	} {
		fails(t, fn(t, run, c.name), core.ErrPython, c.says)
		if v := value(t, fn(t, run, "plain")); v != pid {
			t.Errorf("after %s, plain gave %v, want %d", c.name, v, pid)
		}
	}
	call(t, fn(t, run, "stoploop"))
	if v := value(t, fn(t, run, "plain")); v != pid {
		t.Errorf("after the loop was stopped, plain gave %v, want %d", v, pid)
	}
}

// TestCallsThatFork: a function may use processes of multiprocessing, which see the host's array.
func TestCallsThatFork(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import multiprocessing, numpy as np, remote
context = multiprocessing.get_context("fork")
def pool(n):
    with context.Pool(2) as p: return p.map(abs, range(-n, 0))
def process(x):
    results = context.SimpleQueue()
    def child():
        results.put(float(x.sum()))
        x[0] = -1
    p = context.Process(target=child)
    p.start()
    total = results.get()
    p.join()
    return {"total": total, "status": p.exitcode}
remote.serve()
`, harness.Options{})
	var numbers []int
	if err := call(t, fn(t, run, "pool"), 5).Decode(&numbers); err != nil || len(numbers) != 5 || numbers[0] != 5 {
		t.Errorf("a pool gave %v, %v", numbers, err)
	}
	v := array(t, run, core.Float64, 1<<15)
	for i := range slice[float64](t, v) {
		slice[float64](t, v)[i] = 1
	}
	var got struct {
		Total  float64 `python:"total"`
		Status int     `python:"status"`
	}
	if err := call(t, fn(t, run, "process"), v).Decode(&got); err != nil || got.Total != 1<<15 || got.Status != 0 {
		t.Errorf("a child process gave %+v, %v", got, err)
	}
	if x := slice[float64](t, v)[0]; x != -1 {
		t.Errorf("the view shows %v, not what the child process wrote", x)
	}
	run.NoLeases(t)
}

// TestCallsReturnTooMuch: results that cannot cross are errors that say so, and nothing of them stays.
func TestCallsReturnTooMuch(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import numpy as np, remote
small = np.zeros(4)
def arrays(n): return [small] * n
def circle():
    d = {}
    d["a"] = [1, d]
    return d
def deep():
    a = []
    for _ in range(100000): a = [a]
    return a
remote.serve()
`, harness.Options{})
	fails(t, fn(t, run, "arrays"), core.ErrUnsupported, "65536 arrays", 1000000)
	run.NoLeases(t)
	fails(t, fn(t, run, "circle"), core.ErrUnsupported, `["a"][1]`)
	fails(t, fn(t, run, "deep"), core.ErrUnsupported, "")
	r := call(t, fn(t, run, "arrays"), 1000)
	if n := len(r.Views()); n != 1000 {
		t.Errorf("%d arrays came, want 1000", n)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	run.NoLeases(t)
}

// TestCallsThatWriteReadOnly: numpy refuses to write to a read-only argument. What writes by address all the same ends the
// program, for its memory cannot be written; the host's array stays what it was.
func TestCallsThatWriteReadOnly(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import ctypes, numpy as np, remote
def write(x): x[0] = 1
def unlock(x): x.flags.writeable = True
def poke(x): ctypes.memset(x.__array_interface__["data"][0], 255, 8)
remote.serve()
`, harness.Options{})
	v := array(t, run, core.Float64, 1<<12)
	fixed := readOnly(t, v)
	fails(t, fn(t, run, "write"), core.ErrPython, "ValueError", fixed)
	fails(t, fn(t, run, "unlock"), core.ErrPython, "ValueError", fixed)
	call(t, fn(t, run, "poke"), v)
	if x := slice[float64](t, v)[0]; !math.IsNaN(x) {
		t.Errorf("the view shows %v, not what was written by address", x)
	}
	slice[float64](t, v)[0] = 7
	fails(t, fn(t, run, "poke"), core.ErrUnavailable, "", fixed)
	if x := slice[float64](t, v)[0]; x != 7 {
		t.Errorf("a read-only array was changed: %v", x)
	}
}
