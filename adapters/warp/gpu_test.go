//go:build gpu

package warp_test

import (
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/adapters/warp"
)

// TestGPUQuirks proves the quirks on arrays on a GPU.
func TestGPUQuirks(t *testing.T) {
	t.Parallel()
	q := programtest.Quirks{
		Framework: "warp",
		Table:     warp.New().Quirks(),
		Setup:     setup + "gpu = \"cuda:0\"\ntable = wp.array(np.ones((3, 2)), dtype=wp.float32, device=gpu)\n",
		Witnesses: []programtest.Witness{
			{
				ID:      "warp.indexed-arrays",
				Array:   `wp.indexedarray(table, [wp.array([0, 2], dtype=int, device=gpu), None])`,
				With:    `^layout not supported: .*an indexedarray are in several places; publish witness\[0\]\.contiguous\(\)`,
				Without: `^unsupported operation: .*indexedarray is not an array`,
			}, {
				ID: "warp.gpu-struct-arrays", Array: `wp.zeros(2, dtype=Particle, device=gpu)`,
				With:    `^unsupported operation: .*Warp exports no structures on a GPU; publish witness\[1\]\.numpy\(\)`,
				Without: `^python error: .*TypeError: issubclass\(\) arg 1 must be a class`,
			}, {
				ID: "warp.dlpack-no-kwargs", Array: `table`, Alone: true,
				With:    `^view of float32\[3 2\] writable.*: 0000803f0000803f`,
				Without: `^python error: .*TypeError: .*unexpected keyword argument 'max_version'`,
			},
		},
	}
	q.Prove(t, programtest.GPU(t))
}
