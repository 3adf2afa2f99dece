//go:build gpu

package dali_test

import (
	"testing"

	"github.com/ndbridge/ndbridge/adapters/dali"
	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

const gpuSetup = `
def on_gpu(*arrays):
    """A batch on the GPU."""
    p = pipeline_def(lambda: samples(*arrays)().gpu())(batch_size=len(arrays), num_threads=1, device_id=0)
    p.build()
    return p.run()[0]


whole = on_gpu(*[np.full((2, 3), i, "f4") for i in range(4)])
ragged = on_gpu(*[np.full((n + 1, 3), n, "f4") for n in range(4)])
`

// TestGPUQuirks proves the quirks on batches and tensors on a GPU.
func TestGPUQuirks(t *testing.T) {
	t.Parallel()
	q := programtest.Quirks{
		Framework: "dali",
		Table:     dali.New().Quirks(),
		Setup:     setup + gpuSetup,
		Witnesses: []programtest.Witness{
			{
				ID: "dali.ragged-batch", Array: `ragged`,
				With:    `^layout not supported: .*differ in shape.*; name one sample: witness\[0\]\[0\]`,
				Without: `^unsupported operation: .*TensorListGPU is not an array`,
			}, {
				ID: "dali.batches", Array: `whole`,
				With:    `^view of float32\[4 2 3\] writable.*: 0{32}$`,
				Without: `^unsupported operation: .*TensorListGPU is not an array`,
			}, {
				ID: "dali.kwargs-before-2.2", Array: `whole[1]`, Alone: true,
				With:    `^view of float32\[2 3\] writable.*: 0000803f0000803f`,
				Without: `^python error: .*TypeError: .*incompatible function arguments`,
			},
		},
	}
	q.Prove(t, programtest.GPU(t))
}
