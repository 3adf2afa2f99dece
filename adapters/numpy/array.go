package numpy

import (
	"fmt"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/program/dtypes"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
)

// array holds the facts about one array on which quirks depend.
type array struct {
	dtypes.NumPy
	scalar    bool // a numpy.generic, not an ndarray
	readOnly  bool
	masked    bool // a masked array of which something is masked
	oddStride bool // a stride is not a multiple of the item size
}

// look finds the facts, as class has them, ndarray or generic: what a subclass says of itself may be
// wrong. What only a quirk that is not in force would want is left out.
func look(g *py.GIL, env *program.Env, class, o py.Object) (*array, error) {
	a := new(array)
	ndarray, err := g.Attr(env.Module, "ndarray")
	if err != nil {
		return nil, err
	}
	a.scalar = class != ndarray
	dtype, err := attrOf(g, class, o, "dtype")
	if err != nil {
		return nil, err
	}
	if a.NumPy, err = dtypes.Look(g, dtype); err != nil {
		return nil, err
	}
	if a.scalar {
		return a, nil
	}
	if env.InForce(idReadOnly) {
		if a.readOnly, err = isReadOnly(g, class, o); err != nil {
			return nil, err
		}
	}
	if a.oddStride, err = hasOddStride(g, class, o, a.Size); err != nil {
		return nil, err
	}
	a.masked, err = isMasked(g, o)
	return a, err
}

func isReadOnly(g *py.GIL, class, o py.Object) (bool, error) {
	flags, err := attrOf(g, class, o, "flags")
	if err != nil {
		return false, err
	}
	writable, err := boolAttr(g, flags, "writeable")
	return !writable, err
}

func hasOddStride(g *py.GIL, class, o py.Object, itemsize int) (bool, error) {
	strides, err := attrOf(g, class, o, "strides")
	if err != nil || itemsize == 0 {
		return false, err
	}
	items, err := g.TupleItems(strides)
	if err != nil {
		return false, err
	}
	for _, item := range items {
		stride, err := g.Int64(item)
		if err != nil {
			return false, err
		}
		if stride%int64(itemsize) != 0 {
			return true, nil
		}
	}
	return false, nil
}

func isMasked(g *py.GIL, o py.Object) (bool, error) {
	module, ok := g.Loaded("numpy.ma")
	if !ok {
		return false, nil // then nothing can be a masked array
	}
	class, err := g.Attr(module, "MaskedArray")
	if err != nil {
		return false, err
	}
	if !g.IsInstance(o, class) {
		return false, nil
	}
	mask, err := attrOf(g, class, o, "mask")
	if err != nil {
		return false, err
	}
	dtype, err := g.Attr(mask, "dtype")
	if err != nil {
		return false, err
	}
	names, err := g.Attr(dtype, "names")
	if err != nil {
		return false, err
	}
	if g.IsNone(names) {
		found, err := g.CallMethod(mask, "any", nil, nil)
		if err != nil {
			return false, err
		}
		return g.Bool(found)
	}
	// The mask of records consists of records of bools, of which NumPy has no any().
	bytes, err := g.CallMethod(mask, "tobytes", nil, nil)
	if err != nil {
		return false, err
	}
	one, err := g.NewInt(1)
	if err != nil {
		return false, err
	}
	at, err := g.CallMethod(bytes, "find", []py.Object{one}, nil)
	if err != nil {
		return false, err
	}
	n, err := g.Int64(at)
	return n >= 0, err
}

// attrOf gives o.name as class has it.
func attrOf(g *py.GIL, class, o py.Object, name string) (py.Object, error) {
	v, ok, err := g.AttrOf(class, o, name)
	if err == nil && !ok {
		err = &core.Error{Kind: core.ErrUnsupported, Err: fmt.Errorf("%s has no %s", g.TypeName(o), name)}
	}
	return v, err
}

func boolAttr(g *py.GIL, o py.Object, name string) (bool, error) {
	v, err := g.Attr(o, name)
	if err != nil {
		return false, err
	}
	return g.Bool(v)
}
