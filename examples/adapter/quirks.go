package gridlib

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/core"
)

// table has the rules in the order in which they edit a plan.
func table() program.Table[grid] {
	return program.NewTable("gridlib", []program.Rule[grid]{
		{
			Quirk: core.Quirk{
				ID: "gridlib.pending-before-2", Until: "2.0.0", Effect: core.EffectCorrect,
				Protocol: string(program.Buffer),
				Summary:  "what was put waits in a queue, and the buffer protocol shows the cells from before",
				Upstream: "gridlib.py, Grid.put",
			},
			When: func(f *grid) bool { return f.pending > 0 },
			Edit: func(p *program.Plan, _ *grid) {
				p.Through = append(p.Through, program.MethodCall{Name: "flush"}) // it gives the grid itself
			},
		},
	})
}
