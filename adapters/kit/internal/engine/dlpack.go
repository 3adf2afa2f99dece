package engine

import (
	"fmt"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/routes"
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/dlpack"
	"github.com/ndbridge/ndbridge/internal/gpu"
)

// askDLPack calls __dlpack__ and takes the tensor out of the capsule; ok is false if the object has
// no such method. The tensor is among the answer's holds; if there is an error it was given back.
func (r *reader) askDLPack(g *py.GIL, o py.Object) (a answer, ok bool, err error) {
	call := &r.DLPack
	method, ok, err := attributeOf(g, r.Plan, o, "__dlpack__")
	if !ok || err != nil {
		return answer{}, false, err
	}
	stream := call.Stream
	if call.AskDevice || gpu.Active() {
		device, err := program.DLPackDevice(g, o)
		if err != nil {
			return answer{}, true, err
		}
		if onGPU(device) {
			if r.Spare != nil && !r.published {
				if o, err = r.Spare.Copy(g, o); err != nil {
					return answer{}, true, err
				}
				if method, ok, err = attributeOf(g, r.Plan, o, "__dlpack__"); !ok || err != nil {
					return answer{}, ok, err
				}
				a.spared = r.Spare.Reason
			}
			if stream, a.ordered, err = r.deviceStream(device); err != nil {
				return answer{}, true, err
			}
		}
	}
	capsule, err := callDLPack(g, method, call, stream)
	if err != nil {
		return answer{}, true, err
	}
	managed, err := consume(g, capsule)
	if err != nil {
		return answer{}, true, err
	}
	ordered, spared := a.ordered, a.spared
	a, err = readManaged(g, managed)
	a.ordered, a.spared = ordered, spared
	if managed.Kind == dlpack.Legacy && call.UnsignedReadOnly {
		a.spec.ReadOnly = true
	}
	return a, true, err
}

// deviceStream chooses the stream argument for an array on a GPU; ours says that it is the queue's.
func (r *reader) deviceStream(device core.Device) (stream *int, ours bool, err error) {
	if err := routes.Reachable(device); err != nil {
		r.hopeless = true
		return nil, false, err
	}
	switch way := r.DLPack.DeviceStream; {
	case way == program.DeviceStreamNever:
		return nil, false, nil
	case way == program.DeviceStreamAsNeeded && !r.asksFramework():
		return new(-1), false, nil // the producer must not synchronize
	}
	if r.queue, err = r.router.GPU.QueueOn(device.Index); err != nil {
		return nil, false, err
	}
	return new(int(r.queue.Stream())), true, nil
}

// callDLPack calls __dlpack__, with the stream unless it is nil.
func callDLPack(g *py.GIL, method py.Object, call *program.DLPackCall, stream *int) (py.Object, error) {
	var kw, plain []py.KW
	if stream != nil {
		value, err := g.NewInt(int64(*stream))
		if err != nil {
			return 0, err
		}
		plain = append(plain, py.KW{Name: "stream", Value: value})
	}
	kw = append(kw, plain...)
	if v := call.MaxVersion; v != nil {
		major, err := g.NewInt(int64(v[0]))
		if err != nil {
			return 0, err
		}
		minor, err := g.NewInt(int64(v[1]))
		if err != nil {
			return 0, err
		}
		version, err := g.NewTuple(major, minor)
		if err != nil {
			return 0, err
		}
		kw = append(kw, py.KW{Name: "max_version", Value: version})
	}
	if call.Copy != nil {
		value := g.False()
		if *call.Copy {
			value = g.True()
		}
		kw = append(kw, py.KW{Name: "copy", Value: value})
	}
	capsule, err := g.Call(method, nil, kw)
	if call.Retry && len(kw) > len(plain) && py.Raised(err, "TypeError") {
		return g.Call(method, nil, plain)
	}
	return capsule, err
}

// consume takes the tensor out of a capsule: from now on its deleter is to be called, exactly once.
func consume(g *py.GIL, capsule py.Object) (dlpack.Managed, error) {
	name, _ := g.CapsuleName(capsule)
	kind, ok := dlpack.KindOf(name)
	if !ok {
		what := g.TypeName(capsule)
		if name != "" {
			what = fmt.Sprintf("a capsule named %q", name)
		}
		return dlpack.Managed{}, &core.Error{
			Kind: core.ErrProtocol,
			Err:  fmt.Errorf("__dlpack__ gave %s, expected a new DLPack capsule", what),
		}
	}
	used := dlpack.UsedCapsuleName
	if kind == dlpack.Versioned {
		used = dlpack.UsedCapsuleNameVersioned
	}
	addr, _ := g.Capsule(capsule, name)
	managed, err := dlpack.Inspect(dlpack.Live(), addr, kind)
	if err != nil {
		return dlpack.Managed{}, err // the capsule keeps its name, so its destructor sees to the tensor
	}
	return managed, g.SetCapsuleName(capsule, used)
}

func onGPU(d core.Device) bool { return d.Kind == core.CUDA || d.Kind == core.CUDAManaged }
