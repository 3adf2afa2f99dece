package e2e

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/hostplugin"
	"github.com/ndbridge/ndbridge/test/internal/harness"
)

const lenderScript = `
import os, numpy as np, ndbridge, remote
x = np.arange(1 << 18, dtype="f4")
little = np.arange(1 << 14, dtype="f8") # beside other blocks in one file
tiny = np.arange(3.0)
none = np.zeros((0, 3))
mapped = np.memmap(os.path.join(os.path.dirname(__file__), "mapped"), "f8", "w+", shape=(1 << 14,))
ndbridge.publish("frame", np.full((300, 400), 7, "u1"))
def made(n): return np.full(n, 3.0)
remote.serve()
`

const borrowerScript = `
import time, numpy as np, remote
def sees(x): return {"type": type(x).__module__ + "." + type(x).__name__, "dtype": x.dtype.name, "shape": x.shape, "strides": x.strides, "writable": x.flags.writeable}
def first(x): return x.reshape(-1)[:4].tolist()
def addr(x): return x.__array_interface__["data"][0]
def fill(x, v): x[...] = v
kept = []
def keep(x): kept.append(x[1:])
def drop(): kept.clear()
def sleeps(x):
    while not kept: time.sleep(0.001)
remote.serve()
`

// lenderAndBorrower starts two programs in interpreters of their own.
func lenderAndBorrower(t *testing.T) (lender, borrower *harness.Run) {
	t.Helper()
	return harness.Start(t, lenderScript, harness.Options{Python: harness.Pythons(t)[0]}), harness.Start(t, borrowerScript, harness.Options{})
}

// TestCallsSeeArraysOfOtherPrograms: the array of one program, with the oldest Python and NumPy, is an argument of another one.
func TestCallsSeeArraysOfOtherPrograms(t *testing.T) {
	t.Parallel()
	lender, borrower := lenderAndBorrower(t)
	made := call(t, fn(t, lender, "made"), 1<<15)
	for name, c := range map[string]struct {
		view  *core.View
		route core.Route
		first []any
	}{
		"heap":     {lender.View(t, "x"), contract.RouteSharedHeap, []any{0.0, 1.0, 2.0, 3.0}},
		"writable": {lender.View(t, "x", hostplugin.Writable()), contract.RouteSharedHeap, []any{0.0, 1.0, 2.0, 3.0}},
		"pool":     {lender.View(t, "little"), contract.RouteSharedHeap, []any{0.0, 1.0, 2.0, 3.0}},
		"copy":     {lender.View(t, "tiny"), contract.RouteStaged, []any{0.0, 1.0, 2.0}},
		"empty":    {lender.View(t, "none"), contract.RouteEmpty, []any{}},
		"offer":    {lender.View(t, "frame"), contract.RouteSharedHeap, []any{int64(7), int64(7), int64(7), int64(7)}},
		"result":   {made.View(), contract.RouteSharedHeap, []any{3.0, 3.0, 3.0, 3.0}},
	} {
		if c.view.Route() != c.route {
			t.Errorf("%s came by %v (%v), want %v", name, c.view.Route(), c.view.Reason(), c.route)
		}
		got := value(t, fn(t, borrower, "first"), c.view)
		if values, ok := got.([]any); !ok || len(values) != len(c.first) || len(values) > 0 && values[len(values)-1] != c.first[len(values)-1] {
			t.Errorf("%s arrived as %v, want %v", name, got, c.first)
		}
		if a := arrivedBy(t, borrower, "sees", c.view); a.Writable != c.view.Writable() && name != "empty" {
			t.Errorf("%s arrived as %+v", name, a)
		}
		if name == "empty" {
			continue
		}
		addr, _ := value(t, fn(t, borrower, "addr"), c.view).(int64)
		there := harness.FilePlace(t, borrower.PID(t), uintptr(addr))
		if here := harness.FilePlace(t, os.Getpid(), c.view.Addr()); here != there {
			t.Errorf("%s: the function saw %v, the view shows %v", name, there, here)
		}
		perms := map[bool]string{false: "r--s", true: "rw-s"}[c.view.Writable()]
		if got := permsAt(t, borrower.PID(t), uintptr(addr)); got != perms {
			t.Errorf("%s: the pages are %s, want %s", name, got, perms)
		}
	}
	fails(t, fn(t, borrower, "first"), core.ErrNotShared, `mapped_files = "copy"`, lender.View(t, "mapped"))
	fails(t, fn(t, borrower, "fill"), core.ErrPython, "read-only", lender.View(t, "x"), 1)
	call(t, fn(t, borrower, "fill"), lender.View(t, "x", hostplugin.Writable()), 5)
	if x := harness.Eval[float64](t, lender.Remote, "float(x[-1])"); x != 5 {
		t.Errorf("the lender's array holds %v, want 5", x)
	}
}

