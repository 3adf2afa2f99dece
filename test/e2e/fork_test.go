package e2e

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestForkKeepsArraysApart forks a program while arrays of it are leased. Parent and child must each
// see their own array afterwards, as without ndbridge, and the host's view must not show the child's. A new one shares
// the parent's array, from which the child stays apart.
func TestForkKeepsArraysApart(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import os, numpy as np, remote
a = np.full(1 << 17, 1.0)

def fork():
    """Fork a child that overwrites a; give what the child saw, while the parent overwrites it too."""
    global go, seen, pid
    go, ready, seen = os.pipe(), os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        before = float(a.sum())
        a[:] = 5
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        os.write(seen[1], ("%r %r" % (before, float(a.sum()))).encode())
        os._exit(0)
    os.read(ready[0], 1)
    mine = float(a.sum())
    a[:] = 7
    return mine

def last():
    """Give what the child saw before and after it was told that it may end."""
    os.write(go[1], b"x")
    os.waitpid(pid, 0)
    return [float(x) for x in os.read(seen[0], 100).decode().split()]

remote.serve()
`, harness.Options{Configs: promoting})
	before := run.View(t, "a")
	if before.Route() != contract.RouteSharedHeap {
		t.Fatalf("route %v (%v), want shared-heap", before.Route(), before.Reason())
	}
	const n = 1 << 17
	if sum := harness.Eval[float64](t, run.Remote, "fork()"); sum != n {
		t.Errorf("the parent saw the sum %v, want %v", sum, n)
	}
	for i, x := range slice[float64](t, before) {
		if x != 1 && x != 7 {
			t.Fatalf("the host's view holds %v at %d: a child's value", x, i)
		}
	}

	after := run.View(t, "a", hostplugin.Writable())
	if after.Route() != contract.RouteSharedHeap || !after.Live() {
		t.Errorf("after a fork: route %v (%v), live: %v", after.Route(), after.Reason(), after.Live())
	}
	for i, x := range slice[float64](t, after) {
		if x != 7 {
			t.Fatalf("a new view holds %v at %d, want the parent's 7", x, i)
		}
	}
	slice[float64](t, after)[0] = 8
	run.Remote.Exec(t, "assert a[0] == 8; a[1] = 9")
	if x := slice[float64](t, after)[1]; x != 9 {
		t.Errorf("the new view shows %v, not what the parent has written", x)
	}
	if sums, want := harness.Eval[[]float64](t, run.Remote, "last()"), [2]float64{n, 5 * n}; [2]float64(sums) != want {
		t.Errorf("the child saw the sums %v, want %v", sums, want)
	}
	run.Remote.Exec(t, "b = np.full(1 << 17, 2.0)")
	if fresh := run.View(t, "b", hostplugin.Writable()); fresh.Route() != contract.RouteSharedHeap {
		t.Errorf("an array made after the fork: route %v (%v), want shared-heap", fresh.Route(), fresh.Reason())
	}
}

// TestMultiprocessingWhileLeased runs pools of every start method over an array that the host reads
// and writes meanwhile.
func TestMultiprocessingWhileLeased(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"fork", "forkserver", "spawn"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			run := harness.Start(t, fmt.Sprintf(`
import multiprocessing, sys
import ndbridge
import numpy as np

a = np.arange(1 << 17, dtype="f8")

def total(bounds):
    try:
        ndbridge.publish("from_child", a)
        assert not ndbridge.connected, "a child may publish"
        assert ndbridge.serve() is None, "a child serves calls"
        assert not hasattr(ndbridge.host, "f"), "a child calls the host"
    except RuntimeError as error:  # in a forked one, the module is the parent's
        assert "no host" in str(error), error
    mine = a.copy()
    mine[:] = 0
    return float(a[slice(*bounds)].sum())

def sums():
    with multiprocessing.get_context(%q).Pool(2) as pool:
        step = 1 << 13
        return pool.map(total, [(i, i + step) for i in range(0, len(a), step)])

if __name__ == "__main__":
    import remote
    remote.serve()
`, method), harness.Options{})
			view := run.View(t, "a")
			sums := harness.Eval[[]any](t, run.Remote, "sums()")
			got := 0.0
			for _, sum := range sums {
				part, ok := sum.(float64)
				if !ok {
					t.Fatalf("a child says %v", sum)
				}
				got += part
			}
			const n = 1 << 17
			if want := float64(n) * (n - 1) / 2; got != want {
				t.Errorf("the children summed to %v, want %v", got, want)
			}
			for i, x := range slice[float64](t, view) {
				if x != float64(i) {
					t.Fatalf("the host sees %v at %d", x, i)
				}
			}
			again := run.View(t, "a")
			if last := slice[float64](t, again)[n-1]; last != n-1 {
				t.Errorf("a new view holds %v, want %v", last, n-1)
			}
		})
	}
}

// TestDataLoaderWhileLeased runs a torch DataLoader with workers over arrays that are leased.
func TestDataLoaderWhileLeased(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import numpy as np, torch
from torch.utils.data import DataLoader, Dataset

samples = np.arange(1 << 18, dtype="f4").reshape(1 << 10, 1 << 8)

class Rows(Dataset):
    def __len__(self): return len(samples)
    def __getitem__(self, i): return torch.from_numpy(samples[i]) * 2

def epoch():
    total, batches = 0.0, 0
    for batch in DataLoader(Rows(), batch_size=64, num_workers=2, multiprocessing_context="fork"):
        total += float(batch.double().sum())
        batches += 1
    return [total, batches]

if __name__ == "__main__":
    import remote
    remote.serve()
`, harness.Options{Python: harness.PythonAll(t)})
	view := run.View(t, "samples")
	const n = 1 << 18
	for range 2 {
		result := harness.Eval[[]float64](t, run.Remote, "epoch()")
		if want := float64(n) * (n - 1); result[0] != want || result[1] != 16 {
			t.Errorf("an epoch gave %v, want %v in 16 batches", result, want)
		}
	}
	for i, x := range slice[float32](t, view) {
		if x != float32(i) {
			t.Fatalf("the host sees %v at %d", x, i)
		}
	}
}

