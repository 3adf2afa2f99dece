package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// Frameworks that the plugin has no adapter for are read by the protocols that they have.
func TestFrameworksWithoutAnAdapter(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, `
import numpy as np
import jax, jax.numpy as jnp

table = jnp.arange(100000, dtype=jnp.float32)
brain = jnp.ones((300, 300), dtype=jnp.bfloat16)
point = jnp.float32(2.5)
deleted = jnp.ones(3)
deleted.delete()

add = jax.jit(lambda x: x + 1, donate_argnums=0)
donated = jnp.arange(100000, dtype=jnp.float32)
address = donated.unsafe_buffer_pointer()
donated.block_until_ready()

class Donate:
    @property
    def now(self):
        global donated
        after = add(donated)
        after.block_until_ready()
        same = after.unsafe_buffer_pointer() == address
        donated = after
        return np.array([float(same)])
donate = Donate()
`, programtest.Options{
		Python: programtest.Newest(t, "jax", "NDBRIDGE_TEST_PYTHON_ALL"), Plugin: "numpy",
	})
	p.Finish(t)
	for _, tt := range []struct {
		name, framework, dtype string
		shape                  []int
		readOnly               bool
		route                  core.Route
	}{
		{"table", "jax", "float32", []int{100000}, true, contract.RouteSharedHeap},
		{"brain", "jax", "bfloat16", []int{300, 300}, true, contract.RouteSharedHeap},
		{"point", "jax", "float32", []int{}, true, contract.RouteStaged},
	} {
		v, err := p.View(t, tt.name, contract.Request{})
		if err != nil {
			t.Error(err)
			continue
		}
		if v.Framework() != tt.framework || v.DType().String() != tt.dtype || !slices.Equal(v.Shape(), tt.shape) ||
			v.ReadOnly() != tt.readOnly || v.Route() != tt.route {
			t.Errorf("%s: %v of %s, read-only %v, by %v because of %v",
				tt.name, v.Layout(), v.Framework(), v.ReadOnly(), v.Route(), v.Reason())
		}
	}
	for name, text := range map[string]string{
		"deleted": "NoneType",
	} {
		if _, err := p.View(t, name, contract.Request{}); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, which does not say %q", name, err, text)
		}
	}

	// While a lease stands, JAX must not reuse the memory of an array that is given away.
	v, err := p.View(t, "donated", contract.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if got := first(t, p, "donate.now"); got != 0 {
		t.Error("a leased array was overwritten in place")
	}
	x, err := core.Slice[float32](v)
	if err != nil || x[0] != 0 || x[99999] != 99999 {
		t.Errorf("the leased array holds %v ... %v (%v), want 0 ... 99999", x[0], x[99999], err)
	}
}
