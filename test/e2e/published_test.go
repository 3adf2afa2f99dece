package e2e

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// publishing makes arrays that are published, and counts what of them the heap keeps for the host.
const publishing = `
import ctypes, gc, sys, weakref
import numpy as np, ndbridge, remote

def pinned():
    stats = (ctypes.c_uint64 * 14)()
    assert ctypes.CDLL(None).ndheap_stats(stats) == 0
    return stats[6]

class Owner:
    """An array of no framework, which leases hold."""
    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__
`

// source prepares a name.
func source(t *testing.T, run *harness.Run, name string) *hostplugin.Source {
	t.Helper()
	src, err := run.Source(name)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// ready waits until the script serves the test: a name that it publishes may be that of a variable before.
func ready(t *testing.T, run *harness.Run) {
	t.Helper()
	run.Remote.Exec(t, "pass")
}

// viewOf takes a view that the test closes.
func viewOf(t *testing.T, src *hostplugin.Source) *core.View {
	t.Helper()
	view, err := src.View(t.Context())
	if err != nil {
		t.Fatalf("view %s: %v", src.Name(), err)
	}
	return view
}

func closed(t *testing.T, views ...*core.View) {
	t.Helper()
	for _, view := range views {
		if err := view.Close(); err != nil {
			t.Error(err)
		}
	}
}

// spinning runs a program that publishes "a", holds Python's lock for good once the first element of "flag"
// is 1, and until it is 2, and adds to a[0] meanwhile.
func spinning(t *testing.T) (run *harness.Run, flag []float64) {
	t.Helper()
	run = harness.Start(t, publishing+`
import time
a, flag = np.full(1 << 17, 1.0), np.zeros(1 << 17)
ndbridge.publish("a", a)
ndbridge.publish("flag", flag)
while flag[0] == 0:
    time.sleep(0.001)
sys.setswitchinterval(10)
flag[1] = 1
while flag[0] == 1:
    a[0] += 1
sys.setswitchinterval(0.005)
remote.serve()
`, harness.Options{})
	view := run.View(t, "flag", hostplugin.Writable())
	flag = slice[float64](t, view)
	flag[0] = 1
	harness.Eventually(t, harness.StartBound, "the program spins", func() bool {
		runtime.Gosched()
		return flag[1] == 1
	})
	t.Cleanup(func() { flag[0] = 2 }) // before the view is closed
	return run, flag
}

// TestPublishedWhilePythonIsBusy: a published array needs neither Python's lock nor what asks for it, the
// first time no less than later; and it is the program's own memory.
func TestPublishedWhilePythonIsBusy(t *testing.T) {
	t.Parallel()
	run, flag := spinning(t)
	src := source(t, run, "a")
	begin := time.Now()
	first := viewOf(t, src)
	for range 1000 {
		closed(t, viewOf(t, src))
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("1001 views of a published array took %v while the program was busy", took)
	}
	data := slice[float64](t, first)
	before := data[0]
	harness.Eventually(t, 5*time.Second, "the view shows what the program writes", func() bool { return data[0] > before })
	if data[1] != 1 || first.Copied() || first.Writable() || first.Route() != contract.RouteSharedHeap {
		t.Errorf("a[1] is %v by route %v, writable %v", data[1], first.Route(), first.Writable())
	}
	flag[0] = 2
	writable := run.View(t, "a", hostplugin.Writable())
	slice[float64](t, writable)[5] = 7
	if x := harness.Eval[float64](t, run.Remote, "float(a[5])"); x != 7 || data[5] != 7 {
		t.Errorf("after a write through a writable view the program has %v, the view %v", x, data[5])
	}
	closed(t, writable, first)
}

// TestPublishedIsReplaced: the old view shows the old array, the new one the new, and the old memory is
// given back with the last view of it, not before.
func TestPublishedIsReplaced(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, publishing+`
ndbridge.publish("a", np.full(1 << 17, 1.0))
remote.serve()
`, harness.Options{})
	src := source(t, run, "a")
	pinned := func(want int) {
		t.Helper()
		harness.Eventually(t, 10*time.Second, "as many blocks are kept as there are arrays", func() bool {
			return harness.Eval[int](t, run.Remote, "pinned()") == want
		})
	}
	old, again := viewOf(t, src), viewOf(t, src)
	run.Remote.Exec(t, `ndbridge.publish("a", np.full(1 << 17, 2.0)); gc.collect()`)
	now := viewOf(t, src)
	run.Remote.Exec(t, "others = [np.full(1 << 17, 9.0) for _ in range(40)]")
	for want, view := range map[float64]*core.View{1: old, 2: now} {
		if data := slice[float64](t, view); slices.Min(data) != want || slices.Max(data) != want {
			t.Errorf("the view shows %v to %v, want %v", slices.Min(data), slices.Max(data), want)
		}
	}
	if leases := run.Leases(t); leases != 3 {
		t.Errorf("%d leases stand, want 3", leases)
	}
	closed(t, old)
	if n := harness.Eval[int](t, run.Remote, "pinned()"); n != 2 {
		t.Errorf("%d blocks are kept while a view of the old array is open, want 2", n)
	}
	closed(t, again)
	pinned(1)
	closed(t, now)
	run.NoLeases(t)
	run.Remote.Exec(t, `ndbridge.unpublish("a")`)
	pinned(0)
	if _, err := src.View(t.Context(), hostplugin.NoWait()); err == nil {
		t.Error("a view of what is not published any more")
	}
	run.Remote.Exec(t, `ndbridge.publish("a", np.full(1 << 17, 3.0))`)
	third := viewOf(t, src)
	if x := slice[float64](t, third)[9]; x != 3 {
		t.Errorf("a name that came again shows %v", x)
	}
	closed(t, third)
}

