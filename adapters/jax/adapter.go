package jax

import (
	"sync/atomic"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// New makes the adapter.
func New() program.Adapter { return &adapter{Table: table()} }

type adapter struct {
	program.Table[array]
	imports atomic.Pointer[imports] // nil: nothing was imported
}

var (
	_ program.Recogniser = (*adapter)(nil)
	_ program.Importer   = (*adapter)(nil)
	_ program.Container  = (*adapter)(nil)
	_ program.Keeper     = (*adapter)(nil)
)

// Owns claims arrays, and what JAX has that looks like one without having memory of its own.
func (*adapter) Owns(g *py.GIL, _ *program.Env, o py.Object) (bool, error) {
	return kindOf(g, o) != foreign, nil
}

// Marks implements [program.Recogniser]: an array cannot change, but its memory can be given up.
func (*adapter) Marks(g *py.GIL, _ *program.Env, o py.Object) (py.Marks, bool, error) {
	return py.Marks{Class: g.Type(o), Itself: true, Methods: []string{"is_deleted"}}, kindOf(g, o) == concrete, nil
}

// Keeper implements [program.Keeper]: what nobody may write to nobody frees, either, while the array is there.
func (*adapter) Keeper(g *py.GIL, _ *program.Env, o py.Object) (keeper py.Object, ok bool, err error) {
	return o, kindOf(g, o) == concrete, nil
}

// Plan implements [program.Adapter].
func (a *adapter) Plan(g *py.GIL, env *program.Env, o py.Object) (program.Plan, error) {
	plan := program.StandardPlan()
	plan.Protocols = []program.Protocol{program.DLPack} // what it says by others, it says by this one too
	plan.DLPack.AskDevice = true                        // __dlpack__ waits for a GPU, for nothing
	plan.Fixed = kindOf(g, o) == concrete
	if plan.Fixed && env.InForce(givenAway) {
		plan.Gone = gone
	}
	facts, err := look(g, kindOf(g, o), env.Module, o)
	if err != nil {
		return plan, err
	}
	a.Edit(&plan, env, facts)
	return plan, nil
}
