package jax_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/coretest"
)

// sharedScript makes arrays of 512 x 256 in the ways in which programs get them, and lets the host
// change their ends, which only works by address.
const sharedScript = setup + `
import ctypes
from collections import namedtuple

jax.config.update("jax_enable_x64", True)
made = jnp.zeros((512, 256))
computed = jax.jit(lambda x: x @ x.T @ x)(made)
params = {"dense": {"kernel": jnp.zeros((512, 256)), "biases": [jnp.zeros((512, 256)), (jnp.zeros((512, 256)),)]}}
State = namedtuple("State", "step params")
state = State(jnp.int32(3), jax.tree_util.tree_map(lambda x: x + 0, params))
sharded = jax.device_put(jnp.zeros((2048, 256)), sharding)
memory = np.zeros(512 * 256 + 8)
start = -memory.ctypes.data % 64 // 8
numbers = memory[start:start + 512 * 256].reshape(512, 256)  # aligned as JAX wants it
over = jax.device_put(numbers)
back = np.asarray(made)
arrays = [
    made, computed, params["dense"]["kernel"], *params["dense"]["biases"][:1], params["dense"]["biases"][1][0],
    state.params["dense"]["kernel"], over, *(s.data for s in sharded.addressable_shards),
]


class Change:
    """Writes both ends of every array when the host looks at change[number]."""

    def __getitem__(self, number):
        for x in arrays:
            for at, value in ((0, number), (x.nbytes - 8, -number)):
                ctypes.c_double.from_address(x.unsafe_buffer_pointer() + at).value = value
        return np.array([float(number)])


class Look:
    """Shows both ends of the array over NumPy's memory, as JAX computes with it."""

    @property
    def over(self):
        return np.array([float(over[0, 0]), float(over[-1, -1])])


change, look = Change(), Look()
`

// TestShared proves that no copy was made: what is written to an array's memory in the program, the host
// sees in a view that it has already; and JAX sees what the host writes to memory that NumPy has lent
// it. NumPy and JAX are served by one session.
func TestShared(t *testing.T) {
	t.Parallel()
	for version, python := range pythons(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, sharedScript, programtest.Options{Python: python})
			p.Finish(t)
			views := map[string]*core.View{}
			for _, name := range []string{
				"made", "computed", `params["dense"]["kernel"]`, "params['dense']['biases'][0]",
				"params['dense']['biases'][-1][0]", "state.params['dense']['kernel']", "state[1]['dense']['kernel']",
				"over", "sharded.addressable_shards[1].data", "sharded.addressable_shards[3].data",
				"back", "numbers",
			} {
				v, err := p.View(t, name, contract.Request{Copy: contract.CopyNever})
				if err != nil {
					t.Fatal(err)
				}
				framework := "jax"
				if name == "back" || name == "numbers" {
					framework = "numpy"
				}
				if v.Framework() != framework || v.Route() != contract.RouteSharedHeap || v.Copied() ||
					v.ReadOnly() != (name != "numbers") {
					t.Errorf("%s is of %s, by %v, read-only %v", name, v.Framework(), v.Route(), v.ReadOnly())
				}
				views[name] = v
			}
			numbers(t, p, "change[7]")
			for name, v := range views {
				sees(t, name, v, 7)
			}
			mine, err := p.View(t, "numbers", contract.Request{Writable: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(core.Set(mine, 12.5, 0, 0), core.Set(mine, -12.5, 511, 255)); err != nil {
				t.Fatal(err)
			}
			if got := numbers(t, p, "look.over"); !slices.Equal(got, []float64{12.5, -12.5}) {
				t.Errorf("the host wrote 12.5 and -12.5, JAX sees %v", got)
			}
			sees(t, "over", views["over"], 12.5)
		})
	}
}

// sees checks both ends of a view.
func sees(t *testing.T, name string, v *core.View, want float64) {
	t.Helper()
	first, errFirst := core.At[float64](v, 0, 0)
	last, errLast := core.At[float64](v, v.Dim(0)-1, v.Dim(1)-1)
	if first != want || last != -want || errFirst != nil || errLast != nil {
		t.Errorf("%v and %v are in %s, the host sees %v and %v", want, -want, name, first, last)
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

// TestReadOnly asks for writable views of arrays, which are immutable.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	p := start(t, `
import jax.numpy as jnp
small, large, none = jnp.ones(3), jnp.ones(100000), jnp.ones((0, 3))
`)
	for _, name := range []string{"small", "large", "none"} {
		_, err := p.View(t, name, contract.Request{Writable: true})
		e, ok := errors.AsType[*core.Error](err)
		if !errors.Is(err, core.ErrReadOnly) || !ok || e.Remedy == "" || e.Object != name {
			t.Errorf("a writable view of %s: %v", name, err)
		}
	}
}

// TestConform runs the producer's contract on a program whose arrays are JAX's, but for those of types
// that only NumPy has.
func TestConform(t *testing.T) {
	t.Parallel()
	p := start(t, coretest.Script+`
import jax
jax.config.update("jax_enable_x64", True)
for name in "columns", "counts", "empty", "flags", "halves", "picture", "samples", "scalar", "waves":
    globals()[name] = jax.device_put(globals()[name])
del name
`)
	coretest.Conform(t, func(*testing.T) contract.Producer { return p })
	for e, err := range p.Arrays(t.Context()) {
		if want := e.Name != "dates" && e.Name != "foreign"; (e.Framework == "jax") != want || err != nil {
			t.Errorf("%s is of %s (%v)", e.Name, e.Framework, err)
		}
	}
}
