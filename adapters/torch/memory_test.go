package torch_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// sharedScript has two numbers at both ends of tensors that reach the host in different ways.
const sharedScript = `
import tempfile
import weakref

import numpy as np
import torch

model = torch.nn.Sequential(torch.nn.Linear(256, 512, dtype=torch.float64), torch.nn.ReLU())
state = {"x": [torch.zeros(512, 256, dtype=torch.float64)]}
turned = torch.zeros(512, 256, dtype=torch.float64).t()
numbers = np.zeros((512, 256))
over = torch.from_numpy(numbers)
wide = torch.zeros(512, 256, dtype=torch.float64)[100:, 1::2]
small = torch.zeros(3, 5, dtype=torch.float64)
passed = torch.zeros(512, 256, dtype=torch.float64).share_memory_()
file = tempfile.NamedTemporaryFile()
mapped = torch.from_file(file.name, shared=True, size=512 * 256, dtype=torch.float64).reshape(512, 256)
tensors = {
    "model[0].weight": model[0].weight, 'state["x"][0]': state["x"][0], "turned": turned, "over": over, "numbers": numbers,
    "wide": wide, "small": small, "passed": passed, "mapped": mapped,
}


class Change:
    """Writes both ends of every tensor when the host looks at change[number]."""

    def __getitem__(self, number):
        for t in tensors.values():
            with torch.no_grad():
                t[0, 0] = number
                t[-1, -1] = -number
        return np.array([float(number)])


class Look:
    """Shows both ends of a tensor when the host looks at look[name]."""

    def __getitem__(self, name):
        t = tensors[name]
        return np.array([float(t[0, 0]), float(t[-1, -1])])


change, look = Change(), Look()
`

// TestShared proves that no copy was made: what Python writes, the host sees in a view that it has
// already, and what the host writes, Python sees. NumPy and PyTorch are served by one session.
func TestShared(t *testing.T) {
	t.Parallel()
	for version, python := range pythons(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, sharedScript, programtest.Options{Python: python})
			p.Finish(t)
			views := map[string]*core.View{}
			for name, want := range map[string]struct {
				framework string
				route     core.Route
			}{
				"model[0].weight": {"torch", contract.RouteSharedHeap}, `state["x"][0]`: {"torch", contract.RouteSharedHeap},
				"turned": {"torch", contract.RouteSharedHeap}, "over": {"torch", contract.RouteSharedHeap},
				"numbers": {"numpy", contract.RouteSharedHeap}, "wide": {"torch", contract.RouteSharedHeap},
				"passed": {"torch", contract.RouteMappedFile}, "mapped": {"torch", contract.RouteMappedFile},
			} {
				v, err := p.View(t, name, contract.Request{Writable: true, Copy: contract.CopyNever})
				if err != nil {
					t.Fatal(err)
				}
				if v.Framework() != want.framework || v.Route() != want.route || v.Copied() {
					t.Errorf("%s is of %s, by %v because of %v", name, v.Framework(), v.Route(), v.Reason())
				}
				views[name] = v
			}
			numbers(t, p, "change[7]")
			for name, v := range views {
				first, errFirst := core.At[float64](v, 0, 0)
				last, errLast := core.At[float64](v, v.Dim(0)-1, v.Dim(1)-1)
				if first != 7 || last != -7 || errFirst != nil || errLast != nil {
					t.Errorf("Python wrote 7 and -7 into %s, the host sees %v and %v", name, first, last)
				}
			}
			for name, v := range views {
				if err := errors.Join(core.Set(v, 12.5, 0, 0), core.Set(v, -12.5, v.Dim(0)-1, v.Dim(1)-1)); err != nil {
					t.Error(err)
				}
				if got := numbers(t, p, "look["+strconv.Quote(name)+"]"); !slices.Equal(got, []float64{12.5, -12.5}) {
					t.Errorf("the host wrote 12.5 and -12.5 into %s, Python sees %v", name, got)
				}
			}
			if _, err := p.View(t, "small", contract.Request{Writable: true}); core.Category(err) != "memory cannot be shared" {
				t.Errorf("a copy can be written: %v", err)
			}
		})
	}
}

