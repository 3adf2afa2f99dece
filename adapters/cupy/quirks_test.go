package cupy_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/ndbridge/ndbridge/adapters/cupy"
	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const setup = `
import cupy as cp
import numpy as np
import cupyx.scipy.sparse

record = np.dtype([("count", "i4"), ("weight", "f4")])


def records():
    """Arrays of records came with version 14."""
    try:
        return cp.asarray(np.ones(2, record))
    except Exception:
        return cp.ones(2)


# The floats 1 and 2, six bytes apart.
packed = cp.asarray(np.frombuffer(bytes.fromhex("0000803f0000000000400000"), "u1"))
apart = cp.ndarray((2,), "f4", memptr=packed.data, strides=(6,))
`

// quirks is the table with its witnesses.
func quirks() *programtest.Quirks {
	return &programtest.Quirks{
		Framework: "cupy",
		Table:     cupy.New().Quirks(),
		Setup:     setup,
		Witnesses: []programtest.Witness{
			{
				ID: "cupy.sparse-matrices", Array: `cupyx.scipy.sparse.csr_matrix(cp.eye(3))`,
				With:    `^layout not supported: .*a csr_matrix is several arrays; publish the parts, witness\[0\]\.data, `,
				Without: `^unsupported operation: .*csr_matrix is not an array`,
			}, {
				ID: "cupy.records-without-dlpack", Array: `records()`,
				With:    `^view of \[\('count', '<i4'\), \('weight', '<f4'\)\]\[2\] writable.*: 010000000000803f010000000000803f$`,
				Without: `^python error: .*BufferError: .*dtype`,
			}, {
				ID: "cupy.strides-rounded", Array: `apart`,
				With:    `^view of float32\[2\] .*: 0000803f00000040$`,
				Without: `^view of float32\[2\] .*: 0000803f00000000$`,
			}, {
				ID: "cupy.negative-strides", Array: `cp.arange(3, dtype="f4")[::-1]`,
				With:    `^view of float32\[3\] writable.*: 000000400000803f00000000$`,
				Without: `^layout not supported: .*stride of \d+ elements`,
			}, {
				ID: "cupy.kwargs-before-13.4", Array: `cp.ones(3, "f4")`, Alone: true,
				With:    `^view of float32\[3\] writable.*: 0000803f0000803f0000803f$`,
				Without: `^python error: .*TypeError: .*unexpected keyword argument`,
			},
		},
	}
}

func TestQuirkTable(t *testing.T) {
	t.Parallel()
	quirks().CheckTable(t)
}