func arrivedBy(t *testing.T, run *harness.Run, name string, v *core.View) (a about) {
	t.Helper()
	if err := call(t, fn(t, run, name), v).Decode(&a); err != nil {
		t.Fatal(err)
	}
	return a
}

// permsAt tells how a process has mapped an address.
func permsAt(t *testing.T, pid int, addr uintptr) string {
	t.Helper()
	for _, m := range harness.Mappings(t, pid) {
		if m.Lo <= addr && addr < m.Hi {
			return m.Perms
		}
	}
	t.Fatalf("nothing is mapped at %#x", addr)
	return ""
}

// TestTorchWritesIntoNumpyOfAnotherEnvironment: what a function of PyTorch does to a tensor, NumPy's array in another
// environment shows.
func TestTorchWritesIntoNumpyOfAnotherEnvironment(t *testing.T) {
	t.Parallel()
	lender := harness.Start(t, lenderScript, harness.Options{Python: harness.Pythons(t)[0]})
	borrower := harness.Start(t, `
import torch, remote
def scale(x: torch.Tensor, by):
    x *= by
    return x.sum().item()
remote.serve()
`, harness.Options{Python: harness.PythonAll(t)})
	v := lender.View(t, "x", hostplugin.Writable())
	lender.Remote.Exec(t, "x[:] = 2")
	if sum := value(t, fn(t, borrower, "scale"), v, 3); sum != 6.0*(1<<18) {
		t.Errorf("scale gave %v", sum)
	}
	if x := harness.Eval[[]float64](t, lender.Remote, "[float(x[0]), float(x[-1])]"); x[0] != 6 || x[1] != 6 {
		t.Errorf("the lender's array holds %v, want 6", x)
	}
	v.Close()
	lender.NoLeases(t)
}

// TestLentArraysAreKept: what a program keeps of another one's array stays leased there until it is dropped.
func TestLentArraysAreKept(t *testing.T) {
	t.Parallel()
	lender, borrower := lenderAndBorrower(t)
	keep, drop := fn(t, borrower, "keep"), fn(t, borrower, "drop")
	lend := func(name string) {
		t.Helper()
		v := lender.View(t, name)
		if n := call(t, keep, v).Retained(); n != 1 {
			t.Errorf("%d arrays of %s retained, want 1", n, name)
		}
		v.Close()
	}
	lend("x")
	lend("frame")
	lender.Remote.Exec(t, "x = frame = None; ndbridge.unpublish('frame'); y = np.zeros(1 << 18, 'f4'); z = np.zeros((300, 400), 'u1')")
	if x := harness.Eval[[]float64](t, borrower.Remote, "[float(kept[0][0]), float(kept[1][0, 0])]"); x[0] != 1 || x[1] != 7 {
		t.Errorf("what is kept holds %v, want 1 and 7", x)
	}
	if n := lender.Leases(t); n == 0 {
		t.Error("no lease stands on what the other program keeps")
	}
	call(t, drop)
	lender.NoLeases(t)

	v := lender.View(t, "little")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := fn(t, borrower, "sleeps").Call(ctx, v); err == nil {
		t.Error("a call that was cut short has no error")
	}
	v.Close()
	lender.NoLeases(t) // since the function was interrupted

	lend("little")
	if err := borrower.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	lender.NoLeases(t)
}