// TestForkedArraysThatStayPrivate: where memory cannot be moved beside whoever writes to it, as in a program for which
// the kernel writes when it likes, an array that lived through a fork is copied each time.
func TestForkedArraysThatStayPrivate(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import ctypes, os, platform, numpy as np, remote
io_setup = {"x86_64": 206, "aarch64": 0}[platform.machine()]
context = ctypes.c_ulong(0)
assert ctypes.CDLL(None).syscall(io_setup, 1, ctypes.byref(context)) == 0
a = np.full(1 << 17, 1.0)
remote.serve()
`, harness.Options{Configs: promoting})
	src := source(t, run, "a")
	view := viewOf(t, src)
	run.Remote.Exec(t, "os.waitpid(os.fork() or os._exit(0), 0)")
	for value := range 3 {
		run.Remote.Exec(t, fmt.Sprintf("a[:] = %d", value))
		next, _, err := src.Refresh(t.Context(), view)
		if err != nil {
			t.Fatal(err)
		}
		if view = next; view.Reason() != contract.ReasonFrozen || first(t, view) != float64(value) {
			t.Errorf("it shows %v (%v), want a copy of %d", first(t, view), view.Reason(), value)
		}
	}
	closed(t, view)
	if _, err := run.Session.View(t.Context(), "a", hostplugin.Writable()); !errors.Is(err, core.ErrNotShared) {
		t.Errorf("a writable view of a frozen array: %v, want ErrNotShared", err)
	}
}

// TestPromotedBesideWriters forks a program again and again while threads of it write to an array, without the GIL, and
// the host refreshes its view: no write is lost, in the parent, and none reaches the host from a child.
func TestPromotedBesideWriters(t *testing.T) {
	t.Parallel()
	const rounds, threads, n = 20, 2, 1 << 21
	run := harness.Start(t, fmt.Sprintf(`
import os, threading, numpy as np, remote
a = np.zeros((%d, %d), "i8")
one, stop, passes = np.ones(%[2]d, "i8"), False, [0] * %[1]d

def write(k):
    while not stop:
        np.add(a[k], one, out=a[k])
        passes[k] += 1

def fork():
    pid = os.fork()
    if pid == 0:
        a[:] = -1
        os._exit(0)
    os.waitpid(pid, 0)

def end():
    global stop
    stop = True
    for t in writers:
        t.join()
    return [[int(row.min()), int(row.max()), p] for row, p in zip(a, passes)]

writers = [threading.Thread(target=write, args=(k,)) for k in range(%[1]d)]
for t in writers:
    t.start()
remote.serve()
`, threads, n), harness.Options{Configs: promoting})
	src := source(t, run, "a")
	view := viewOf(t, src)
	for round := range rounds {
		run.Remote.Exec(t, "fork()")
		next, _, err := src.Refresh(t.Context(), view)
		if err != nil || next.Route() != contract.RouteSharedHeap || !next.Live() {
			t.Fatalf("round %d: %v, %v", round, next, err)
		}
		view = next
	}
	ends := harness.Eval[[][]int64](t, run.Remote, "end()")
	seen := slice[int64](t, view)
	for k, end := range ends {
		lo, hi, passes := end[0], end[1], end[2]
		if lo != passes || hi != passes || passes == 0 {
			t.Errorf("thread %d has added %d times, and the sums are from %d to %d", k, passes, lo, hi)
		}
		for i, x := range seen[k*n : (k+1)*n] {
			if x != passes {
				t.Fatalf("the host sees %d at %d, want %d", x, i, passes)
			}
		}
	}
	closed(t, view)
	run.NoLeases(t)
}

// TestTrainingWithForkedWorkers refreshes views of a model whose DataLoader forks workers at each epoch: they are live
// after each, and nothing is left of those before.
func TestTrainingWithForkedWorkers(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import os, torch, remote
from torch.utils.data import DataLoader, Dataset
torch.set_num_threads(1)

class Rows(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.ones(256), i % 10

model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
step = torch.zeros(1 << 14, dtype=torch.int64)

def epoch():
    for x, y in DataLoader(Rows(), batch_size=16, num_workers=2, multiprocessing_context="fork"):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        step.add_(1)
    return [int(step[0]), float(model[0].weight[3, 4])]

files = lambda: len(os.listdir("/proc/self/fd"))

if __name__ == "__main__":
    remote.serve()
`, harness.Options{Python: harness.PythonAll(t), Configs: promoting})
	sources := []*hostplugin.Source{source(t, run, "step"), source(t, run, "model[0].weight")}
	views := []*core.View{viewOf(t, sources[0]), viewOf(t, sources[1])}
	files := 0.0
	const epochs = 8
	for n := range epochs {
		result := harness.Eval[[]float64](t, run.Remote, "epoch()")
		for i, src := range sources {
			next, _, err := src.Refresh(t.Context(), views[i])
			if err != nil || next.Copied() || !next.Live() {
				t.Fatalf("epoch %d, %s: %v, %v", n, src.Name(), next, err)
			}
			views[i] = next
		}
		if got := slice[int64](t, views[0])[0]; float64(got) != result[0] {
			t.Errorf("epoch %d: the host sees step %d, want %v", n, got, result[0])
		}
		if got := slice[float32](t, views[1])[3*256+4]; float64(got) != result[1] {
			t.Errorf("epoch %d: the host sees the weight %v, want %v", n, got, result[1])
		}
		if now := harness.Eval[float64](t, run.Remote, "files()"); n == 1 {
			files = now
		} else if n == epochs-1 && now > files+2 { // what the heap keeps for others comes and goes
			t.Errorf("%v descriptors, after the second epoch %v", now, files)
		}
	}
	for _, v := range views {
		closed(t, v)
	}
	run.NoLeases(t)
}

