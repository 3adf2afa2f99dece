package pycuda_test

import (
	"os"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/adapters/pycuda"
)

const setup = `
import numpy as np
import ml_dtypes
import pycuda.autoinit
from pycuda import driver, gpuarray
from pycuda.tools import DeviceMemoryPool

record = np.dtype([("count", "i4"), ("weight", "f4")])
`

// quirks is the table with its witnesses.
func quirks(env []string) *programtest.Quirks {
	return &programtest.Quirks{
		Framework: "pycuda",
		Table:     pycuda.New().Quirks(),
		Env:       env,
		Setup:     setup,
		Witnesses: []programtest.Witness{
			{
				ID: "pycuda.allocations", Array: `DeviceMemoryPool().allocate(64)`,
				With: `^unsupported operation: .*a PooledDeviceAllocation is memory without a shape or a type; ` +
					`publish pycuda.gpuarray.GPUArray\(shape, dtype, gpudata=witness\[0\]\)`,
				Without: `^unsupported operation: .*PooledDeviceAllocation is not an array`,
			}, {
				ID: "pycuda.records-without-fields", Array: `gpuarray.to_gpu(np.ones(2, record))`,
				With:    `^view of \[\('count', '<i4'\), \('weight', '<f4'\)\]\[2\] writable.*: 010000000000803f010000000000803f$`,
				Without: `^view of \|V8\[2\] writable.*: 010000000000803f010000000000803f$`,
			}, {
				ID: "pycuda.extension-dtypes", Array: `gpuarray.to_gpu(np.ones(3, ml_dtypes.bfloat16))`,
				With:    `^view of bfloat16\[3\] writable.*: 803f803f803f$`,
				Without: `^view of \|V2\[3\] writable.*: 803f803f803f$`,
			},
		},
	}
}

// TestQuirks proves each quirk on the real PyCUDA, on a GPU or on the simulated driver.
func TestQuirks(t *testing.T) {
	t.Parallel()
	versions, env := pythons(t)
	quirks(env).ProveEach(t, versions, os.Getenv("NDBRIDGE_TEST_PYTHONS_PYCUDA") != "")
}

func TestQuirkTable(t *testing.T) {
	t.Parallel()
	quirks(nil).CheckTable(t)
}
