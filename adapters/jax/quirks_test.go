package jax_test

import (
	"os"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/jax"
	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/core"
)

const setup = `
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

ones = jnp.ones(3)
deleted = jnp.ones(3)
deleted.delete()
tracers = []
jax.jit(lambda x: tracers.append(x) or x)(ones)
sharding = NamedSharding(Mesh(np.array(jax.devices()), ("i",)), PartitionSpec("i"))
`

// quirks is the table with its witnesses, but for the one of TestMemoryReused.
func quirks() *programtest.Quirks {
	return &programtest.Quirks{
		Framework: "jax",
		Table:     jax.New().Quirks(),
		Setup:     setup,
		Witnesses: []programtest.Witness{
			{
				ID: "jax.tracer", Array: `tracers[0]`,
				With:    `^unsupported operation: .*Tracer stands for an array that does not exist yet; publish`,
				Without: `^python error: .*AttributeError: .*Tracer has no attribute __dlpack_device__`,
			}, {
				ID: "jax.not-arrays", Array: `jax.random.key(0)`,
				With:    `^unsupported operation: .*random keys.*; publish jax.random.key_data\(witness\[1\]\)`,
				Without: `^unsupported operation: .*PRNGKeyArray(Impl)? is not an array`,
			}, {
				ID: "jax.deleted-or-donated", Array: `deleted`,
				With:    `^unsupported operation: .*deleted, or donated .*; publish the array that took its place`,
				Without: `^python error: .*TypeError: object of type 'NoneType' has no len\(\)`,
			}, {
				ID: "jax.multi-device", Array: `jax.device_put(jnp.ones(8), sharding)`,
				With: `^wrong device: .*sharded over 4 devices; ` +
					`name one shard: witness\[3\]\.addressable_shards\[0\]\.data`,
				Without: `^python error: .*(BufferError|ValueError): __dlpack__ only supported for unsharded arrays`,
			}, {
				ID: "jax.subbyte-ints", Array: `jnp.asarray(np.zeros(3, jnp.int4))`,
				With:    `^wrong dtype: .*does not export int4; publish witness\[4\]\.astype`,
				Without: `^python error: .*RuntimeError: UNIMPLEMENTED: XLA type S4 has no DLPack equivalent`,
			}, {
				ID: "jax.bool-before-0.4.24", Array: `jnp.array([True, False])`,
				With:    `^view of bool\[2\] read-only, .*: 0100$`,
				Without: `^view of uint8\[2\] .*: 0100$`,
			}, {
				ID: "jax.float8-before-0.5.3", Array: `jnp.ones(3, jnp.float8_e5m2)`,
				With:    `^wrong dtype: .*does not export float8_e5m2; publish witness\[6\]\.view`,
				Without: `^python error: .*RuntimeError: UNIMPLEMENTED: XLA type F8E5M2 has no DLPack equivalent`,
			}, {
				ID: "jax.stream-minus-one", Array: `ones`, Alone: true,
				With:    `^view of float32\[3\] read-only, .*: 0000803f0000803f0000803f$`,
				Without: `^python error: .*UNIMPLEMENTED: WaitUntilBufferReadyOnStream is only implemented for GPU`,
			}, {
				ID: "jax.kwargs-before-0.4.27", Array: `ones`, Alone: true,
				With:    `^view of float32\[3\] read-only, .*: 0000803f0000803f0000803f$`,
				Without: `^python error: .*TypeError: .*unexpected keyword argument`,
			}, {
				ID: "jax.legacy-capsule-only", Array: `ones`,
				With:    `^view of float32\[3\] read-only`,
				Without: `^view of float32\[3\] writable`,
			},
		},
	}
}

// The quirks that show only while a lease stands: of any array (TestGivenAway), and of one on a GPU (TestUndisturbedDonation
// in test/gpu).
const (
	witnessElsewhere = core.QuirkID("jax.memory-reused")
	witnessOnGPU     = core.QuirkID("jax.may-be-donated")
)

// TestQuirks proves each quirk on the real JAX, in every version at hand that has it.
func TestQuirks(t *testing.T) {
	t.Parallel()
	quirks().ProveEach(t, pythons(t), os.Getenv("NDBRIDGE_TEST_PYTHONS_JAX") != "", witnessElsewhere, witnessOnGPU)
}

func TestQuirkTable(t *testing.T) {
	t.Parallel()
	quirks().CheckTable(t, witnessElsewhere, witnessOnGPU)
}
