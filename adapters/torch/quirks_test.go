package torch_test

import (
	"os"
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/adapters/torch"
	"github.com/ndbridge/ndbridge/core"
)

func quirks() *programtest.Quirks {
	return &programtest.Quirks{
		Framework: "torch",
		Table:     torch.New().Quirks(),
		Setup:     "import torch\nbytes3 = torch.ones(3, dtype=torch.uint8)\n",
		Witnesses: []programtest.Witness{
			{
				ID: "torch.layouts", Array: `torch.eye(3).to_sparse()`,
				With:    `^layout not supported: .*the tensor is sparse_coo, not strided memory; publish`,
				Without: `^python error: .*(layout other than torch.strided|doesn't have storage)`,
			}, {
				ID: "torch.no-data", Array: `torch._efficientzerotensor((3,))`,
				With:    `^invalid pointer: .*torch.Tensor has no memory of its own; publish`,
				Without: `^invalid pointer: .*the data pointer of shape \[3\] is NULL$`,
			}, {
				ID: "torch.conj-bit", Array: `torch.full((3,), 1j).conj()`,
				With:    `^unsupported operation: .*conjugates of those in memory; publish t.resolve_conj\(\)`,
				Without: `^python error: .*Error: Can't export tensors with the conjugate bit set$`,
			}, {
				ID: "torch.neg-bit-silent", Array: `torch.full((3,), 1j).conj().imag`, // -1
				With:    `^unsupported operation: .*negatives of those in memory; publish t.resolve_neg\(\)`,
				Without: `^view of float32\[3\].*: 0000803f`, // 1
			}, {
				ID: "torch.quantized-and-bits", Array: `torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8)`,
				With:    `^wrong dtype: .*the elements are quint8; publish`,
				Without: `^python error: .*QInt.* types are not supported by dlpack`,
			}, {
				ID: "torch.bool-before-2.2", Array: `torch.tensor([True, False, True])`,
				With:    `^view of bool\[3\] writable.*: 010001$`,
				Without: `^python error: .*Bool type is not supported by dlpack`,
			}, {
				ID: "torch.small-floats-before-2.10", Array: `bytes3.view(getattr(torch, "float8_e5m2", torch.uint8))`,
				With:    `^view of float8_e5m2\[3\] writable.*: 010101$`,
				Without: `^python error: .*(float8 types are|type is) not supported by dlpack`,
			}, {
				ID: "torch.subbyte-as-bytes", Array: `bytes3.view(getattr(torch, "uint4", torch.uint8))`,
				With:    `^view of uint4\[3\] writable.*: 010101$`,
				Without: `^view of uint8\[3\] writable.*: 010101$`,
			}, {
				ID: "torch.requires-grad", Array: `torch.nn.Parameter(torch.ones(3))`,
				With:    `^view of float32\[3\] writable`,
				Without: `^python error: .*Error: Can't export tensors that require gradient, use tensor.detach\(\)$`,
			}, {
				ID: "torch.exchange-unchecked", Array: `torch.full((3,), 1j).conj()`,
				Never:   []core.QuirkID{"torch.conj-bit"},
				With:    `^python error: .*Error: Can't export tensors with the conjugate bit set$`,
				Without: `^view of complex64\[3\].*: 000000000000803f`, // 1j, though the elements are -1j
			}, {
				ID: "torch.kwargs-before-2.9", Array: `torch.ones(3)`, Alone: true,
				With:    `^view of float32\[3\] writable`,
				Without: `^python error: .*TypeError: .*unexpected keyword argument`,
			}, {
				ID: "torch.cpu-stream", Array: `torch.ones(3)`, Alone: true,
				With:    `^view of float32\[3\] writable`,
				Without: `^python error: .*AssertionError: stream should be None on cpu`,
			},
		},
	}
}

// TestQuirks proves each quirk on the real PyTorch, in every version at hand that has it.
func TestQuirks(t *testing.T) {
	t.Parallel()
	quirks().ProveEach(t, pythons(t), os.Getenv("NDBRIDGE_TEST_PYTHONS_TORCH") != "", readOnlyMemory)
}

func TestQuirkTable(t *testing.T) {
	t.Parallel()
	quirks().CheckTable(t, readOnlyMemory)
}
