package warp

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

type rule = program.Rule[array]

// table has the rules in the order in which they edit a plan: first those that refuse, then
// those that choose the protocol, then those about how __dlpack__ is called.
func table() program.Table[array] {
	return program.NewTable("warp", []rule{
		{
			Quirk: contract.Quirk{
				ID: "warp.indexed-arrays", Effect: contract.EffectRefuse,
				Summary: "indexed arrays and those over Fabric's data pick their elements from several " +
					"places, and speak no protocol",
				Remedy:   "publish {array}.contiguous(), which is a copy",
				Upstream: "warp/_src/types.py, warp/_src/fabric.py",
			},
			When: func(a *array) bool { return gathered(a.class) },
			Edit: func(p *program.Plan, a *array) {
				p.Refusef(core.ErrLayout, "the elements of %s %s are in several places", article(a.class), a.class)
			},
		}, {
			Quirk: contract.Quirk{
				ID: "warp.gpu-struct-arrays", Effect: contract.EffectRefuse, Protocol: string(program.CUDAInterface),
				Summary: "arrays of structures on a GPU speak no protocol: __cuda_array_interface__ raises a TypeError, " +
					"and __dlpack__ a RuntimeError",
				Remedy:   "publish {array}.numpy(), which is a copy on the host",
				Upstream: "warp/_src/types.py, type_typestr",
			},
			When: func(a *array) bool { return a.fields && !a.onCPU },
			Edit: func(p *program.Plan, _ *array) {
				p.Refusef(core.ErrUnsupported, "Warp exports no structures on a GPU")
			},
		}, {
			Quirk: contract.Quirk{
				ID: "warp.struct-arrays", Effect: contract.EffectReroute, Protocol: string(program.DLPack),
				Summary: "__dlpack__ refuses arrays of structures, with a RuntimeError; the array interfaces " +
					"describe their fields",
				Upstream: "warp/_src/dlpack.py",
			},
			When: func(a *array) bool { return a.fields },
			Edit: byInterface,
		}, {
			Quirk: contract.Quirk{
				ID: "warp.bool-before-1.4", Until: "1.4.0", Effect: contract.EffectReroute,
				Protocol: string(program.DLPack),
				Summary:  "__dlpack__ has no conversion for wp.bool; the array interfaces have",
				Upstream: "warp/dlpack.py, changelog of 1.4.0",
			},
			When: func(a *array) bool { return a.dtype == "bool" },
			Edit: byInterface,
		}, {
			Quirk: contract.Quirk{
				ID: "warp.dlpack-no-kwargs", Effect: contract.EffectCorrect, Protocol: string(program.DLPack),
				Summary:  "__dlpack__ does not know the keywords max_version, dl_device and copy",
				Upstream: "warp/_src/types.py",
			},
			Edit: program.WithoutKeywords[array],
		},
	})
}

func article(class string) string {
	if class[0] == 'i' {
		return "an"
	}
	return "a"
}