// numbers views and copies what the program computes for a name.
func numbers(t *testing.T, p *programtest.Program, name string) []float64 {
	t.Helper()
	v, err := p.View(t, name, contract.Request{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	x, err := core.Slice[float64](v)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(x)
}

// TestHeld shows that memory that a tensor merely wraps stays its owner's, with the owner alive, as
// long as a lease stands, and no longer.
func TestHeld(t *testing.T) {
	t.Parallel()
	for version, python := range pythons(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, `
import weakref

import numpy as np
import torch

owner = np.arange(100000.0)
tensor = torch.from_numpy(owner)
gone = np.zeros(1)
weakref.finalize(owner, lambda: gone.__setitem__(0, 1))


class Forget:
    @property
    def now(self):
        global owner, tensor
        owner = tensor = None
        return gone


forget = Forget()
`, programtest.Options{Python: python})
			p.Finish(t)
			v, err := p.View(t, "tensor", contract.Request{})
			if err != nil {
				t.Fatal(err)
			}
			if got := numbers(t, p, "forget.now"); got[0] != 0 {
				t.Error("the owner has gone while its memory is leased")
			}
			if x, err := core.Slice[float64](v); err != nil || x[99999] != 99999 {
				t.Errorf("the memory changed (%v)", err)
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(programtest.Patience); numbers(t, p, "gone")[0] == 0; {
				if time.Now().After(end) {
					t.Fatal("the owner is still held")
				}
			}
		})
	}
}

// TestNotHeld shows that a lease on PyTorch's own memory leaves the tensor to the program, and keeps the
// memory as it is.
func TestNotHeld(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, `
import weakref

import numpy as np
import torch

tensor = torch.arange(100000.0)
frozen = torch.nn.Parameter(torch.arange(100000.0), requires_grad=False)
gone = np.zeros(1)
weakref.finalize(tensor, lambda: gone.__setitem__(0, 1))


class Act:
    @property
    def forget(self):
        global tensor
        tensor = None
        self.others = [torch.zeros(100000) for _ in range(20)]
        return gone

    @property
    def swap(self):
        torch.utils.swap_tensors(frozen, torch.nn.Parameter(torch.zeros(5), requires_grad=False))
        return gone


act = Act()
`, programtest.Options{Python: newest(t)})
	p.Finish(t)
	views := map[string]*core.View{}
	for _, name := range []string{"tensor", "frozen"} {
		v, err := p.View(t, name, contract.Request{Copy: contract.CopyNever})
		if err != nil {
			t.Fatal(err)
		}
		views[name] = v
	}
	if got := numbers(t, p, "act.forget"); got[0] != 1 {
		t.Error("a lease holds the tensor")
	}
	numbers(t, p, "act.swap") // an exception would be an error here
	for name, v := range views {
		x, err := core.Slice[float32](v)
		if err != nil {
			t.Fatal(err)
		}
		for i := range x {
			if x[i] != float32(i) {
				t.Fatalf("%s changed under the lease: element %d is %v", name, i, x[i])
			}
		}
	}
}

// TestConform runs the producer's contract on a program whose arrays are PyTorch's, but for those of
// types that only NumPy has.
func TestConform(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, coretest.Script+`
import torch
for name in "columns", "counts", "empty", "flags", "halves", "picture", "samples", "scalar", "waves":
    globals()[name] = torch.from_numpy(globals()[name])
del name
`, programtest.Options{Python: newest(t)})
	p.Finish(t)
	coretest.Conform(t, func(*testing.T) contract.Producer { return p })
	for e, err := range p.Arrays(t.Context()) {
		if want := e.Name != "dates" && e.Name != "foreign"; (e.Framework == "torch") != want || err != nil {
			t.Errorf("%s is of %s (%v)", e.Name, e.Framework, err)
		}
	}
}
