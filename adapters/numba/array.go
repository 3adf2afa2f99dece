package numba

import (
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/program/dtypes"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// isDeviceArray goes by the name of a class, since numba.cuda may not be imported. The package
// numba-cuda puts its own in that module's place.
func isDeviceArray(g *py.GIL, o py.Object) bool {
	return slices.ContainsFunc(g.MRO(o), func(name string) bool {
		return strings.HasPrefix(name, "numba") && strings.HasSuffix(name, ".DeviceNDArrayBase")
	})
}

// isPlain says whether an array's class is the usual one itself.
func isPlain(g *py.GIL, o py.Object) bool {
	class := g.TypeName(o)
	return strings.HasPrefix(class, "numba") && strings.HasSuffix(class, ".DeviceNDArray")
}

// array holds the facts about one array on which quirks depend.
type array struct {
	dtypes.NumPy
	repeats bool // an axis with more than one element has the stride 0
}

func look(g *py.GIL, o py.Object) (*array, error) {
	a := new(array)
	dtype, err := g.Attr(o, "dtype")
	if err != nil {
		return nil, err
	}
	if a.NumPy, err = dtypes.Look(g, dtype); err != nil {
		return nil, err
	}
	shape, err := ints(g, o, "shape")
	if err != nil {
		return nil, err
	}
	strides, err := ints(g, o, "strides")
	if err != nil {
		return nil, err
	}
	for axis, stride := range strides {
		a.repeats = a.repeats || stride == 0 && axis < len(shape) && shape[axis] > 1
	}
	return a, nil
}

func ints(g *py.GIL, o py.Object, name string) ([]int64, error) {
	tuple, err := g.Attr(o, name)
	if err != nil {
		return nil, err
	}
	items, err := g.TupleItems(tuple)
	if err != nil {
		return nil, err
	}
	numbers := make([]int64, len(items))
	for i, item := range items {
		if numbers[i], err = g.Int64(item); err != nil {
			return nil, err
		}
	}
	return numbers, nil
}
