package numba

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/program/dtypes"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// New makes the adapter.
func New() program.Adapter { return &adapter{table()} }

type adapter struct{ program.Table[array] }

var _ program.Recogniser = (*adapter)(nil)

// Owns claims device arrays and records, and the mapped and managed arrays that are NumPy's as well.
func (*adapter) Owns(g *py.GIL, _ *program.Env, o py.Object) (bool, error) {
	return isDeviceArray(g, o), nil
}

// Marks implements [program.Recogniser]. A class made from an array's may answer as it likes, at any cost.
func (*adapter) Marks(g *py.GIL, _ *program.Env, o py.Object) (py.Marks, bool, error) {
	if !isPlain(g, o) {
		return py.Marks{}, false, nil
	}
	return dtypes.Marks(g, o, "device_ctypes_pointer.value")
}

// Plan implements [program.Adapter].
func (a *adapter) Plan(g *py.GIL, env *program.Env, o py.Object) (program.Plan, error) {
	plan := program.StandardPlan()
	plan.Protocols = []program.Protocol{program.CUDAInterface} // mapped arrays have NumPy's, which order nothing
	plan.Hold = true                                           // memory is freed with the array
	facts, err := look(g, o)
	if err != nil {
		return plan, err
	}
	a.Edit(&plan, env, facts)
	return plan, nil
}
