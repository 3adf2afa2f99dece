package numba

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

type rule = program.Rule[array]

// The file of numba-cuda that shows the quirks.
const devicearrayPy = "numba/cuda/cudadrv/devicearray.py"

// table has the rules in the order in which they edit a plan: first the one that refuses, then those
// about element types.
func table() program.Table[array] {
	return program.NewTable("numba", []rule{
		{
			Quirk: contract.Quirk{
				ID: "numba.broadcast-as-dense", Effect: contract.EffectRefuse,
				Protocol: string(program.CUDAInterface),
				Summary: "a broadcast array has strides of 0, but its CUDA array interface leaves them out, " +
					"as if the array were row-major: what is then read behind the first row is other memory",
				Remedy:   "publish the array that was broadcast, or a copy of {array}",
				Upstream: devicearrayPy + ", is_contiguous",
			},
			When: func(a *array) bool { return a.repeats },
			Edit: func(p *program.Plan, _ *array) {
				p.Refusef(core.ErrLayout, "the array was broadcast, and its interface does not say so")
			},
		}, {
			Quirk: contract.Quirk{
				ID: "numba.records-without-fields", Effect: contract.EffectCorrect,
				Protocol: string(program.CUDAInterface),
				Summary:  "the CUDA array interface of records tells their size and not their fields: it has no descr",
				Upstream: devicearrayPy,
			},
			When: func(a *array) bool { return a.Records() },
			Edit: func(p *program.Plan, a *array) { p.Tag = a.Name },
		}, {
			Quirk: contract.Quirk{
				ID: "numba.extension-dtypes", Effect: contract.EffectCorrect,
				Protocol: string(program.CUDAInterface),
				Summary: "the CUDA array interface gives several dtypes of other packages (bfloat16, float8 of " +
					"ml_dtypes) one and the same typestr",
				Upstream: devicearrayPy,
			},
			When: func(a *array) bool { return a.Extension },
			Edit: func(p *program.Plan, a *array) { a.ExtendTo(p) },
		},
	})
}
