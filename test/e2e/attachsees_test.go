package e2e

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// attachTable is where TestAttachSees writes what it has seen: go test ./test/e2e -run TestAttachSees -attach.table FILE.
var attachTable = flag.String("attach.table", "", "write the table of docs/results/attach.md into this file")

// way is how a program lets hosts in.
type way struct {
	how    string // in the table
	begins string // what the program does first, and then prints a line
	heap   bool   // it has the shared heap
	target func(run *harness.Running) hostplugin.Target
	opts   func(t *testing.T, opts *harness.RunningOptions)
	only   string // the one version of Python that can: "" is all
}

// ways are the rows of the table for each interpreter.
var ways = []way{
	{how: "`hostplugin.PID`", begins: "print()", target: func(run *harness.Running) hostplugin.Target { return hostplugin.PID(run.PID) }, only: "3.14"},
	{
		how: "`ndbridge.listen()`", begins: "import ndbridge; print(ndbridge.listen())",
		target: func(run *harness.Running) hostplugin.Target { return hostplugin.Socket(run.Socket) },
	},
	{
		how: "`ndbridge run --share`", begins: "print(__import__('os').environ['XDG_RUNTIME_DIR'])", heap: true,
		target: func(run *harness.Running) hostplugin.Target {
			return hostplugin.Socket(filepath.Join(run.Socket, "ndbridge", "alone."+itoa(run.PID))).Await()
		},
		opts: func(t *testing.T, opts *harness.RunningOptions) {
			t.Helper()
			opts.Below = []string{bridge(t), "run", "--share", "--"}
		},
	},
	{
		how: "`ndbridge.listen()`, with the shared heap", begins: "import ndbridge; print(ndbridge.listen())", heap: true,
		target: func(run *harness.Running) hostplugin.Target { return hostplugin.Socket(run.Socket) },
		opts:   func(_ *testing.T, opts *harness.RunningOptions) { opts.Heap = true },
	},
}

// lets reports whether the interpreter lets hosts in so.
func (w way) lets(python string) bool {
	return w.only == "" || strings.Contains(python, "/"+w.only+"-")
}

