package jax_test

import (
	"testing"

	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// TestPending views an array while JAX still computes it: the view comes when it is there, and the
// interpreter serves others meanwhile.
func TestPending(t *testing.T) {
	t.Parallel()
	p := start(t, `
import time
import jax, jax.numpy as jnp, numpy as np

ones = jnp.ones((400, 400))
turn = jax.jit(lambda n, x: jax.lax.fori_loop(0, n, lambda i, x: x @ ones / 400, x))
turn(1, ones).block_until_ready()
begin = time.perf_counter()
turn(50, ones).block_until_ready()
turns = int(50 / (time.perf_counter() - begin)) + 50  # for a second
state = np.zeros(2)  # whether it runs, and whether it ran when it was handed out


class Begin:
    @property
    def pending(self):
        x = turn(turns, ones)
        state[:] = 1, not x.is_ready()
        return x


begin = Begin()
`)
	type answer struct {
		v   *core.View
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		v, err := p.View(t, "begin.pending", contract.Request{})
		answered <- answer{v, err}
	}()
	for served := 0; ; {
		select {
		case a := <-answered:
			if a.err != nil {
				t.Fatal(a.err)
			}
			if numbers(t, p, "state")[1] != 1 {
				t.Fatal("the array was computed before it was handed out")
			}
			if served == 0 {
				t.Error("nothing was served while the array was computed")
			}
			for x := range a.v.Len() {
				if got, err := core.At[float32](a.v, x/400, x%400); got != 1 || err != nil {
					t.Fatalf("element %d is %v (%v), want 1", x, got, err)
				}
			}
			return
		default:
			if numbers(t, p, "state")[0] == 1 {
				served++
			}
		}
	}
}
