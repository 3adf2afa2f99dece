package cupy

import (
	"errors"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
)

var errHostMemory = errors.New("CuPy has no arrays in host memory")

// Import implements [program.Importer], by the CUDA array interface: of a host array on a GPU. An array of CuPy does not
// know that its memory is read-only, and a kernel that writes there breaks the context of the program. So of such memory it is a
// copy.
func (*adapter) Import(g *py.GIL, env *program.Env, exporter py.Object, l core.Layout, readOnly bool) (py.Object, error) {
	if l.Device().Kind != core.CUDA {
		return 0, &core.Error{
			Kind: core.ErrDevice, Err: errHostMemory, Remedy: "make the array with Session.NewOn, or take a numpy.ndarray",
		}
	}
	o, err := g.CallMethod(env.Module, "asarray", []py.Object{exporter}, nil)
	if err != nil || !readOnly {
		return o, err
	}
	return g.CallMethod(o, "copy", nil, nil)
}
