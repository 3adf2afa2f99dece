//go:build gpu

package jax_test

import (
	"testing"

	"github.com/ndbridge/ndbridge/adapters/jax"
	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

const gpuSetup = `
import os
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
import jax, jax.numpy as jnp

ones = jnp.ones(3)
assert ones.sharding.device_set.pop().platform == "gpu"
deleted = jnp.ones(3)
deleted.delete()
`

// TestGPUQuirks proves on a GPU the quirks that are others there than on the CPU, or could be.
func TestGPUQuirks(t *testing.T) {
	t.Parallel()
	q := programtest.Quirks{
		Framework: "jax",
		Table:     jax.New().Quirks(),
		Setup:     gpuSetup,
		Witnesses: []programtest.Witness{
			{
				ID: "jax.stream-minus-one", Array: `ones`, Alone: true,
				With:    `^view of float32\[3\] read-only, .*: 0000803f0000803f0000803f$`,
				Without: `^python error: .*INTERNAL: .*CUDA_ERROR_INVALID_HANDLE`,
			}, {
				ID: "jax.legacy-capsule-only", Array: `ones`,
				With:    `^view of float32\[3\] read-only`,
				Without: `^view of float32\[3\] writable`,
			}, {
				ID: "jax.deleted-or-donated", Array: `deleted`,
				With:    `^unsupported operation: .*deleted, or donated .*; publish the array that took its place`,
				Without: `^python error: .*TypeError: object of type 'NoneType' has no len\(\)`,
			},
		},
	}
	q.Prove(t, programtest.GPU(t))
}
