package program

import (
	"fmt"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/dlpack"
)

// askDLPack calls __dlpack__ and takes the tensor out of the capsule; ok is false if the object has
// no such method. The tensor is among the answer's holds; if there is an error it was given back.
func askDLPack(g *py.GIL, o py.Object, plan *Plan) (a answer, ok bool, err error) {
	call := &plan.DLPack
	method, ok, err := plan.attribute(g, o, "__dlpack__")
	if !ok || err != nil {
		return answer{}, false, err
	}
	if call.AskDevice {
		if err := askDevice(g, o); err != nil {
			return answer{}, true, err
		}
	}
	capsule, err := callDLPack(g, method, call)
	if err != nil {
		return answer{}, true, err
	}
	managed, err := consume(g, capsule)
	if err != nil {
		return answer{}, true, err
	}
	a, err = readManaged(g, managed)
	if managed.Kind == dlpack.Legacy && call.UnsignedReadOnly {
		a.spec.ReadOnly = true
	}
	return a, true, err
}

func callDLPack(g *py.GIL, method py.Object, call *DLPackCall) (py.Object, error) {
	var kw, plain []py.KW
	if call.Stream != nil {
		stream, err := g.NewInt(int64(*call.Stream))
		if err != nil {
			return 0, err
		}
		plain = append(plain, py.KW{Name: "stream", Value: stream})
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
	if call.Retry && len(kw) > len(plain) && raised(err, "TypeError") {
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

// The DLPack device types whose memory is the host's own: the CPU's, and what is pinned for a GPU.
const (
	dlpackCPU      = 1
	dlpackCUDA     = 2
	dlpackCUDAHost = 3
)

// askDevice refuses an object that is not in host memory. The device's number may be anything there.
func askDevice(g *py.GIL, o py.Object) error {
	device, err := g.CallMethod(o, "__dlpack_device__", nil, nil)
	if err != nil {
		return err
	}
	kindObject, err := g.ItemInt(device, 0)
	if err != nil {
		return err
	}
	kind, err := g.Int64(kindObject)
	if err != nil || kind == dlpackCPU || kind == dlpackCUDAHost {
		return err
	}
	where := fmt.Sprintf("a device of DLPack type %d", kind)
	if kind == dlpackCUDA {
		where = "a GPU"
		if id, err := g.ItemInt(device, 1); err == nil {
			if n, err := g.Int64(id); err == nil {
				where = core.Device{Kind: core.CUDA, Index: int(n)}.String()
			}
		}
	}
	return notOnHost(where)
}

func notOnHost(where string) error {
	return &core.Error{
		Kind: core.ErrDevice, Err: fmt.Errorf("the array is on %s, and this build reads host memory only", where),
		Remedy: "copy the array to the CPU in the program",
	}
}
