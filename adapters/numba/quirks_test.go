package numba_test

import (
	"os"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/adapters/numba"
)

const setup = `
import ml_dtypes
import numpy as np
from numba import cuda

record = np.dtype([("count", "i4"), ("weight", "f4")])
wide = cuda.to_device(np.broadcast_to(np.arange(1, 3, dtype="f4"), (3, 2)))
`

// quirks is the table with its witnesses.
func quirks(env []string) *programtest.Quirks {
	return &programtest.Quirks{
		Framework: "numba",
		Table:     numba.New().Quirks(),
		Env:       env,
		Setup:     setup,
		Witnesses: []programtest.Witness{
			{
				ID: "numba.broadcast-as-dense", Array: `wide`,
				With: `^layout not supported: .*the array was broadcast, and its interface does not say so; ` +
					`publish the array that was broadcast, or a copy of witness\[0\]`,
				// The third row, of memory that is not the array's, if there is any.
				Without: `^view of float32\[3 2\] writable.*: 0000803f000000400{8}0{8}|^invalid pointer: `,
			}, {
				ID: "numba.records-without-fields", Array: `cuda.to_device(np.ones(2, record))`,
				With:    `^view of \[\('count', '<i4'\), \('weight', '<f4'\)\]\[2\] writable.*: 010000000000803f010000000000803f$`,
				Without: `^view of \|V8\[2\] writable.*: 010000000000803f010000000000803f$`,
			}, {
				ID: "numba.extension-dtypes", Array: `cuda.to_device(np.full(3, 0x3F80, "u2")).view(ml_dtypes.bfloat16)`,
				With:    `^view of bfloat16\[3\] writable.*: 803f803f803f$`,
				Without: `^view of \|V2\[3\] writable.*: 803f803f803f$`,
			},
		},
	}
}

// TestQuirks proves each quirk on the real Numba, on a GPU or on the simulated driver.
func TestQuirks(t *testing.T) {
	t.Parallel()
	versions, env := pythons(t)
	quirks(env).ProveEach(t, versions, os.Getenv("NDBRIDGE_TEST_PYTHONS_NUMBA") != "")
}

func TestQuirkTable(t *testing.T) {
	t.Parallel()
	quirks(nil).CheckTable(t)
}
