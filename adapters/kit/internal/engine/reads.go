package engine

import (
	"errors"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
)

// AfterReads makes a stream of the program wait until the host has done what it has begun to read of the GPU memory of
// the array's context, so that the program may then write to the array in place. The stream is a CUstream, or 0 for the
// one that is current, if the array's framework has such a thing. It must be called with the GIL held, and does not wait
// itself. The error wraps core.ErrUnsupported if the array is not on a GPU, and core.ErrConfig if no stream is current.
func (p *Program) AfterReads(g *py.GIL, o py.Object, stream uintptr) error {
	f, plan, err := p.plan(g, o)
	if err != nil {
		return about("wait", "", f.name, err)
	}
	r, err := p.look(g, o, f, &plan, true)
	if err != nil {
		return about("wait", "", f.name, err)
	}
	defer r.drop(g)
	if r.array.Pointer == nil || !r.array.OnGPU {
		return &core.Error{
			Op: "wait", Kind: core.ErrUnsupported, Err: errors.New("the array is in host memory, where nobody knows who reads it"),
			Remedy: "publish a new array for each version",
		}
	}
	if stream == 0 {
		if stream, err = p.currentStream(g, o, f); err != nil {
			return err
		}
	}
	return p.router.GPU.AfterReads(*r.array.Pointer, stream)
}

func (p *Program) currentStream(g *py.GIL, o py.Object, f owner) (uintptr, error) {
	if s, ok := f.adapter.(program.Streamer); ok {
		env, _, err := p.env(g, f.framework)
		if err != nil {
			return 0, err
		}
		if stream, ok, err := s.CurrentStream(g, env, o); ok || err != nil {
			return stream, about("wait", "", f.name, err)
		}
	}
	return 0, &core.Error{
		Op: "wait", Kind: core.ErrConfig, Err: errors.New("the array's framework does not say which stream is current"),
		Remedy: "pass the stream that is to wait: ndbridge.wait(array, stream=...)",
	}
}
