// Package gridlib knows the grids of gridlib, a made-up Python module whose only protocol is Python's
// buffer protocol. docs/writing-an-adapter.md explains it line by line.
package gridlib

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// New makes the adapter.
func New() program.Adapter { return &adapter{table()} }

type adapter struct{ program.Table[grid] }

// Owns claims grids, and what classes made from Grid make.
func (*adapter) Owns(g *py.GIL, env *program.Env, o py.Object) (bool, error) {
	class, ok, err := g.AttrOK(env.Module, "Grid")
	return ok && g.IsInstance(o, class), err // without the class, gridlib is just being imported
}

// Plan implements [program.Adapter].
func (a *adapter) Plan(g *py.GIL, env *program.Env, o py.Object) (program.Plan, error) {
	plan := program.StandardPlan()
	plan.Protocols = []program.Protocol{program.Buffer} // grids speak no other
	facts, err := look(g, o)
	if err != nil {
		return plan, err
	}
	a.Edit(&plan, env, facts)
	return plan, nil
}

// grid holds the facts about one grid on which quirks depend.
type grid struct{ kind string }

func look(g *py.GIL, o py.Object) (*grid, error) {
	attribute, err := g.Attr(o, "kind")
	if err != nil {
		return nil, err
	}
	kind, err := g.Text(attribute)
	return &grid{kind: kind}, err
}
