package program

import (
	"fmt"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/dlpack"
)

// The device types of dlpack.h that are supported.
const (
	dlpackCPU         = 1
	dlpackCUDA        = 2
	dlpackCUDAHost    = 3
	dlpackCUDAManaged = 13
)

// DLPackDevice calls __dlpack_device__. The error wraps [core.ErrDevice] for a device that is not supported. In host memory, the
// device's number may be anything.
func DLPackDevice(g *py.GIL, o py.Object) (core.Device, error) {
	device, err := g.CallMethod(o, "__dlpack_device__", nil, nil)
	if err != nil {
		return core.Device{}, err
	}
	kind, err := itemNumber(g, device, 0)
	if err != nil {
		return core.Device{}, err
	}
	d := core.Device{Kind: core.CUDA}
	switch kind {
	case dlpackCPU, dlpackCUDAHost:
		return core.Device{}, nil
	case dlpackCUDA:
	case dlpackCUDAManaged:
		d.Kind = core.CUDAManaged
	default:
		return core.Device{}, &core.Error{
			Kind: core.ErrDevice, Err: fmt.Errorf("the array is on a device of DLPack type %d, which is not supported", kind),
			Remedy: "copy the array to the CPU in the program",
		}
	}
	index, err := itemNumber(g, device, 1)
	if err != nil {
		return core.Device{}, err
	}
	if d.Index = int(index); index < 0 || int64(d.Index) != index {
		return core.Device{}, &core.Error{Kind: core.ErrDevice, Err: fmt.Errorf("the array is on GPU number %d", index)}
	}
	return d, nil
}

func itemNumber(g *py.GIL, o py.Object, i int) (int64, error) {
	item, err := g.ItemInt(o, i)
	if err != nil {
		return 0, err
	}
	return g.Int64(item)
}

// ExchangeAPI gives the address of the exchange API of a class, by which [Exchange] asks its objects; ok is false if it has none.
func ExchangeAPI(g *py.GIL, class py.Object) (api uintptr, ok bool, err error) {
	capsule, ok, err := g.AttrOK(class, dlpack.ExchangeAttribute)
	if !ok || err != nil {
		return 0, false, err
	}
	api, ok = g.Capsule(capsule, dlpack.ExchangeCapsuleName)
	if !ok {
		return 0, true, &core.Error{
			Kind: core.ErrProtocol,
			Err: fmt.Errorf("%s is %s, expected a capsule named %q",
				dlpack.ExchangeAttribute, g.TypeName(capsule), dlpack.ExchangeCapsuleName),
		}
	}
	return api, true, nil
}

// TensorMarks gives what is to be set as [py.Marks.Tensor] for objects of a class, or 0 if that does not
// describe them from C.
func TensorMarks(g *py.GIL, class py.Object) uintptr {
	api, ok, err := ExchangeAPI(g, class)
	if !ok || err != nil {
		return 0
	}
	describe, _ := dlpack.Describer(dlpack.Live(), api) // 0 with an error
	return describe
}