// TestLendersMayEnd: what was lent stays readable when the lender is killed, and what it forks stays apart.
func TestLendersMayEnd(t *testing.T) {
	t.Parallel()
	lender, borrower := lenderAndBorrower(t)
	x, little := lender.View(t, "x"), lender.View(t, "little")
	call(t, fn(t, borrower, "keep"), x)
	lender.Remote.Exec(t, "pid = os.fork()\nif pid == 0: os._exit(0)\nos.waitpid(pid, 0)\nx[:] = 9")
	if x := harness.Eval[float64](t, borrower.Remote, "float(kept[0][0])"); x != 1 {
		t.Errorf("after the lender's fork, what is kept holds %v, want 1", x)
	}
	process, err := os.FindProcess(lender.PID(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-lender.Done()
	if got, _ := value(t, fn(t, borrower, "first"), x).([]any); len(got) < 4 || got[3] != 3.0 {
		t.Errorf("what was lent before the lender's end arrives as %v", got)
	}
	fails(t, fn(t, borrower, "first"), core.ErrUnavailable, "hand it over no more", little)
	if v := harness.Eval[float64](t, borrower.Remote, "float(kept[0].sum())"); v <= 0 {
		t.Errorf("what is kept sums up to %v", v)
	}
	if err := lender.Close(); err != nil && !strings.Contains(err.Error(), "killed") {
		t.Errorf("Close: %v", err)
	}
	if v := harness.Eval[float64](t, borrower.Remote, "float(kept[0][0])"); v != 1 {
		t.Errorf("after the lender's session, what is kept holds %v, want 1", v)
	}
	call(t, fn(t, borrower, "drop"))
}

// TestCallsSeePartsOfViews: what is derived from a view of an array of the same program, or of another one, arrives as an
// array over the same memory, and a read-only one is protected by its pages.
func TestCallsSeePartsOfViews(t *testing.T) {
	t.Parallel()
	lender, borrower := lenderAndBorrower(t)
	borrower.Remote.Exec(t, "x = np.arange(1 << 18, dtype='f4')")
	for name, run := range map[string]*harness.Run{"its own": borrower, "another's": lender} {
		v := run.View(t, "x", hostplugin.Writable())
		part, err := v.Sub(0, 8, 108)
		if err != nil {
			t.Fatal(err)
		}
		odd, err := part.Step(0, -2)
		if err != nil {
			t.Fatal(err)
		}
		safe, err := part.AsReadOnly()
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := value(t, fn(t, borrower, "first"), odd).([]any); len(got) < 4 || got[0] != 107.0 || got[3] != 101.0 {
			t.Errorf("%s: the part arrived as %v", name, got)
		}
		call(t, fn(t, borrower, "fill"), part, -1)
		if got := harness.Eval[[]float64](t, run.Remote, "x[[7, 8, 107, 108]].tolist()"); got[0] != 7 || got[1] != -1 || got[2] != -1 || got[3] != 108 {
			t.Errorf("%s: around the part that was filled the array holds %v", name, got)
		}
		fails(t, fn(t, borrower, "fill"), core.ErrPython, "read-only", safe, 1)
		addr, _ := value(t, fn(t, borrower, "addr"), safe).(int64)
		if perms := permsAt(t, borrower.PID(t), uintptr(addr)); perms != "r--s" {
			t.Errorf("%s: the pages of a read-only view are %s", name, perms)
		}
		for _, d := range []*core.View{part, odd, safe, v} {
			d.Close()
		}
		run.NoLeases(t)
	}
}
