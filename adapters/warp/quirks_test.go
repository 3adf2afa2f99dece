package warp_test

import (
	"os"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/adapters/warp"
)

// witnessElsewhere is proved by TestGPUQuirks, on a GPU.
const witnessElsewhere = "warp.gpu-struct-arrays"

// quirks is the table with its witnesses.
func quirks() *programtest.Quirks {
	return &programtest.Quirks{
		Framework: "warp",
		Table:     warp.New().Quirks(),
		Setup:     setup + "table = on_cpu(np.ones((3, 2)), wp.float32)\n",
		Witnesses: []programtest.Witness{
			{
				ID:      "warp.indexed-arrays",
				Array:   `wp.indexedarray(table, [wp.array([0, 2], dtype=int, device="cpu"), None])`,
				With:    `^layout not supported: .*an indexedarray are in several places; publish witness\[0\]\.contiguous\(\)`,
				Without: `^unsupported operation: .*indexedarray is not an array`,
			}, {
				ID: "warp.struct-arrays", Array: `wp.zeros(2, dtype=Particle, device="cpu")`,
				With:    `^view of \{'names': \['mass', 'at', 'kind'\].*\}\[2\] writable.*: 0{32}$`,
				Without: `^python error: .*RuntimeError: Cannot convert structured Warp arrays to DLPack`,
			}, {
				ID: "warp.bool-before-1.4", Array: `on_cpu([True, False], wp.bool)`,
				With:    `^view of bool\[2\] writable.*: 0100$`,
				Without: `^python error: .*RuntimeError: No conversion from Warp type .*bool.* to DLPack type`,
			}, {
				ID: "warp.dlpack-no-kwargs", Array: `table`, Alone: true,
				With:    `^view of float32\[3 2\] writable.*: 0000803f0000803f`,
				Without: `^python error: .*TypeError: .*unexpected keyword argument 'max_version'`,
			},
		},
	}
}

// TestQuirks proves each quirk on the real Warp, in every version at hand that has it.
func TestQuirks(t *testing.T) {
	t.Parallel()
	quirks().ProveEach(t, pythons(t), os.Getenv("NDBRIDGE_TEST_PYTHONS_WARP") != "", witnessElsewhere)
}

func TestQuirkTable(t *testing.T) {
	t.Parallel()
	quirks().CheckTable(t, witnessElsewhere)
}