// TestWhichChildrenFreezeArrays starts children in the ways that Python has: those that are forked freeze the
// arrays that exist, and no others do.
func TestWhichChildrenFreezeArrays(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import multiprocessing, os, pty, subprocess
import numpy as np
if __name__ == "__main__":
    import remote
    remote.serve()
`, harness.Options{Configs: promote("never")})
	for statement, frozen := range map[string]bool{
		`subprocess.run(["true"])`:                                                     false,
		`subprocess.run(["true"], close_fds=False)`:                                    false,
		`subprocess.run("true", shell=True, cwd="/")`:                                  false,
		`subprocess.run(["true"], start_new_session=True)`:                             false,
		`os.popen("true").read()`:                                                      false,
		`os.system("true")`:                                                            false,
		`os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ), 0)`:             false,
		`p = multiprocessing.get_context("spawn").Process(); p.start(); p.join()`:      false,
		`p = multiprocessing.get_context("forkserver").Process(); p.start(); p.join()`: false,
		`p = multiprocessing.get_context("fork").Process(); p.start(); p.join()`:       true,
		`os.waitpid(os.fork() or os._exit(0), 0)`:                                      true,
		`subprocess.run(["true"], preexec_fn=lambda: None)`:                            true,
		`subprocess.run(["true"], group=os.getgid())`:                                  true,
		`subprocess.run(["true"], user=os.getuid())`:                                   true,
	} {
		run.Remote.Exec(t, "a = np.ones(1 << 17)")
		before := run.View(t, "a")
		if before.Route() != contract.RouteSharedHeap {
			t.Fatalf("before %s: route %v (%v)", statement, before.Route(), before.Reason())
		}
		run.Remote.Exec(t, statement)
		if before.Live() == frozen {
			t.Errorf("after %s the view is live: %v", statement, !frozen)
		}
		if after := run.View(t, "a"); after.Live() == frozen || (after.Reason() == contract.ReasonFrozen) != frozen {
			t.Errorf("after %s: route %v (%v), live: %v", statement, after.Route(), after.Reason(), after.Live())
		}
	}
}