// TestAttachSees: a host that comes to a running program sees what one sees that has started it: global variables and local ones,
// live, without a copy where the program has the shared heap. Where it has not, and malloc has mapped their memory for them alone,
// they are so from the second look on.
func TestAttachSees(t *testing.T) {
	var mu sync.Mutex
	rows := make(map[string]string)
	t.Run("all", func(t *testing.T) {
		for _, python := range append(harness.Pythons(t), harness.Python(t)) {
			for _, w := range ways {
				if !w.lets(python) {
					continue
				}
				t.Run(filepath.Base(filepath.Dir(filepath.Dir(python)))+" "+w.how, func(t *testing.T) {
					t.Parallel()
					key, row := attachSees(t, python, w)
					mu.Lock()
					defer mu.Unlock()
					rows[key] = row
				})
			}
		}
	})
	if *attachTable == "" || t.Failed() {
		return
	}
	text := "# Attaching\n\nWritten by `go test ./test/e2e -run TestAttachSees -attach.table FILE`.\n\n" +
		"| Python | program | global array | local array | in `__slots__` |\n| --- | --- | --- | --- | --- |\n"
	lines := []string{text}
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		lines = append(lines, rows[key])
	}
	if err := os.WriteFile(*attachTable, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// attachSees is TestAttachSees for one interpreter. It gives a row of the table, and what to sort it by.
func attachSees(t *testing.T, python string, w way) (key, row string) {
	t.Helper()
	opts := harness.RunningOptions{Python: python}
	if w.opts != nil {
		w.opts(t, &opts)
	}
	run := harness.RunAlone(t, w.begins+`
import sys; sys.stdout.flush()
import numpy as np, remote
x = np.full(5 << 20, 1.0)
class Item:
    __slots__ = ("array",)
item = Item()
item.array = np.full(5 << 20, 3.0)
def main():
    batch = np.full(5 << 20, 2.0)
    remote.serve()
main()
`, opts)
	run.Remote.Exec(t, "import platform")
	version := harness.Eval[string](t, run.Remote, "platform.python_version() + ', NumPy ' + np.__version__")
	key = harness.Eval[string](t, run.Remote, "'%02d.%02d' % __import__('sys').version_info[:2] + np.__version__")
	host := harness.NewHost(t)
	session := attachWhileItRuns(t, host, run, w.target(run))
	s := &harness.Run{Session: session, Remote: run.Remote, Host: host, Log: harness.NewLog()}
	if info, err := s.Info(t.Context()); err != nil || info.PID != run.PID || w.only == "" && info.Program != "alone" {
		t.Errorf("%+v, %v; want process %d, called alone", info, err, run.PID)
	}
	var seen []string
	for _, c := range []struct {
		name string
		want float64
	}{{"x", 1}, {"main().batch", 2}, {"item.array", 3}} {
		view, text := s.View(t, c.name), "live, not copied"
		if !w.heap {
			if view.Route() != contract.RouteStaged || view.Reason() != contract.ReasonHeapOff {
				t.Errorf("%s: the first look: route %v, reason %q", c.name, view.Route(), view.Reason())
			}
			view, text = s.View(t, c.name), "live, not copied, from the second look on"
		}
		if view.Route() != contract.RouteSharedHeap || !view.Live() {
			t.Errorf("%s: route %v, reason %q", c.name, view.Route(), view.Reason())
		}
		if got := slice[float64](t, view)[7]; got != c.want {
			t.Errorf("%s[7] = %v, want %v", c.name, got, c.want)
		}
		seen = append(seen, text)
	}
	view := s.View(t, "x")
	run.Remote.Exec(t, "x[7] = 3")
	if got := slice[float64](t, view)[7]; got != 3 {
		t.Errorf("x[7] = %v after the program has written 3", got)
	}
	attachChanges(t, run, s, view)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if harness.Eval[float64](t, run.Remote, "float(x[7])") != 5 {
		t.Error("the program has lost its array")
	}
	return key + w.how, fmt.Sprintf("| %s | %s | %s |\n", version, w.how, strings.Join(seen, " | "))
}

// attachWhileItRuns attaches to a program whose main thread runs code meanwhile.
func attachWhileItRuns(t *testing.T, host *hostplugin.Host, run *harness.Running, target hostplugin.Target) *hostplugin.Session {
	t.Helper()
	var session *hostplugin.Session
	var err error
	come := make(chan struct{})
	go func() {
		defer close(come)
		session, err = host.Attach(t.Context(), target)
	}()
	for {
		select {
		case <-come:
			if err != nil {
				t.Fatal(err)
			}
			return session
		default:
			run.Remote.Exec(t, "pass")
		}
	}
}

// attachChanges does to x, of which a view is given, what programs do to arrays, and holds that both sides see what they should.
func attachChanges(t *testing.T, run *harness.Running, s *harness.Run, view *core.View) {
	t.Helper()
	values := slice[float64](t, view)
	run.Remote.Exec(t, "import os; os.waitpid(os.fork() or (x.fill(9), os._exit(0)), 0); x[7] = 4")
	harness.Eventually(t, harness.StartBound, "the view is live after a fork", view.Live)
	if values[7] != 4 || values[8] != 1 {
		t.Errorf("after a fork, %v and %v", values[7], values[8])
	}
	written := s.View(t, "x", hostplugin.Writable())
	if err := core.Set(written, 5.0, 7); err != nil {
		t.Error(err)
	}
	if seen := harness.Eval[float64](t, run.Remote, "float(x[7])"); seen != 5 {
		t.Errorf("the host has written 5, and the program sees %v", seen)
	}
	// What malloc moves or frees stays as it is for who looks at it.
	run.Remote.Exec(t, "x.resize(6 << 20, refcheck=False); item.array.resize(6 << 20, refcheck=False); x[8] = 2; item.array[8] = 2")
	if values[7] != 5 || values[8] != 1 {
		t.Errorf("the array was resized, and the view shows %v and %v", values[7], values[8])
	}
	if now := slice[float64](t, s.View(t, "x")); len(now) != 6<<20 || now[7] != 5 || now[8] != 2 || now[6<<20-1] != 0 {
		t.Errorf("%d elements, %v and %v", len(now), now[7], now[8])
	}
	run.Remote.Exec(t, "del item.array; b = [np.full(5 << 20, 7.0) for _ in range(4)]")
	if values[7] != 5 || values[8] != 1 {
		t.Errorf("others have taken the memory, and the view shows %v and %v", values[7], values[8])
	}
}

// TestAttachSeesChildOfLateProgram: a forked child of a program that has loaded the shared heap late shares arrays of its own as well.
func TestAttachSeesChildOfLateProgram(t *testing.T) {
	t.Parallel()
	run := harness.RunAlone(t, `
import ndbridge, numpy as np, os, remote
print(ndbridge.listen(), flush=True)
x, y = np.full(5 << 20, 1.0), np.full(5 << 20, 2.0)
def child():
    r, w = os.pipe()
    if os.fork() == 0:
        x[5] = 9
        os.write(w, ndbridge.listen().encode())
        turn.wait() # for the parent's x to change
        x[6] = 8
        done.wait()
        os._exit(0)
    return os.read(r, 1000).decode()
import multiprocessing
turn, done = multiprocessing.Event(), multiprocessing.Event()
remote.serve()
`, harness.RunningOptions{})
	host := harness.NewHost(t)
	parent := run.Attach(t, host)
	parent.View(t, "x")
	ofParent := slice[float64](t, parent.View(t, "x")) // in a file from now on
	socket := harness.Eval[string](t, run.Remote, "child()")
	child, err := host.Attach(t.Context(), hostplugin.Socket(socket))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"x": 9, "y": 2} {
		var v *core.View
		for range 2 {
			if v, err = child.View(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		values := slice[float64](t, v)
		if v.Route() != contract.RouteSharedHeap || values[5] != want {
			t.Errorf("%s of the child: route %v, reason %q, %v", name, v.Route(), v.Reason(), values[5])
		}
		if name == "x" {
			run.Remote.Exec(t, "x[6] = 7; turn.set()")
			harness.Eventually(t, harness.StartBound, "the child's write is seen", func() bool { return values[6] == 8 })
		}
	}
	run.Remote.Exec(t, "x[7] = 3")
	harness.Eventually(t, harness.StartBound, "the parent's array is live", func() bool { return ofParent[5] == 1 && ofParent[6] == 7 && ofParent[7] == 3 })
	if err := child.Close(); err != nil {
		t.Error(err)
	}
	run.Remote.Exec(t, "done.set()")
}

// TestAttachSharesWhatIsKept: in a program without the shared heap, memory becomes shared in place if an object keeps it. What may be freed by
// a pointer is copied.
func TestAttachSharesWhatIsKept(t *testing.T) {
	t.Parallel()
	run := harness.RunAlone(t, `
import ctypes
import jax.numpy as jnp, numpy as np, torch, ndbridge, remote
N = 5 << 20
made = np.full(N, 1.0)
part, lent = made[1:-1].view(np.int64), memoryview(made)
raw = bytearray(8 * N)
read, plain = np.frombuffer(raw), memoryview(raw)
tensor, immutable = torch.zeros(N), jnp.zeros(2 * N)
of_numpy = torch.from_numpy(np.full(N, 2.0))
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
def pointer():
    return (ctypes.c_double * N).from_address(libc.malloc(8 * N))
of_pointer, lent_pointer, pointed = np.ctypeslib.as_array(pointer()), memoryview(pointer()).cast("B"), pointer()
class Interface:
    def __init__(self):
        self.__array_interface__ = {"data": (libc.malloc(8 * N), False), "shape": (N,), "typestr": "<f8", "version": 3}
of_interface = np.asarray(Interface())
print(ndbridge.listen(), flush=True)
remote.serve()
`, harness.RunningOptions{Python: harness.PythonAll(t), Env: []string{"NDBRIDGE_HEAP_PROMOTE=always"}})
	attached := run.Attach(t, harness.NewHost(t))
	for name, kept := range map[string]bool{
		"made": true, "part": true, "lent": true, "read": true, "plain": true, "raw": true, "tensor": true, "immutable": true,
		"of_numpy": false, "of_pointer": false, "lent_pointer": false, "pointed": false, "of_interface": false,
	} {
		closed(t, attached.View(t, name)) // one copy is a better choice
		v := attached.View(t, name)
		if want := map[bool]core.Route{true: contract.RouteSharedHeap, false: contract.RouteStaged}[kept]; v.Route() != want {
			t.Errorf("%s: route %v, reason %q", name, v.Route(), v.Reason())
		}
		closed(t, v)
	}
}
