package warp_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// sharedScript makes arrays of 30000 x 3 numbers in the ways in which programs get them, and has Warp
// write to them, and tell what is in them.
const sharedScript = `
numbers = np.zeros((30000, 3), "f4")
arrays = {
    "zeros": wp.zeros((30000, 3), dtype=wp.float32, device="cpu"),
    "vectors": wp.zeros(30000, dtype=wp.vec3, device="cpu"),
    "copied": on_cpu(numbers, wp.vec3),
    "cloned": wp.clone(on_cpu(numbers, wp.float32)),
    "numpys": wp.array(numbers, dtype=wp.vec3, device="cpu", copy=False),
    "watched": wp.zeros((30000, 3), dtype=wp.float32, device="cpu", requires_grad=True),
}


class Fill:
    """Has Warp fill every array when the host looks at fill[number]."""

    def __getitem__(self, number):
        for x in arrays.values():
            x.fill_(float(number))
        return np.zeros(1, "f4")


class Ends:
    """The first and the last number of each array, as Warp copies them."""

    @property
    def now(self):
        return np.array([wp.clone(x).numpy().ravel()[[0, -1]] for x in arrays.values()], "f4").ravel()


fill, ends = Fill(), Ends()
`

// TestShared proves that no copy was made: what Warp writes, the host sees in a view that it has
// already, and what the host writes, Warp sees.
func TestShared(t *testing.T) {
	t.Parallel()
	p := start(t, setup+sharedScript, programtest.Options{})
	names := []string{"zeros", "vectors", "copied", "cloned", "numpys", "watched"}
	var views []*core.View
	for _, name := range names {
		v, err := p.View(t, "arrays['"+name+"']", contract.Request{Copy: contract.CopyNever, Writable: true})
		if err != nil {
			t.Fatal(err)
		}
		if v.Framework() != "warp" || v.Route() != contract.RouteSharedHeap || v.Copied() || v.ReadOnly() {
			t.Errorf("%s is of %s, by %v, read-only %v", name, v.Framework(), v.Route(), v.ReadOnly())
		}
		views = append(views, v)
	}
	values(t, p, "fill[7]")
	for i, v := range views {
		if x, err := core.Slice[float32](v); err != nil || slices.ContainsFunc(x, func(f float32) bool { return f != 7 }) {
			t.Errorf("Warp filled %s with 7, the host sees %v ... (%v)", names[i], x[:3], err)
		}
		if err := errors.Join(core.Set(v, float32(i), 0, 0), core.Set(v, -float32(i), 29999, 2)); err != nil {
			t.Fatal(err)
		}
	}
	for i, got := range slices.Collect(slices.Chunk(values(t, p, "ends.now"), 2)) {
		if !slices.Equal(got, []float32{float32(i), -float32(i)}) {
			t.Errorf("the host wrote %d and %d to %s, Warp sees %v", i, -i, names[i], got)
		}
	}
}

// TestHeld forgets arrays that are leased. The views keep their values, also of JAX-like memory that its
// owner uses again at once.
func TestHeld(t *testing.T) {
	t.Parallel()
	p := start(t, setup+`
import ctypes

own = on_cpu(np.arange(100000), wp.float32)
memory = np.arange(100000, dtype="f4")
lent = wp.array(ptr=memory.ctypes.data, dtype=wp.float32, shape=100000, device="cpu",
                deleter=lambda pointer, size: ctypes.memset(pointer, 255, size))


class Forget:
    @property
    def all(self):
        global own, lent
        own = lent = None
        self.others = [wp.full(100000, -1.0, dtype=wp.float32, device="cpu") for _ in range(20)]
        return np.zeros(1, "f4")


forget = Forget()
`, programtest.Options{})
	var views []*core.View
	for _, name := range []string{"own", "lent"} {
		v, err := p.View(t, name, contract.Request{Copy: contract.CopyNever})
		if err != nil {
			t.Fatal(err)
		}
		views = append(views, v)
	}
	values(t, p, "forget.all")
	for _, v := range views {
		x, err := core.Slice[float32](v)
		if err != nil {
			t.Fatal(err)
		}
		for i := range x {
			if x[i] != float32(i) {
				t.Fatalf("%s changed while it is leased: element %d is %v", v.Name(), i, x[i])
			}
		}
	}
}

// TestConform runs the producer's contract on a program whose arrays are Warp's, but for those of types
// and shapes that only NumPy has.
func TestConform(t *testing.T) {
	t.Parallel()
	p := start(t, coretest.Script+`
import warp as wp

for name in "columns", "counts", "empty", "flags", "halves", "picture", "samples":
    x = globals()[name]
    globals()[name] = wp.array(x, dtype=wp.dtype_from_numpy(x.dtype), device="cpu", copy=name != "columns")
del name, x
`, programtest.Options{})
	coretest.Conform(t, func(*testing.T) contract.Producer { return p })
}

// values copies an array of float32.
func values(t *testing.T, p *programtest.Program, name string) []float32 {
	t.Helper()
	v, err := p.View(t, name, contract.Request{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	x := make([]float32, v.Len())
	if _, err := core.Copy(t.Context(), x, v); err != nil {
		t.Fatal(err)
	}
	return x
}
