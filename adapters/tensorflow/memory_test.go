package tensorflow_test

import (
	"errors"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// heldScript lets the host have variables assigned, and tensors forgotten and replaced, by the name
// change.all.
const heldScript = `
import ctypes

def new():
    return tf.reshape(tf.range(100000.0), (100000,)) + 0.0

variable, forgotten, lent = tf.Variable(new()), new(), new()
address = np.from_dlpack(lent).ctypes.data


class Change:
    @property
    def all(self):
        global forgotten
        variable.assign_add(tf.ones(100000))
        forgotten = None
        self.others = [tf.fill(100000, -1.0) for _ in range(20)]
        return variable.numpy()

    def __getitem__(self, number):
        """Writes to the memory of a tensor as nobody should."""
        ctypes.c_float.from_address(address).value = number
        return np.zeros(1, "f4")


change = Change()
`

// TestShared proves that no copy was made, and that a view keeps its values while the program assigns to
// the variable and forgets the tensor.
func TestShared(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, setup+heldScript, programtest.Options{Python: newest(t)})
	p.Finish(t)
	views := map[string]*core.View{}
	for _, name := range []string{"variable", "forgotten", "lent"} {
		v, err := p.View(t, name, contract.Request{Copy: contract.CopyNever})
		if err != nil {
			t.Fatal(err)
		}
		if v.Route() != contract.RouteSharedHeap || !v.ReadOnly() {
			t.Errorf("%s by %v, read-only %v", name, v.Route(), v.ReadOnly())
		}
		views[name] = v
	}
	if first, last := ends(t, p, "change.all"); first != 1 || last != 100000 {
		t.Errorf("after the assignment, the variable holds %v to %v", first, last)
	}
	for name, v := range views {
		x, err := core.Slice[float32](v)
		if err != nil {
			t.Fatal(err)
		}
		for i := range x {
			if x[i] != float32(i) {
				t.Fatalf("%s changed while it is leased: element %d is %v", name, i, x[i])
			}
		}
	}
	ends(t, p, "change[7]")
	if x, err := core.At[float32](views["lent"], 0); x != 7 || err != nil {
		t.Errorf("7 is in the tensor's memory, the host sees %v (%v)", x, err)
	}
	if first, _ := ends(t, p, "variable"); first != 1 {
		t.Errorf("a new view of the variable begins with %v", first)
	}
}

// ends gives the first and the last number of an array.
func ends(t *testing.T, p *programtest.Program, name string) (first, last float32) {
	t.Helper()
	v, err := p.View(t, name, contract.Request{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	first, errFirst := core.At[float32](v, 0)
	last, errLast := core.At[float32](v, v.Len()-1)
	if err := errors.Join(errFirst, errLast); err != nil {
		t.Fatal(err)
	}
	return first, last
}

// TestConform runs the producer's contract on a program whose arrays are TensorFlow's, but for those of
// types that only NumPy has.
func TestConform(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, setup+coretest.Script+`
for name in "columns", "counts", "empty", "flags", "halves", "picture", "samples", "scalar", "waves":
    globals()[name] = tf.constant(globals()[name])
del name
`, programtest.Options{Python: newest(t)})
	p.Finish(t)
	coretest.Conform(t, func(*testing.T) contract.Producer { return p })
}
