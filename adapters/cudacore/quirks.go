package cudacore

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

type rule = program.Rule[buffer]

// table has the rules, which do not depend on their order.
func table() program.Table[buffer] {
	return program.NewTable("cudacore", []rule{
		{
			Quirk: contract.Quirk{
				ID: "cudacore.buffers-as-int8", Effect: contract.EffectCorrect, Protocol: string(program.DLPack),
				Summary:  "a buffer is memory without a type, and __dlpack__ says that it is signed integers of 8 bits",
				Remedy:   "to give it a type and a shape, publish an array over it: cupy.from_dlpack({array}).view(dtype)",
				Upstream: "cuda_core/cuda/core/_dlpack.pyx",
			},
			When: func(b *buffer) bool { return b.kind == memory },
			Edit: func(p *program.Plan, _ *buffer) { p.DType = core.Uint8 },
		}, {
			Quirk: contract.Quirk{
				ID: "cudacore.stream-ignored", Effect: contract.EffectCorrect, Protocol: string(program.DLPack),
				Summary: "__dlpack__ takes a stream, and has it wait for nothing: neither a buffer nor a view knows which " +
					"work fills it",
				Upstream: "cuda_core/cuda/core/_memory/_buffer.pyx, cuda_core/cuda/core/_memoryview.pyx",
			},
			Edit: func(p *program.Plan, _ *buffer) { p.DLPack.DeviceStream = program.DeviceStreamNever },
		},
	})
}
