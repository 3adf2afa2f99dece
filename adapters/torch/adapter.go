package torch

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// New makes the adapter.
func New() program.Adapter { return &adapter{table()} }

type adapter struct{ program.Table[tensor] }

// Owns claims tensors of every kind, subclasses included.
func (*adapter) Owns(g *py.GIL, env *program.Env, o py.Object) (bool, error) {
	class, ok, err := g.AttrOK(env.Module, "Tensor")
	return ok && g.IsInstance(o, class), err // without it torch is just being imported
}

// Plan implements [program.Adapter].
func (a *adapter) Plan(g *py.GIL, env *program.Env, o py.Object) (program.Plan, error) {
	plan := program.StandardPlan()
	plan.Protocols = []program.Protocol{program.Exchange, program.DLPack} // it has no others on the CPU
	class, err := g.Attr(env.Module, "Tensor")
	if err != nil {
		return plan, err
	}
	plan.Class = class
	facts, err := look(g, env, class, o)
	if err != nil {
		return plan, err
	}
	plan.Hold = !facts.owned
	a.Edit(&plan, env, facts)
	return plan, nil
}
