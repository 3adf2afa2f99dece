package dali_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// sharedScript makes a batch by a pipeline, and changes and shows its memory as DALI's Python code sees
// it.
const sharedScript = `
(out,) = pipeline(lambda: fn.random.uniform(range=[0.0, 1.0], shape=[300, 400])).run()


class Fill:
    def __getitem__(self, number):
        for sample in out:
            np.asarray(sample)[...] = number
        return np.zeros(1, "f4")


class Ends:
    """The first and the last number of each sample, as DALI copies them."""

    @property
    def now(self):
        return np.ascontiguousarray(out.as_array().reshape(4, -1)[:, [0, -1]])


fill, ends = Fill(), Ends()
`

// TestShared proves that no copy was made, of a batch and of its samples.
func TestShared(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, setup+sharedScript, programtest.Options{Python: newest(t)})
	p.Finish(t)
	views := map[string]*core.View{}
	for _, name := range []string{"out", "out[0]", "out[3]"} {
		v, err := p.View(t, name, contract.Request{Copy: contract.CopyNever, Writable: true})
		if err != nil {
			t.Fatal(err)
		}
		if v.Framework() != "dali" || v.Route() != contract.RouteSharedHeap || v.Copied() || v.ReadOnly() {
			t.Errorf("%s is of %s, by %v, read-only %v", name, v.Framework(), v.Route(), v.ReadOnly())
		}
		views[name] = v
	}
	values(t, p, "fill[7]")
	for name, v := range views {
		if x, err := core.Slice[float32](v); err != nil || slices.ContainsFunc(x, func(f float32) bool { return f != 7 }) {
			t.Errorf("%s was filled with 7, the host sees %v ... (%v)", name, x[:3], err)
		}
	}
	if err := errors.Join(core.Set(views["out[0]"], float32(1), 0, 0), core.Set(views["out"], float32(2), 3, 299, 399)); err != nil {
		t.Fatal(err)
	}
	if got := values(t, p, "ends.now"); !slices.Equal(got, []float32{1, 7, 7, 7, 7, 7, 7, 2}) {
		t.Errorf("the host wrote 1 to the first sample and 2 to the last, DALI sees %v", got)
	}
	if x, err := core.At[float32](views["out[3]"], 299, 399); err != nil || x != 2 {
		t.Errorf("the last sample is not the end of the batch: %v (%v)", x, err)
	}
}

// TestConform runs the producer's contract on a program whose arrays are DALI's, but for those of types
// and shapes that DALI does not have.
func TestConform(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, coretest.Script+`
from nvidia.dali.tensors import TensorCPU

for name in "counts", "empty", "flags", "halves", "picture", "samples", "scalar":
    globals()[name] = TensorCPU(globals()[name])
del name
`, programtest.Options{Python: newest(t)})
	p.Finish(t)
	coretest.Conform(t, func(*testing.T) contract.Producer { return p })
}
