package engine

import (
	"github.com/ndbridge/ndbridge/adapters/kit/internal/holds"
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core/dlpack"
)

// askExchange exports by the C functions that the object's class has; ok is false if it has none. The
// tensor is among the answer's holds; if there is an error it was given back.
func askExchange(g *py.GIL, o py.Object, plan *program.Plan) (a answer, ok bool, err error) {
	class := plan.Class
	if class == 0 {
		class = g.Type(o)
	}
	api, ok, err := program.ExchangeAPI(g, class)
	if !ok || err != nil {
		return answer{}, ok, err
	}
	export, err := dlpack.Exporter(dlpack.Live(), api)
	if err != nil {
		return answer{}, true, err
	}
	made, err := g.CallExporter(export, o)
	if err != nil {
		return answer{}, true, err
	}
	managed, err := dlpack.Inspect(dlpack.Live(), made, dlpack.Versioned)
	if err != nil {
		return answer{}, true, err
	}
	a, err = readManaged(g, managed)
	return a, true, err
}

// readManaged reads a tensor whose deleter is to be called, and gives it back if it cannot be read.
func readManaged(g *py.GIL, managed dlpack.Managed) (answer, error) {
	back := holds.Hold{Deleter: managed.Deleter, Argument: managed.Addr}
	t, err := managed.Tensor()
	if err != nil {
		back.Drop(g)
		return answer{}, err
	}
	return answer{spec: t.Spec, addr: t.Addr, deviceKnown: true, copied: t.Copied, holds: []holds.Hold{back}}, nil
}