// TestPublishedObjectsEnd: what a lease holds in Python ends on the program's own thread if nobody leases
// it, and with the last view else.
func TestPublishedObjectsEnd(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, publishing+`
def publish(value):
    owner = Owner(np.full(1 << 17, value))
    ndbridge.publish("a", owner)
    return weakref.ref(owner)
first = publish(1.0)
remote.serve()
`, harness.Options{})
	src := source(t, run, "a")
	if !harness.Eval[bool](t, run.Remote, "(publish(2.0), first() is None)[1]") {
		t.Error("an array that nobody leases lives on when it is replaced")
	}
	run.Remote.Exec(t, "second = publish(3.0)")
	view := viewOf(t, src)
	if !harness.Eval[bool](t, run.Remote, `(ndbridge.unpublish("a"), second() is not None)[1]`) {
		t.Error("an array that is leased ends with its name")
	}
	if x := slice[float64](t, view)[9]; x != 3 {
		t.Errorf("the view shows %v", x)
	}
	closed(t, view)
	becomesTrue(t, run, "second() is None")
	run.NoLeases(t)
}

// TestReplacedIsTheProgramsAlone: an array that was published, and is not any more, has no reference of ours, though
// the host looks at it, and the host goes on seeing what it was.
func TestReplacedIsTheProgramsAlone(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, publishing+`
import sys
a = np.full(1 << 17, 5.0)
references = sys.getrefcount(a)
ndbridge.publish("a", a)
remote.serve()
`, harness.Options{})
	ready(t, run)
	for _, end := range []string{`ndbridge.publish("a", np.full(1 << 17, 1.0))`, `ndbridge.unpublish("a")`} {
		view := run.View(t, "a")
		run.Remote.Exec(t, "ndbridge.publish('a', a)")
		again := run.View(t, "a")
		run.Remote.Exec(t, end)
		if more := harness.Eval[int](t, run.Remote, "sys.getrefcount(a) - references"); more != 0 {
			t.Errorf("after %s: %d references more than before it was published", end, more)
		}
		run.Remote.Exec(t, "a.resize(1 << 18)") // which counts references
		run.Remote.Exec(t, "a[:] = 7; others = [np.full(1 << 17, 9.0) for _ in range(40)]")
		for _, v := range []*core.View{view, again} {
			if data := slice[float64](t, v); slices.Min(data) != 5 || slices.Max(data) != 5 {
				t.Errorf("after %s: the view shows %v to %v, want 5", end, slices.Min(data), slices.Max(data))
			}
			closed(t, v)
		}
		run.Remote.Exec(t, "others = None; a = np.full(1 << 17, 5.0); ndbridge.publish('a', a)")
	}
	run.NoLeases(t)
}

