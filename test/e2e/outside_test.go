package e2e

import (
	"bytes"
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// outsideSize is the size of the arrays of outsideArrays.
const outsideSize = 8 << 20

// outsideArrays has arrays over memory that no framework has asked for.
const outsideArrays = `
import ctypes, os, pickle, numpy as np, remote

N = 8 << 20
def writable():
    return np.frombuffer(bytearray(b"\1" * N), np.uint8)
def constant():
    return np.frombuffer(b"\1" * N, np.uint8)
def unpickled():
    return pickle.loads(pickle.dumps(np.ones(N, np.uint8), 5))
`

// TestOutsideHeapBecomesShared: an array over memory that is not the heap's is copied at the first look, and shared from the
// second on, where it is. Each side sees what the other writes, and neither a fork nor its end makes a difference.
func TestOutsideHeapBecomesShared(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, outsideArrays+"a = writable()\nremote.serve()\n", harness.Options{Configs: promoting})
	src := source(t, run, "a")
	view := viewOf(t, src)
	if view.Route() != contract.RouteStaged || view.Reason() != contract.ReasonOutsideHeap || view.Live() {
		t.Fatalf("the first look: %v (%v)", view.Route(), view.Reason())
	}
	where := harness.Eval[int](t, run.Remote, "a.ctypes.data")
	view = refreshed(t, src, view)
	if view.Route() != contract.RouteSharedHeap || view.Reason() != "" || !view.Live() {
		t.Fatalf("the second look: %v (%v), live: %v", view.Route(), view.Reason(), view.Live())
	}
	for value := 2; value < 5; value++ {
		run.Remote.Exec(t, "a[:] = "+strconv.Itoa(value))
		if got := bytesOf(t, view); got[0] != byte(value) || got[len(got)-1] != byte(value) {
			t.Errorf("the program has written %d, and the view shows %d, %d", value, got[0], got[len(got)-1])
		}
	}
	run.Remote.Exec(t, "os.waitpid(os.fork() or (a.fill(9), os._exit(0)), 0); a[:] = 5")
	harness.Eventually(t, harness.StartBound, "the view is live after a fork", view.Live)
	if bytesOf(t, view)[0] != 5 {
		t.Errorf("after a fork it shows %d", bytesOf(t, view)[0])
	}
	view = refreshed(t, src, view)
	if view.Route() != contract.RouteSharedHeap || !view.Live() || bytesOf(t, view)[outsideSize-1] != 5 {
		t.Errorf("a look after a fork: %v (%v), live: %v", view.Route(), view.Reason(), view.Live())
	}
	if again := harness.Eval[int](t, run.Remote, "a.ctypes.data"); again != where {
		t.Errorf("the array was at %#x and is at %#x", where, again)
	}

	// What is freed stays as it is for who looks at it.
	run.Remote.Exec(t, "del a; b = [writable() for _ in range(4)]; [x.fill(7) for x in b]")
	if got := bytesOf(t, view); got[0] != 5 || got[outsideSize-1] != 5 {
		t.Errorf("the array is gone, and the view shows %d, %d", got[0], got[outsideSize-1])
	}
	closed(t, view)
	run.NoLeases(t)
	if files := harness.Eval[int](t, run.Remote, `sum("memfd:ndbridge-heap" in line for line in open("/proc/self/maps"))`); files != 0 {
		t.Errorf("%d mappings of the heap's are left of an array that is gone", files)
	}
}

// TestOutsideHeapAtOnce: who takes no copy, or wants to write, has such memory shared at the first look.
func TestOutsideHeapAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		array  string
		option hostplugin.ViewOption
		err    error
	}{
		"no copy of a bytearray": {"writable()", hostplugin.NoCopy(), nil},
		"no copy of bytes":       {"constant()", hostplugin.NoCopy(), nil},
		"no copy of a pickle":    {"unpickled()", hostplugin.NoCopy(), nil},
		"to write":               {"writable()", hostplugin.Writable(), nil},
		"a part":                 {"writable()[N // 2:]", hostplugin.NoCopy(), core.ErrNotShared},
		"a stack":                {"np.ctypeslib.as_array((ctypes.c_uint8 * 100000)())[:]", hostplugin.NoCopy(), core.ErrNotShared},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, outsideArrays+"a = "+c.array+"\nremote.serve()\n", harness.Options{Configs: promoting})
			view, err := run.Session.View(t.Context(), "a", c.option)
			if !errors.Is(err, c.err) {
				t.Fatalf("%v, want %v", err, c.err)
			}
			if err != nil {
				return
			}
			if view.Route() != contract.RouteSharedHeap || bytesOf(t, view)[outsideSize-1] != 1 {
				t.Errorf("%v (%v)", view.Route(), view.Reason())
			}
			if view.Writable() {
				if err := core.Set(view, uint8(42), outsideSize/2); err != nil {
					t.Fatal(err)
				}
				if seen := harness.Eval[int](t, run.Remote, "int(a[N // 2])"); seen != 42 {
					t.Errorf("the host has written 42, and the program sees %d", seen)
				}
			}
			closed(t, view)
		})
	}
}

// TestOutsideHeapBesideLooks: who looks while the same memory becomes shared waits for it, and sees what the program has
// written, whether a copy would do or not.
func TestOutsideHeapBesideLooks(t *testing.T) {
	t.Parallel()
	const arrays, users = 8, 6
	run := harness.Start(t, outsideArrays+"a = [np.frombuffer(bytearray(N), np.uint8) for _ in range(8)]\nfor i, x in enumerate(a): x[:] = i\nremote.serve()\n",
		harness.Options{Configs: promoting})
	var looks sync.WaitGroup
	for user := range users {
		looks.Go(func() {
			for i := range arrays {
				var options []hostplugin.ViewOption
				if user%2 == 0 {
					options = append(options, hostplugin.NoCopy())
				}
				view, err := run.Session.View(t.Context(), "a["+strconv.Itoa(i)+"]", options...)
				if err != nil {
					t.Errorf("a[%d]: %v", i, err)
					continue
				}
				if got := bytesOf(t, view); bytes.Count(got, []byte{byte(i)}) != outsideSize {
					t.Errorf("a[%d], %v, shows something else", i, view.Route())
				}
				if view.Route() != contract.RouteSharedHeap && (user%2 == 0 || view.Route() != contract.RouteStaged) {
					t.Errorf("a[%d]: %v (%v)", i, view.Route(), view.Reason())
				}
				closed(t, view)
			}
		})
	}
	looks.Wait()
	run.NoLeases(t)
}

// TestOutsideHeapStaysCopied: where promotion is not allowed, views are copies that say why, however often one looks.
func TestOutsideHeapStaysCopied(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, outsideArrays+"a = writable()\nremote.serve()\n", harness.Options{Configs: promote("never")})
	src := source(t, run, "a")
	view := viewOf(t, src)
	for value := byte(2); value < 10; value++ {
		run.Remote.Exec(t, "a[:] = "+strconv.Itoa(int(value)))
		view = refreshed(t, src, view)
		if view.Route() != contract.RouteStaged || view.Reason() != contract.ReasonOutsideHeap || bytesOf(t, view)[outsideSize-1] != value {
			t.Errorf("%v (%v), %d", view.Route(), view.Reason(), bytesOf(t, view)[outsideSize-1])
		}
	}
	closed(t, view)
}

// refreshed looks again.
func refreshed(t *testing.T, src *hostplugin.Source, view *core.View) *core.View {
	t.Helper()
	next, _, err := src.Refresh(t.Context(), view)
	if err != nil {
		t.Fatalf("refresh %s: %v", src.Name(), err)
	}
	return next
}
