package cupy

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

type rule = program.Rule[array]

const dlpackPyx = "cupy/_core/dlpack.pyx"

// table has the rules in the order in which they edit a plan: first the one that refuses, then those
// that choose the protocol, then the one about how __dlpack__ is called.
func table() program.Table[array] {
	return program.NewTable("cupy", []rule{
		{
			Quirk: contract.Quirk{
				ID: "cupy.sparse-matrices", Effect: contract.EffectRefuse,
				Summary:  "sparse matrices are several arrays, and speak no protocol",
				Remedy:   "publish the parts, {array}.data, {array}.indices and {array}.indptr (of COO: row and col); or {array}.todense()",
				Upstream: "cupyx/scipy/sparse/_base.py",
			},
			When: func(a *array) bool { return a.sparse != "" },
			Edit: func(p *program.Plan, a *array) {
				p.Refusef(core.ErrLayout, "a %s is several arrays", a.sparse)
			},
		}, {
			Quirk: contract.Quirk{
				ID: "cupy.records-without-dlpack", Since: "14.0.0", Effect: contract.EffectReroute,
				Protocol: string(program.DLPack),
				Summary:  "DLPack refuses records; the CUDA array interface describes their fields",
				Upstream: dlpackPyx,
			},
			When: func(a *array) bool { return a.Records() },
			Edit: byInterface,
		}, {
			Quirk: contract.Quirk{
				ID: "cupy.strides-rounded", Effect: contract.EffectReroute, Protocol: string(program.DLPack),
				Summary: "DLPack counts strides in elements, and strides that are no multiple of the item size " +
					"are silently rounded down: the capsule shows other memory",
				Upstream: dlpackPyx + ", toDlpack",
			},
			When: func(a *array) bool { return a.oddStride },
			Edit: byInterface,
		}, {
			Quirk: contract.Quirk{
				ID: "cupy.negative-strides", Effect: contract.EffectReroute, Protocol: string(program.DLPack),
				Summary:  "DLPack divides strides by the item size as numbers without a sign: negative ones become huge",
				Upstream: dlpackPyx + ", toDlpack",
			},
			When: func(a *array) bool { return a.backwards },
			Edit: byInterface,
		}, {
			Quirk: contract.Quirk{
				ID: "cupy.kwargs-before-13.4", Until: "13.4.0", Effect: contract.EffectCorrect,
				Protocol: string(program.DLPack),
				Summary:  "__dlpack__ does not know the keywords max_version, dl_device and copy",
				Upstream: "cupy pull request 8683",
			},
			Edit: program.WithoutKeywords[array],
		},
	})
}

// byInterface makes the CUDA array interface the only protocol. NumPy's own name for what it describes is
// better.
func byInterface(p *program.Plan, a *array) {
	p.Protocols = []program.Protocol{program.CUDAInterface}
	p.Tag = a.Name
}