// TestPublishNothingOfAll: if one of several is no array, none is published, and what stands stays as it is, also if it
// was to be published again. A name that is there in two spellings is published once.
func TestPublishNothingOfAll(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, publishing+`
import sys
a, b = np.full(1 << 17, 5.0), np.full(1 << 17, 6.0)
before = sys.getrefcount(a), sys.getrefcount(b)
ndbridge.publish("a", a)
def more(): return sys.getrefcount(a) - before[0], sys.getrefcount(b) - before[1]
once = more()
def nothing():
    for i in range(50):
        try:
            ndbridge.publish({"a": a, "b": b, "c": "no array"})
        except TypeError:
            continue
        return "published"
    return more()
remote.serve()
`, harness.Options{})
	if same := harness.Eval[bool](t, run.Remote, "nothing() == once"); !same {
		t.Errorf("after publishing what is no array: %v", harness.Eval[any](t, run.Remote, "[more(), once]"))
	}
	if v := run.View(t, "a"); v.Version() != 1 || slice[float64](t, v)[9] != 5 {
		t.Errorf("version %d shows %v", v.Version(), slice[float64](t, v)[9])
	}
	run.Remote.Exec(t, "d = {}; ndbridge.publish({'d[\"k\"]': b, \"d['k']\": a}); ndbridge.unpublish(\"d['k']\")")
	if same := harness.Eval[bool](t, run.Remote, "more() == once"); !same {
		t.Errorf("after two spellings: %v", harness.Eval[any](t, run.Remote, "[more(), once]"))
	}
}

// TestPublishedInPlace: an object that is changed after it was published is served as it was.
func TestPublishedInPlace(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, publishing+`
a = np.arange(1 << 17, dtype="f8")
ndbridge.publish("published", a)
a.shape = (1 << 10, 1 << 7)
remote.serve()
`, harness.Options{})
	harness.Eval[int](t, run.Remote, "1") // answers when it is published: who waits for a name gets its array as it is then
	view := run.View(t, "published")
	if shape := view.Shape(); !slices.Equal(shape, []int{1 << 17}) {
		t.Errorf("the shape is %v, want that of the moment when the array was published", shape)
	}
	run.Remote.Exec(t, `ndbridge.publish("published", a)`)
	view = run.View(t, "published")
	if shape := view.Shape(); !slices.Equal(shape, []int{1 << 10, 1 << 7}) {
		t.Errorf("the shape is %v after the array was published again", shape)
	}
}

// TestPublishedBeforeAFork: arrays that a fork takes away from the host are not offered any more, but made shareable
// again when it asks, and their memory is not kept for nobody.
func TestPublishedBeforeAFork(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, publishing+`
import os
a = np.full(1 << 17, 1.0)
ndbridge.publish("a", a)
ndbridge.publish("b", np.full(1 << 17, 1.0))
remote.serve()
`, harness.Options{Configs: promoting})
	ready(t, run)
	src := source(t, run, "a")
	closed(t, viewOf(t, src))
	run.Remote.Exec(t, `
child = os.fork()
if child == 0:
    a[:] = 5
    os._exit(0)
os.waitpid(child, 0)
a[:] = 2
`)
	view := viewOf(t, src)
	if x := slice[float64](t, view)[9]; x != 2 || view.Copied() || !view.Live() {
		t.Errorf("after a fork the view shows %v, copied: %v, live: %v; want 2", x, view.Copied(), view.Live())
	}
	closed(t, view)
	becomesTrue(t, run, "pinned() == 0")
	run.Remote.Exec(t, `ndbridge.publish("a", np.full(1 << 17, 3.0))`)
	view = viewOf(t, src)
	if x := slice[float64](t, view)[9]; x != 3 || view.Copied() {
		t.Errorf("what was published after the fork shows %v, copied: %v", x, view.Copied())
	}
	closed(t, view)
}

// TestPublishedNeverMixed: while the program publishes array after array, each view shows one of them, all
// of it, and none that is older than one before.
func TestPublishedNeverMixed(t *testing.T) {
	t.Parallel()
	const callers, rounds = 6, 3000
	run := harness.Start(t, publishing+`
go = False
remote.start()
ndbridge.publish("frame", np.full(1 << 14, 0.0))
while not go: pass
for i in range(1, `+itoa(rounds)+` + 1):
    ndbridge.publish("frame", np.full(1 << 14, float(i)))
remote.serve()
`, harness.Options{})
	var views atomic.Int64
	var group sync.WaitGroup
	for range callers {
		src := source(t, run, "frame")
		group.Go(func() {
			for last := 0.0; last < rounds && !t.Failed(); {
				view, err := src.View(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				data, err := core.Slice[float64](view)
				if err != nil || len(data) != 1<<14 || slices.Min(data) != slices.Max(data) || data[0] < last {
					t.Errorf("after %v: %d elements from %v to %v, %v", last, len(data), slices.Min(data), slices.Max(data), err)
				}
				last = data[0]
				closed(t, view)
				views.Add(1)
			}
		})
	}
	run.Remote.Exec(t, "go = True")
	group.Wait()
	t.Logf("%d views of %d arrays", views.Load(), rounds)
	run.NoLeases(t)
	if n := harness.Eval[int](t, run.Remote, "pinned()"); n != 1 {
		t.Errorf("%d blocks are kept for one array", n)
	}
}
