package gridlib

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/contract"
)

// table has the rules in the order in which they edit a plan.
func table() program.Table[grid] {
	return program.NewTable("gridlib", []program.Rule[grid]{
		{
			Quirk: contract.Quirk{
				ID: "gridlib.bool-before-2", Until: "2.0.0", Effect: contract.EffectCorrect,
				Protocol: string(program.Buffer),
				Summary:  "the buffer protocol says that bool is uint8",
				Upstream: "gridlib.py, CELLS",
			},
			When: func(f *grid) bool { return f.kind == "bool" },
			Edit: func(p *program.Plan, _ *grid) { p.DType = core.Bool },
		},
	})
}
