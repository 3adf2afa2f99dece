package torch

import (
	"strings"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// New makes the adapter.
func New() program.Adapter { return &adapter{Table: table()} }

type adapter struct {
	program.Table[tensor]
	keys    atomic.Pointer[py.BehindMark] // see keySet; nil: nobody has looked
	imports atomic.Pointer[imports]       // nil: nothing was imported
}

var (
	_ program.Streamer   = (*adapter)(nil)
	_ program.Recogniser = (*adapter)(nil)
	_ program.Container  = (*adapter)(nil)
	_ program.Storer     = (*adapter)(nil)
	_ program.Keeper     = (*adapter)(nil)
	_ program.Importer   = (*adapter)(nil)
	_ program.Guard      = (*adapter)(nil)
)

// Owns claims tensors of every kind, subclasses included.
func (*adapter) Owns(g *py.GIL, env *program.Env, o py.Object) (bool, error) {
	class, ok, err := g.AttrOK(env.Module, "Tensor")
	return ok && g.IsInstance(o, class), err // without it torch is just being imported
}

// Marks implements [program.Recogniser]: a tensor of a class that changes nothing is what DLPack's C
// function says of it and what that does not say. PyTorch has had the function since 2.10.
func (a *adapter) Marks(g *py.GIL, env *program.Env, o py.Object) (marks py.Marks, ok bool, err error) {
	class, err := g.Attr(env.Module, "Tensor")
	if err != nil {
		return marks, false, err
	}
	marks = py.Marks{Class: g.Type(o), Tensor: program.TensorMarks(g, class), Attributes: []string{"requires_grad"}}
	if marks.Tensor == 0 {
		return marks, false, nil
	}
	if marks.Class != class {
		nn, err := g.Attr(env.Module, "nn")
		if err != nil {
			return marks, false, err
		}
		if parameter, err := g.Attr(nn, "Parameter"); err != nil || marks.Class != parameter {
			return marks, false, err
		}
	}
	if marks.Behind = a.keySet(g, env, class, o); marks.Behind == (py.BehindMark{}) {
		marks.Methods = []string{"is_conj", "is_neg"}
	}
	l := looker{g: g, class: class, o: o, plain: true}
	dtype, err := l.word("dtype")
	if strings.Contains(dtype, "int") { // DLPack does not tell those of 1 to 8 bits apart
		marks.Attributes = append(marks.Attributes, "dtype")
	}
	return marks, err == nil, err
}

// Storage implements [program.Storer]: Tensor.set_, Tensor.data and Tensor.resize_ change a tensor without the GIL.
func (*adapter) Storage(g *py.GIL, env *program.Env, o py.Object) (s program.Storage, ok bool, err error) {
	class, err := g.Attr(env.Module, "Tensor")
	if err != nil {
		return s, false, err
	}
	if !isPlain(g.TypeName(o)) {
		leave, err := withoutOverrides(g, env)
		if err != nil {
			return s, false, err
		}
		defer leave()
	}
	if s.Object, ok, err = storageOf(g, class, o); !ok || err != nil {
		return s, false, err
	}
	// resize_ replaces the memory before it tells the size.
	facts, err := g.Ask(s.Object, "nbytes", "data_ptr")
	if err != nil {
		return s, false, err
	}
	s.Size, s.Addr = facts[0], facts[1]
	return s, true, nil
}

// Keeper implements [program.Keeper].
func (*adapter) Keeper(g *py.GIL, env *program.Env, o py.Object) (keeper py.Object, ok bool, err error) {
	class, err := g.Attr(env.Module, "Tensor")
	if err != nil {
		return 0, false, err
	}
	facts, err := look(g, env, class, o)
	return o, err == nil && facts.owned, err
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
// each device has one. That of the current device is where copies to and from pinned memory go.
func (*adapter) CurrentStream(g *py.GIL, env *program.Env, o py.Object) (uintptr, bool, error) {
	var devices []py.Object
	flag, err := g.Attr(o, "is_cuda")
	if err != nil {
		return 0, false, err
	}
	if onGPU, err := g.Bool(flag); err != nil {
		return 0, false, err
	} else if onGPU {
		device, err := g.Attr(o, "device")
		if err != nil {
			return 0, false, err
		}
		devices = append(devices, device)
	}
	cuda, err := g.Attr(env.Module, "cuda")
	if err != nil {
		return 0, false, err
	}
	stream, err := g.CallMethod(cuda, "current_stream", devices, nil)
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
