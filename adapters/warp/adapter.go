package warp

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// New makes the adapter.
func New() program.Adapter { return &adapter{table()} }

type adapter struct{ program.Table[array] }

var _ program.Streamer = (*adapter)(nil)

// Owns claims arrays, and what Warp has that picks elements from arrays.
func (*adapter) Owns(g *py.GIL, _ *program.Env, o py.Object) (bool, error) {
	return classOf(g, o) != "", nil
}

// Plan implements [program.Adapter].
func (a *adapter) Plan(g *py.GIL, env *program.Env, o py.Object) (program.Plan, error) {
	plan := program.StandardPlan()
	plan.Protocols = []program.Protocol{program.DLPack}
	plan.DLPack.AskDevice = true // __dlpack__ of an array on a GPU does work there, for nothing
	plan.Hold = true
	facts, err := look(g, o)
	if err != nil {
		return plan, err
	}
	a.Edit(&plan, env, facts)
	return plan, nil
}

// CurrentStream implements [program.Streamer]: each of Warp's GPUs has one, for all threads. Its CPU, where
// pinned arrays are, has none.
func (*adapter) CurrentStream(g *py.GIL, _ *program.Env, o py.Object) (uintptr, bool, error) {
	device, err := g.Attr(o, "device")
	if err != nil {
		return 0, false, err
	}
	onGPU, err := g.Attr(device, "is_cuda")
	if err != nil {
		return 0, false, err
	}
	if yes, err := g.Bool(onGPU); err != nil || !yes {
		return 0, false, err
	}
	stream, err := g.Attr(device, "stream")
	if err != nil {
		return 0, false, err
	}
	pointer, err := g.Attr(stream, "cuda_stream")
	if err != nil || g.IsNone(pointer) {
		return 0, false, err
	}
	handle, err := g.Uint64(pointer)
	return max(uintptr(handle), legacyStream), err == nil, err
}

// legacyStream is how DLPack calls CUDA's default stream, whose handle is 0.
const legacyStream = 1
