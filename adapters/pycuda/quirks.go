package pycuda

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

type rule = program.Rule[array]

// The file of PyCUDA that shows most quirks.
const gpuarrayPy = "pycuda/gpuarray.py"

// table has the rules in the order in which they edit a plan: first the one that refuses, then those
// about element types.
func table() program.Table[array] {
	return program.NewTable("pycuda", []rule{
		{
			Quirk: contract.Quirk{
				ID: "pycuda.allocations", Effect: contract.EffectRefuse,
				Summary: "what mem_alloc, a pool or an IPC handle gives is a pointer without a shape or a type, and " +
					"speaks no protocol",
				Remedy:   "publish pycuda.gpuarray.GPUArray(shape, dtype, gpudata={array}), which takes the memory as it is",
				Upstream: "src/wrapper/wrap_cudadrv.cpp, src/wrapper/mempool.cpp",
			},
			When: func(a *array) bool { return a.kind == allocation },
			Edit: func(p *program.Plan, a *array) {
				p.Refusef(core.ErrUnsupported, "a %s is memory without a shape or a type", a.class)
			},
		}, {
			Quirk: contract.Quirk{
				ID: "pycuda.records-without-fields", Effect: contract.EffectCorrect,
				Protocol: string(program.CUDAInterface),
				Summary: "the CUDA array interface of records, and so of PyCUDA's vector types, tells their size and " +
					"not their fields: it has no descr",
				Upstream: gpuarrayPy,
			},
			When: func(a *array) bool { return a.Records() },
			Edit: func(p *program.Plan, a *array) { p.Tag = a.Name },
		}, {
			Quirk: contract.Quirk{
				ID: "pycuda.extension-dtypes", Effect: contract.EffectCorrect,
				Protocol: string(program.CUDAInterface),
				Summary: "the CUDA array interface gives several dtypes of other packages (bfloat16, float8 of " +
					"ml_dtypes) one and the same typestr",
				Upstream: gpuarrayPy,
			},
			When: func(a *array) bool { return a.Extension },
			Edit: func(p *program.Plan, a *array) { a.ExtendTo(p) },
		},
	})
}
