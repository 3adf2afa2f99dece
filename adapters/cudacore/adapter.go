package cudacore

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// New makes the adapter.
func New() program.Adapter { return &adapter{table()} }

type adapter struct{ program.Table[buffer] }

var _ program.Packaged = (*adapter)(nil)

// Module implements [program.Packaged].
func (*adapter) Module() string { return "cuda.core" }

// Owns claims buffers, and views of other frameworks' arrays.
func (*adapter) Owns(g *py.GIL, _ *program.Env, o py.Object) (bool, error) {
	return kindOf(g, o) != foreign, nil
}

// Plan implements [program.Adapter].
func (a *adapter) Plan(g *py.GIL, env *program.Env, o py.Object) (program.Plan, error) {
	plan := program.StandardPlan()
	plan.Protocols = []program.Protocol{program.DLPack}
	plan.Hold = true // memory goes back to its pool with the buffer
	a.Edit(&plan, env, &buffer{kindOf(g, o)})
	return plan, nil
}
