package pycuda

import (
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/program/dtypes"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// kind is what an object is to PyCUDA.
type kind uint8

const (
	foreign    kind = iota // not PyCUDA's
	gpuArray               // memory with a shape and a type
	allocation             // memory of which the size is all that is known, if that
)

// kindOf goes by the names of classes, since the modules that have them may not be imported.
func kindOf(g *py.GIL, o py.Object) kind {
	for _, name := range g.MRO(o) {
		if !strings.HasPrefix(name, "pycuda.") {
			continue
		}
		switch name[strings.LastIndexByte(name, '.')+1:] {
		case "GPUArray":
			return gpuArray
		case "PointerHolderBase", "DeviceAllocation", "PooledDeviceAllocation", "HostPointer", "IPCMemoryHandle":
			return allocation
		}
	}
	return foreign
}

// array holds the facts about one object on which quirks depend.
type array struct {
	dtypes.NumPy
	kind  kind
	class string // the last name of the object's type
}

func look(g *py.GIL, o py.Object) (*array, error) {
	name := g.TypeName(o)
	a := &array{kind: kindOf(g, o), class: name[strings.LastIndexByte(name, '.')+1:]}
	if a.kind != gpuArray {
		return a, nil
	}
	dtype, err := g.Attr(o, "dtype")
	if err != nil {
		return nil, err
	}
	a.NumPy, err = dtypes.Look(g, dtype)
	return a, err
}
