package e2e

import (
	"testing"

	"github.com/ndbridge/ndbridge/test/internal/harness"
)

// TestStates: the state of a training with JAX is found as its libraries keep it: parameters in dicts, a state that is a dataclass, and Optax's
// named tuples within tuples.
func TestStates(t *testing.T) {
	t.Parallel()
	run := harness.Start(t, `
import dataclasses, typing
import jax, jax.numpy as jnp, optax, remote

@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    params: typing.Any
    moments: typing.Any

def layer(value):
    return {"kernel": jnp.full((400, 400), value), "bias": jnp.full(4, value)}
params = {"Dense_0": layer(1.0), "Dense_1": layer(2.0), "step": jnp.zeros(())}
optimizer = optax.chain(optax.clip(1.0), optax.adam(1e-3))
state = State(params, optimizer.init(params))

def step():
    global state
    updates, moments = optimizer.update(jax.tree.map(jnp.ones_like, state.params), state.moments)
    state = State(optax.apply_updates(state.params, updates), moments)
remote.serve()
`, harness.Options{Python: harness.PythonAll(t)})
	run.Remote.Exec(t, "step()") // when all is there
	for pattern, want := range map[string][]string{
		`state.params["*"]["kernel"]`:                 {`state.params["Dense_0"]["kernel"]`, `state.params["Dense_1"]["kernel"]`},
		`state.params["Dense_0"].**`:                  {`state.params["Dense_0"]["bias"]`, `state.params["Dense_0"]["kernel"]`},
		`state.moments[1][0].mu["Dense_*"]["kernel"]`: {`state.moments[1][0].mu["Dense_0"]["kernel"]`, `state.moments[1][0].mu["Dense_1"]["kernel"]`},
		"state.moments[*][0].*":                       {"state.moments[1][0].count"},
	} {
		wantNames(t, run, pattern, want...)
	}
	kernel := `state.params["Dense_1"]["kernel"]`
	src, err := run.Source(kernel)
	if err != nil {
		t.Fatal(err)
	}
	before, err := src.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run.Remote.Exec(t, "step()")
	after, changed, err := src.Refresh(t.Context(), before)
	if err != nil || !changed {
		t.Fatalf("after a step: changed %v, %v", changed, err)
	}
	if got, want := float64(slice[float32](t, after)[5]), harness.Eval[float64](t, run.Remote, kernel+"[0, 5].item()"); got != want {
		t.Errorf("%s begins with %v, and the program has %v", kernel, got, want)
	}
	closed(t, after)
}
