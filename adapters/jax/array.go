package jax

import (
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// kind is what an object is to JAX.
type kind uint8

const (
	foreign kind = iota // not JAX's
	concrete
	key    // an array of typed random keys
	tracer // stands for an array while a function is being traced
	spec   // shape and type, without an array
	ref    // a mutable reference to an array
)

// kinds lists JAX's classes by the package that they come from and by their last name: all else in
// their full names has changed from version to version. jax.Array is not among them, because before
// 0.9 it is no base of the class that all arrays have.
var kinds = []struct {
	top, class string
	kind       kind
}{
	{"jaxlib", "ArrayImpl", concrete},
	{"jax", "PRNGKeyArray", key},
	{"jax", "Tracer", tracer},
	{"jax", "ShapeDtypeStruct", spec},
	{"jax", "Ref", ref},
	{"jax", "MutableArray", ref}, // its name before 0.7
}

func kindOf(g *py.GIL, o py.Object) kind {
	for _, name := range g.MRO(o) {
		top, rest, _ := strings.Cut(name, ".")
		for _, k := range kinds {
			if top == k.top && rest[strings.LastIndexByte(rest, '.')+1:] == k.class {
				return k.kind
			}
		}
	}
	return foreign
}

// array holds the facts about one object on which quirks depend.
type array struct {
	kind       kind
	class      string // the last name of the object's type
	deleted    bool   // its memory was given back, or away
	devices    int    // over which it is spread
	replicated bool   // each device has the whole array
	dtype      string // "bool", or what other packages than NumPy define: "bfloat16", "int4"
}

// Numbers of NumPy's dtypes: NPY_BOOL, and NPY_USERDEF, from which on they come from other packages.
const (
	boolType  = 0
	userTypes = 256
)

func look(g *py.GIL, k kind, o py.Object) (*array, error) {
	class := g.TypeName(o)
	a := &array{kind: k, class: class[strings.LastIndexByte(class, '.')+1:]}
	if k != concrete {
		return a, nil
	}
	deleted, err := g.CallMethod(o, "is_deleted", nil, nil)
	if err != nil {
		return nil, err
	}
	if a.deleted, err = g.Bool(deleted); err != nil || a.deleted {
		return a, err
	}
	if err := a.lookAtDevices(g, o); err != nil {
		return nil, err
	}
	return a, a.lookAtType(g, o)
}

func (a *array) lookAtDevices(g *py.GIL, o py.Object) error {
	sharding, err := g.Attr(o, "sharding")
	if err != nil {
		return err
	}
	devices, err := g.Attr(sharding, "device_set")
	if err != nil {
		return err
	}
	if a.devices, err = g.Len(devices); err != nil || a.devices == 1 {
		return err
	}
	replicated, err := g.Attr(sharding, "is_fully_replicated")
	if err != nil {
		return err
	}
	a.replicated, err = g.Bool(replicated)
	return err
}

func (a *array) lookAtType(g *py.GIL, o py.Object) error {
	dtype, err := g.Attr(o, "dtype")
	if err != nil {
		return err
	}
	number, err := g.Attr(dtype, "num")
	if err != nil {
		return err
	}
	n, err := g.Int64(number)
	if err != nil || n > boolType && n < userTypes {
		return err
	}
	a.dtype, err = g.Str(dtype)
	return err
}
