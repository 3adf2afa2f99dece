package dali_test

import (
	"os"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/dali"
	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
)

const witnesses = `
import nvidia.dali.experimental.dynamic as ndd

ones = TensorCPU(np.ones((2, 3), "f4"))
(whole,) = pipeline(samples(*[np.full((2, 3), i, "f4") for i in range(4)])).run()
(ragged,) = pipeline(samples(*[np.full((n, 3), n, "f4") for n in range(4)])).run()
(members,) = pipeline(lambda: types.Constant(types.DALIInterpType.INTERP_LINEAR)).run()
`

// quirks is the table with its witnesses.
func quirks() *programtest.Quirks {
	return &programtest.Quirks{
		Framework: "dali",
		Table:     dali.New().Quirks(),
		Setup:     setup + witnesses,
		Witnesses: []programtest.Witness{
			{
				ID: "dali.dynamic-batch", Array: `ndd.as_batch([np.ones((2, 3), "f4")])`,
				With:    `^unsupported operation: .*a batch is not one array; name one sample: witness\[0\]\.tensors\[0\]`,
				Without: `^unsupported operation: .*Batch is not an array`,
			}, {
				ID: "dali.dynamic-tensor-before-2", Array: `ndd.as_tensor(np.ones((2, 3), "f4"))`,
				With:    `^unsupported operation: .*no protocol in this version; publish numpy.asarray\(witness\[1\]\)`,
				Without: `^unsupported operation: .*Tensor is not an array|^python error: .*TypeError: This is not a GPU tensor`,
			}, {
				ID: "dali.ragged-batch", Array: `ragged`,
				With:    `^layout not supported: .*differ in shape.*; name one sample: witness\[2\]\[0\]`,
				Without: `^unsupported operation: .*TensorListCPU is not an array`,
			}, {
				ID: "dali.enumerations", Array: `members[0]`,
				With:    `^wrong dtype: .*DALI's type INTERP_TYPE, not numbers; cast`,
				Without: `^python error: .*RuntimeError: The element type DALIInterpType is not supported`,
			}, {
				ID: "dali.batches", Array: `whole`,
				With:    `^view of float32\[4 2 3\] writable.*: 0{32}$`,
				Without: `^unsupported operation: .*TensorListCPU is not an array`,
			}, {
				ID: "dali.kwargs-before-2.2", Array: `ones`, Alone: true,
				With:    `^view of float32\[2 3\] writable.*: 0000803f0000803f`,
				Without: `^python error: .*TypeError: .*incompatible function arguments`,
			}, {
				ID: "dali.dynamic-no-kwargs", Array: `ndd.as_tensor(np.ones((2, 3), "f4"))`, Alone: true,
				With:    `^view of float32\[2 3\] writable.*: 0000803f0000803f`,
				Without: `^python error: .*TypeError: .*unexpected keyword argument 'max_version'`,
			},
		},
	}
}

// TestQuirks proves each quirk on the real DALI, in every version at hand that has it.
func TestQuirks(t *testing.T) {
	t.Parallel()
	quirks().ProveEach(t, pythons(t), os.Getenv("NDBRIDGE_TEST_PYTHONS_DALI") != "")
}

func TestQuirkTable(t *testing.T) {
	t.Parallel()
	quirks().CheckTable(t)
}
