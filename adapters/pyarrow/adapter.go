package pyarrow

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// New makes the adapter.
func New() program.Adapter { return &adapter{table()} }

type adapter struct{ program.Table[array] }

// Owns claims what holds elements, and what passes for that.
func (*adapter) Owns(g *py.GIL, _ *program.Env, o py.Object) (bool, error) {
	return kindOf(g, o) != foreign, nil
}

// Plan implements [program.Adapter].
func (a *adapter) Plan(g *py.GIL, env *program.Env, o py.Object) (program.Plan, error) {
	plan := program.StandardPlan()
	plan.Protocols = []program.Protocol{program.DLPack, program.Buffer}
	plan.DLPack.AskDevice = true
	plan.Hold = true
	facts, err := look(g, kindOf(g, o), o)
	if err != nil {
		return plan, err
	}
	a.Edit(&plan, env, facts)
	return plan, nil
}
