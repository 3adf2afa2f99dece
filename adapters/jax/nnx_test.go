package jax_test

import (
	"slices"
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// TestFlax finds arrays in lists and dicts of Flax, and runs none of their code. Where there is no Flax, a package with classes that keep their
// items as those of flax.nnx do stands for it.
func TestFlax(t *testing.T) {
	t.Parallel()
	p := start(t, `
import sys, types
import jax.numpy as jnp, numpy as np
ran = np.zeros(1)
try:
    from flax import nnx
except ImportError:
    class Module: pass
    class List(Module):
        def __init__(self, items):
            self._length = 0
            for i, item in enumerate(items):
                setattr(self, str(i), item)
                self._length += 1
        def __getitem__(self, index):
            ran[0] += 1
            return getattr(self, str(index + self._length if index < 0 else index))
    class Dict(Module):
        def __init__(self, **items):
            for name, item in items.items(): setattr(self, name, item)
        def __getitem__(self, key):
            ran[0] += 1
            return getattr(self, key)
    sys.modules["flax"] = types.ModuleType("flax")
    sys.modules["flax.nnx"] = nnx = types.ModuleType("flax.nnx")
    nnx.Module, nnx.List, nnx.Dict = Module, List, Dict
class Layer(nnx.Module):
    def __init__(self, n): self.kernel = jnp.ones(n)
class Odd(nnx.List):
    def __getitem__(self, index): ran[0] += 1
class Model(nnx.Module):
    def __init__(self):
        self.layers = nnx.List([Layer(2), nnx.List([Layer(3)])])
        self.parts = nnx.Dict(head=Layer(4), **{"the tail": jnp.ones(5)})
        self.odd = Odd([Layer(6)])
model = Model()
`)
	const tail = `model.parts["the tail"]`
	want := []string{"model.layers[0].kernel", "model.layers[1][0].kernel", `model.parts["head"].kernel`, tail}
	for pattern, want := range map[string][]string{"model.**": want, "model.layers[*].kernel": want[:1], "model.layers.1[0].*": want[1:2], `model.parts["*"]`: {tail}} {
		found, err := p.Search(t.Context(), contract.Search{Pattern: pattern})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range found.Entries {
			got = append(got, e.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s means %q, want %q", pattern, got, want)
		}
	}
	v, err := p.View(t, "ran", contract.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := core.At[float64](v, 0); n != 0 || err != nil {
		t.Errorf("its code has run %v times, %v", n, err)
	}
	for i, name := range want {
		v, err := p.View(t, name, contract.Request{})
		if err != nil || !slices.Equal(v.Shape(), []int{i + 2}) {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
	if _, err := p.View(t, "model.layers[-1][0].kernel", contract.Request{}); err != nil { // which its own code finds
		t.Error(err)
	}
}
