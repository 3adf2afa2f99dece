package cupy

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/program/dtypes"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// New makes the adapter.
func New() program.Adapter { return &adapter{table()} }

type adapter struct{ program.Table[array] }

var (
	_ program.Streamer   = (*adapter)(nil)
	_ program.Recogniser = (*adapter)(nil)
	_ program.Importer   = (*adapter)(nil)
)

// Owns claims arrays, subclasses included, and sparse matrices.
func (*adapter) Owns(g *py.GIL, env *program.Env, o py.Object) (bool, error) {
	class, ok, err := g.AttrOK(env.Module, "ndarray")
	if !ok || err != nil {
		return false, err // cupy is just being imported
	}
	return g.IsInstance(o, class) || isSparse(g, o), nil
}

// Marks implements [program.Recogniser]. A class made from an array's may answer as it likes, at any cost.
func (*adapter) Marks(g *py.GIL, env *program.Env, o py.Object) (py.Marks, bool, error) {
	class, err := g.Attr(env.Module, "ndarray")
	if err != nil || g.Type(o) != class {
		return py.Marks{}, false, err
	}
	return dtypes.Marks(g, o, "data.ptr")
}

// Plan implements [program.Adapter].
func (a *adapter) Plan(g *py.GIL, env *program.Env, o py.Object) (program.Plan, error) {
	plan := program.StandardPlan()
	plan.Protocols = []program.Protocol{program.DLPack, program.CUDAInterface}
	plan.Hold = true // its pool gives the memory to the next array when this one goes
	facts, err := look(g, o)
	if err != nil {
		return plan, err
	}
	a.Edit(&plan, env, facts)
	return plan, nil
}

// CurrentStream implements [program.Streamer]: CuPy's current stream is the calling thread's.
func (*adapter) CurrentStream(g *py.GIL, env *program.Env, _ py.Object) (uintptr, bool, error) {
	cuda, err := g.Attr(env.Module, "cuda")
	if err != nil {
		return 0, false, err
	}
	stream, err := g.CallMethod(cuda, "get_current_stream", nil, nil)
	if err != nil {
		return 0, false, err
	}
	pointer, err := g.Attr(stream, "ptr")
	if err != nil {
		return 0, false, err
	}
	handle, err := g.Uint64(pointer)
	return max(uintptr(handle), legacyStream), err == nil, err
}

// legacyStream is how DLPack calls the default stream that CuPy calls 0.
const legacyStream = 1
