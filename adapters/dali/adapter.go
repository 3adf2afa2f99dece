package dali

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// New makes the adapter.
func New() program.Adapter { return &adapter{table()} }

type adapter struct{ program.Table[facts] }

var _ program.Packaged = (*adapter)(nil)

// Module implements [program.Packaged].
func (*adapter) Module() string { return "nvidia.dali" }

// Owns claims tensors and batches.
func (*adapter) Owns(g *py.GIL, _ *program.Env, o py.Object) (bool, error) {
	return kindOf(g, o) != foreign, nil
}

// Plan implements [program.Adapter].
func (a *adapter) Plan(g *py.GIL, env *program.Env, o py.Object) (program.Plan, error) {
	plan := program.StandardPlan()
	plan.Protocols = []program.Protocol{program.DLPack, program.ArrayInterface}
	plan.DLPack.AskDevice = true // __dlpack__ orders a GPU's work, for nothing
	plan.Hold = true
	facts, err := look(g, kindOf(g, o), o)
	if err != nil {
		return plan, err
	}
	a.Edit(&plan, env, facts)
	return plan, nil
}
