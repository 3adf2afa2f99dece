package engine

import (
	"github.com/ndbridge/ndbridge/adapters/kit/internal/arrayinterface"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/holds"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/routes"
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/cai"
)

// streamOfThread is the number that stands for the default stream of whichever thread uses it: of the
// thread that made the array, and this is another.
const streamOfThread = 2

// askCUDAInterface reads __cuda_array_interface__; ok is false if the object has none. The protocol does
// not say which GPU it is. The memory lives as long as the object or the dictionary does.
func (r *reader) askCUDAInterface(g *py.GIL, o py.Object) (a answer, ok bool, err error) {
	dict, ok, err := attributeOf(g, r.Plan, o, "__cuda_array_interface__")
	if !ok || err != nil {
		return answer{}, false, err
	}
	device := core.Device{Kind: core.CUDA}
	if err := routes.Reachable(device); err != nil {
		r.hopeless = true
		return answer{}, true, err
	}
	d, err := arrayinterface.ReadCUDA(g, dict)
	if err != nil {
		return answer{}, true, err
	}
	if r.DType != core.Invalid {
		d.Typestr, d.Descr = withoutType(d.Typestr), ""
	}
	array, err := cai.ReadCUDA(d, device)
	if err != nil {
		return answer{}, true, err
	}
	a = answer{spec: array.Spec, addr: array.Addr}
	if s := array.Stream; s.Given && s.Handle != streamOfThread {
		a.stream = uintptr(s.Handle)
	}
	a.holds = []holds.Hold{{Object: g.Keep(o), OnMain: r.EndOnMain}, {Object: g.Keep(dict), OnMain: r.EndOnMain}}
	return a, true, nil
}

// askArrayInterface reads __array_interface__; ok is false if the object has none. The memory lives as
// long as the object or the dictionary does.
func askArrayInterface(g *py.GIL, o py.Object, plan *program.Plan) (a answer, ok bool, err error) {
	dict, ok, err := attributeOf(g, plan, o, "__array_interface__")
	if !ok || err != nil {
		return answer{}, false, err
	}
	d, room, err := arrayinterface.Read(g, o, dict)
	if err != nil {
		return answer{}, true, err
	}
	if plan.DType != core.Invalid {
		d.Typestr, d.Descr = withoutType(d.Typestr), ""
	}
	array, err := cai.ReadHost(d)
	if err != nil {
		return answer{}, true, err
	}
	if err := room.Check(array); err != nil {
		return answer{}, true, err
	}
	a = answer{spec: array.Spec, addr: array.Addr}
	if plan.Hold {
		a.holds = []holds.Hold{{Object: g.Keep(o), OnMain: plan.EndOnMain}, {Object: g.Keep(dict), OnMain: plan.EndOnMain}}
	}
	return a, true, nil
}

// withoutType makes a typestr of the same size that says nothing else, for elements of which more is
// known: NumPy writes "<f1" for one of the types of eight bits, which is no type at all.
func withoutType(typestr string) string {
	if len(typestr) < 3 {
		return typestr // and an error
	}
	return "|V" + typestr[2:]
}
