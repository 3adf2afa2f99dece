package pycuda

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/program/dtypes"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// New makes the adapter.
func New() program.Adapter { return &adapter{table()} }

type adapter struct{ program.Table[array] }

var (
	_ program.Versioned  = (*adapter)(nil)
	_ program.Recogniser = (*adapter)(nil)
)

// VersionName implements [program.Versioned].
func (*adapter) VersionName() string { return "VERSION_TEXT" }

// Owns claims arrays, and allocations, which are memory without a shape.
func (*adapter) Owns(g *py.GIL, _ *program.Env, o py.Object) (bool, error) {
	return kindOf(g, o) != foreign, nil
}

// Marks implements [program.Recogniser]. A class made from an array's may answer as it likes, at any cost.
func (*adapter) Marks(g *py.GIL, env *program.Env, o py.Object) (py.Marks, bool, error) {
	module, err := g.Attr(env.Module, "gpuarray")
	if err != nil {
		return py.Marks{}, false, nil //nolint:nilerr // no array is one of a module that was not imported
	}
	class, err := g.Attr(module, "GPUArray")
	if err != nil || g.Type(o) != class {
		return py.Marks{}, false, err
	}
	return dtypes.Marks(g, o, "ptr")
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
