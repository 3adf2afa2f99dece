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
// see their own array afterwards, as without ndbridge, and the host's view must keep its values.
func TestForkKeepsArraysApart(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import os, numpy as np, remote
a = np.full(1 << 17, 1.0)

def fork():
    """Fork a child that overwrites a; give what the child saw, while the parent overwrites it too."""
    go, ready = os.pipe(), os.pipe()
    seen = os.pipe()
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
    os.write(go[1], b"x")
    os.waitpid(pid, 0)
    text = os.read(seen[0], 100).decode()
    for fd in go + ready + seen:
        os.close(fd)
    return [mine] + [float(x) for x in text.split()]

remote.serve()
`, harness.Options{})
	before := run.View(t, "a")
	if before.Route() != contract.RouteSharedHeap {
		t.Fatalf("route %v (%v), want shared-heap", before.Route(), before.Reason())
	}
	const n = 1 << 17
	sums := harness.Eval[[]float64](t, run.Remote, "fork()")
	if want := [3]float64{n, n, 5 * n}; [3]float64(sums) != want {
		t.Errorf("parent, child, child at last saw sums %v, want %v", sums, want)
	}
	for i, x := range slice[float64](t, before) {
		if x != 1 && x != 7 {
			t.Fatalf("the host's view holds %v at %d: a child's value", x, i)
		}
	}

	after := run.View(t, "a")
	if after.Route() != contract.RouteStaged || after.Reason() != contract.ReasonFrozen {
		t.Errorf("after a fork: route %v, reason %v; want staged, frozen", after.Route(), after.Reason())
	}
	for i, x := range slice[float64](t, after) {
		if x != 7 {
			t.Fatalf("a new view holds %v at %d, want the parent's 7", x, i)
		}
	}
	if _, err := run.Session.View(t.Context(), "a", hostplugin.Writable()); !errors.Is(err, core.ErrNotShared) {
		t.Errorf("a writable view of a frozen array: %v, want ErrNotShared", err)
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
`, harness.Options{})
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
		if before := run.View(t, "a"); before.Route() != contract.RouteSharedHeap {
			t.Fatalf("before %s: route %v (%v)", statement, before.Route(), before.Reason())
		}
		run.Remote.Exec(t, statement)
		if after := run.View(t, "a"); (after.Reason() == contract.ReasonFrozen) != frozen {
			t.Errorf("after %s: route %v (%v), want frozen: %v", statement, after.Route(), after.Reason(), frozen)
		}
	}
}
