package jax

import (
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
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
	class      string      // the last name of the object's type
	deleted    bool        // its memory was given back, or away
	devices    int         // over which it is spread
	replicated bool        // each device has the whole array
	gpu        core.Device // that it is on; the zero value: it is on none
	module     py.Object   // jax
	dtype      string      // "bool", or what other packages than NumPy define: "bfloat16", "int4"
}

// Numbers of NumPy's dtypes: NPY_BOOL, and NPY_USERDEF, from which on they come from other packages.
const (
	boolType  = 0
	userTypes = 256
)

func look(g *py.GIL, k kind, module, o py.Object) (*array, error) {
	class := g.TypeName(o)
	a := &array{kind: k, module: module, class: class[strings.LastIndexByte(class, '.')+1:]}
	if k != concrete {
		return a, nil
	}
	var err error
	if a.deleted, err = isDeleted(g, o); err != nil || a.deleted {
		return a, err
	}
	if err := a.lookAtDevices(g, o); err != nil {
		return nil, err
	}
	if a.devices == 1 {
		a.gpu, _ = program.DLPackDevice(g, o) // the zero value if JAX does not say where it is
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

// copy has JAX copy an array on its device. jnp.copy would run a program for that, which logs an error if the array is
// donated meanwhile.
func (a *array) copy(g *py.GIL, o py.Object) (py.Object, error) {
	made, err := g.CallMethod(a.module, "device_put", []py.Object{o}, []py.KW{{Name: "may_alias", Value: g.False()}})
	if py.Raised(err, "TypeError") { // an older version
		made, err = g.CallMethod(o, "copy", nil, nil)
	}
	return made, err
}

// describe says what an array is without its memory.
func (a *array) describe(g *py.GIL, o py.Object) (l core.Layout, err error) {
	spec := core.LayoutSpec{Device: a.gpu, ReadOnly: true}
	shape, err := g.Attr(o, "shape")
	if err != nil {
		return l, err
	}
	extents, err := g.TupleItems(shape)
	if err != nil {
		return l, err
	}
	spec.Shape = make([]int, len(extents))
	for i, extent := range extents {
		n, err := g.Int64(extent)
		if err != nil {
			return l, err
		}
		spec.Shape[i] = int(n)
	}
	dtype, err := g.Attr(o, "dtype")
	if err != nil {
		return l, err
	}
	name, err := g.Str(dtype)
	if err != nil {
		return l, err
	}
	if spec.DType, err = core.ParseDType(name); err != nil {
		return l, err
	}
	return core.NewLayout(spec)
}

func isDeleted(g *py.GIL, o py.Object) (bool, error) {
	deleted, err := g.CallMethod(o, "is_deleted", nil, nil)
	if err != nil {
		return false, err
	}
	return g.Bool(deleted)
}

// gone reports by an error that an array was given away.
func gone(g *py.GIL, o py.Object) error {
	if deleted, err := isDeleted(g, o); err != nil || !deleted {
		return err
	}
	return errGivenAway()
}

func errGivenAway() *core.Error {
	return &core.Error{
		Kind: core.ErrUnsupported, Err: program.ErrGivenAway,
		Remedy: "publish the array that took its place, or a copy from before; or do not donate it (donate_argnums)",
	}
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
