package program

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program/arrayinterface"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/cai"
)

// askCUDAInterface refuses what has a CUDA array interface: the memory behind it is a GPU's, or may be.
func askCUDAInterface(g *py.GIL, o py.Object) (answer, bool, error) {
	_, ok, err := g.AttrOK(o, "__cuda_array_interface__")
	if !ok || err != nil {
		return answer{}, false, err
	}
	return answer{}, true, notOnHost("a GPU")
}

// askArrayInterface reads __array_interface__; ok is false if the object has none. The memory lives as
// long as the object or the dictionary does.
func askArrayInterface(g *py.GIL, o py.Object, plan *Plan) (a answer, ok bool, err error) {
	dict, ok, err := plan.attribute(g, o, "__array_interface__")
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
		a.holds = []hold{{object: g.Keep(o)}, {object: g.Keep(dict)}}
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
