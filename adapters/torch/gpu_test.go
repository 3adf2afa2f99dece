//go:build gpu

package torch_test

import (
	"testing"

	"github.com/ndbridge/ndbridge/adapters/kit/program/programtest"
	"github.com/ndbridge/ndbridge/adapters/torch"
	"github.com/ndbridge/ndbridge/core"
)

// TestGPUQuirks proves on a GPU the quirks that do not depend on where a tensor is.
func TestGPUQuirks(t *testing.T) {
	t.Parallel()
	q := programtest.Quirks{
		Framework: "torch",
		Table:     torch.New().Quirks(),
		Setup: `
import torch
gpu = torch.device("cuda")
bytes3 = torch.ones(3, dtype=torch.uint8, device=gpu)
`,
		Witnesses: []programtest.Witness{
			{
				ID: "torch.layouts", Array: `torch.eye(3, device=gpu).to_sparse()`,
				With:    `^layout not supported: .*the tensor is sparse_coo, not strided memory; publish`,
				Without: `^python error: .*(layout other than torch.strided|doesn't have storage)`,
			}, {
				ID: "torch.no-data", Array: `torch._efficientzerotensor((3,), device=gpu)`,
				With:    `^invalid pointer: .*torch.Tensor has no memory of its own; publish`,
				Without: `^invalid pointer: .*the data pointer of shape \[3\] is NULL$`,
			}, {
				ID: "torch.conj-bit", Array: `torch.full((3,), 1j, device=gpu).conj()`,
				With:    `^unsupported operation: .*conjugates of those in memory; publish t.resolve_conj\(\)`,
				Without: `^python error: .*Error: Can't export tensors with the conjugate bit set$`,
			}, {
				ID: "torch.neg-bit-silent", Array: `torch.full((3,), 1j, device=gpu).conj().imag`, // -1
				With:    `^unsupported operation: .*negatives of those in memory; publish t.resolve_neg\(\)`,
				Without: `^view of float32\[3\].*: 0000803f`, // 1
			}, {
				ID: "torch.subbyte-as-bytes", Array: `bytes3.view(getattr(torch, "uint4", torch.uint8))`,
				With:    `^view of uint4\[3\] writable.*: 010101$`,
				Without: `^view of uint8\[3\] writable.*: 010101$`,
			}, {
				ID: "torch.requires-grad", Array: `torch.nn.Parameter(torch.ones(3, device=gpu))`,
				With:    `^view of float32\[3\] writable`,
				Without: `^python error: .*Error: Can't export tensors that require gradient, use tensor.detach\(\)$`,
			}, {
				ID: "torch.exchange-unchecked", Array: `torch.full((3,), 1j, device=gpu).conj()`,
				Never:   []core.QuirkID{"torch.conj-bit"},
				With:    `^python error: .*Error: Can't export tensors with the conjugate bit set$`,
				Without: `^view of complex64\[3\].*: 000000000000803f`, // 1j, though the elements are -1j
			},
		},
	}
	q.Prove(t, programtest.GPU(t))
}
