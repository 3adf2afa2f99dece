package pycuda

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// New makes the adapter.
func New() program.Adapter { return &adapter{table()} }

type adapter struct{ program.Table[array] }

var _ program.Versioned = (*adapter)(nil)

// VersionName implements [program.Versioned].
func (*adapter) VersionName() string { return "VERSION_TEXT" }

// Owns claims arrays, and allocations, which are memory without a shape.
func (*adapter) Owns(g *py.GIL, _ *program.Env, o py.Object) (bool, error) {
	return kindOf(g, o) != foreign, nil
}

// Plan implements [program.Adapter].
func (a *adapter) Plan(g *py.GIL, env *program.Env, o py.Object) (program.Plan, error) {
	plan := program.StandardPlan()
	plan.Protocols = []program.Protocol{program.CUDAInterface} // it has no other
	plan.Hold = true                                           // its pools use memory again
	plan.EndOnMain = true                                      // memory is freed in a context that is current
	facts, err := look(g, o)
	if err != nil {
		return plan, err
	}
	a.Edit(&plan, env, facts)
	return plan, nil
}
