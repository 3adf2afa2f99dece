package torch

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// New makes the adapter.
func New() program.Adapter { return &adapter{table()} }

type adapter struct{ program.Table[tensor] }

var _ program.Streamer = (*adapter)(nil)

// Owns claims tensors of every kind, subclasses included.
func (*adapter) Owns(g *py.GIL, env *program.Env, o py.Object) (bool, error) {
	class, ok, err := g.AttrOK(env.Module, "Tensor")
	return ok && g.IsInstance(o, class), err // without it torch is just being imported
}

// Plan implements [program.Adapter].
func (a *adapter) Plan(g *py.GIL, env *program.Env, o py.Object) (program.Plan, error) {
	plan := program.StandardPlan()
	plan.Protocols = []program.Protocol{program.Exchange, program.DLPack} // what the others say, these say better
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

// legacyStream is how DLPack calls the default stream that PyTorch calls 0.
const legacyStream = 1

// CurrentStream implements [program.Streamer]: PyTorch's current stream is the calling thread's, and
// each device has one.
func (*adapter) CurrentStream(g *py.GIL, env *program.Env, o py.Object) (uintptr, bool, error) {
	device, err := g.Attr(o, "device")
	if err != nil {
		return 0, false, err
	}
	cuda, err := g.Attr(env.Module, "cuda")
	if err != nil {
		return 0, false, err
	}
	stream, err := g.CallMethod(cuda, "current_stream", []py.Object{device}, nil)
	if err != nil {
		return 0, false, err
	}
	pointer, err := g.Attr(stream, "cuda_stream")
	if err != nil {
		return 0, false, err
	}
	handle, err := g.Uint64(pointer)
	return max(uintptr(handle), legacyStream), err == nil, err
}
