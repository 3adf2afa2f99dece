package warp

import (
	"fmt"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/core"
)

type rule = program.Rule[array]

// rules is the table, in the order in which the rules edit a plan: first the one that refuses, then
// those that choose the protocol, then those about how __dlpack__ is called.
func rules() []rule {
	table := []rule{
		{
			Quirk: core.Quirk{
				ID: "warp.indexed-arrays", Effect: core.EffectRefuse,
				Summary: "indexed arrays and those over Fabric's data pick their elements from several " +
					"places, and speak no protocol",
				Remedy:   "publish {array}.contiguous(), which is a copy",
				Upstream: "warp/_src/types.py, warp/_src/fabric.py",
			},
			When: func(a *array) bool { return gathered(a.class) },
			Edit: func(p *program.Plan, a *array) {
				p.Refuse = &core.Error{
					Kind: core.ErrLayout,
					Err:  fmt.Errorf("the elements of %s %s are in several places", article(a.class), a.class),
				}
			},
		}, {
			Quirk: core.Quirk{
				ID: "warp.struct-arrays", Effect: core.EffectReroute, Protocol: string(program.DLPack),
				Summary: "__dlpack__ refuses arrays of structures, with a RuntimeError; the array interface " +
					"describes their fields",
				Upstream: "warp/_src/dlpack.py",
			},
			When: func(a *array) bool { return a.fields && a.onCPU },
			Edit: byInterface,
		}, {
			Quirk: core.Quirk{
				ID: "warp.bool-before-1.4", Until: "1.4.0", Effect: core.EffectReroute,
				Protocol: string(program.DLPack),
				Summary:  "__dlpack__ has no conversion for wp.bool; the array interface has",
				Upstream: "warp/dlpack.py, changelog of 1.4.0",
			},
			When: func(a *array) bool { return a.dtype == "bool" && a.onCPU },
			Edit: byInterface,
		}, {
			Quirk: core.Quirk{
				ID: "warp.dlpack-no-kwargs", Effect: core.EffectCorrect, Protocol: string(program.DLPack),
				Summary:  "__dlpack__ does not know the keywords max_version, dl_device and copy",
				Upstream: "warp/_src/types.py",
			},
			Edit: func(p *program.Plan, _ *array) { p.DLPack.MaxVersion, p.DLPack.Copy = nil, nil },
		},
	}
	for i := range table {
		table[i].Framework = "warp"
	}
	return table
}

func article(class string) string {
	if class[0] == 'i' {
		return "an"
	}
	return "a"
}
