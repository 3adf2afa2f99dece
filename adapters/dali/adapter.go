package dali

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
)

// New makes the adapter.
func New() program.Adapter { return &adapter{rules: rules()} }

type adapter struct{ rules []rule }

var _ program.Packaged = (*adapter)(nil)

// Framework implements [program.Adapter].
func (*adapter) Framework() string { return "dali" }

// Module implements [program.Packaged].
func (*adapter) Module() string { return "nvidia.dali" }

// Quirks implements [program.Adapter].
func (a *adapter) Quirks() []core.Quirk { return program.Quirks(a.rules) }

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
	program.Apply(&plan, a.rules, env, facts)
	return plan, nil
}
