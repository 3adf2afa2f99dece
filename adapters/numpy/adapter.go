package numpy

import (
	"strings"
	"sync/atomic"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// New makes the adapter.
func New() program.Adapter { return &adapter{Table: table()} }

type adapter struct {
	program.Table[array]
	imports atomic.Pointer[imports] // nil: nothing was imported
}

var (
	_ program.Recogniser = (*adapter)(nil)
	_ program.Importer   = (*adapter)(nil)
	_ program.Fronter    = (*adapter)(nil)
	_ program.Keeper     = (*adapter)(nil)
)

// Owns claims arrays of every kind, subclasses included, and NumPy's scalars.
func (*adapter) Owns(g *py.GIL, env *program.Env, o py.Object) (bool, error) {
	_, ok, err := classOf(g, env, o)
	return ok, err
}

// classOf gives the class of NumPy's own that o belongs to; ok is false if there is none.
func classOf(g *py.GIL, env *program.Env, o py.Object) (class py.Object, ok bool, err error) {
	for _, name := range []string{"ndarray", "generic"} {
		class, ok, err = g.AttrOK(env.Module, name)
		if !ok || err != nil {
			return 0, false, err // numpy is just being imported
		}
		if g.IsInstance(o, class) {
			return class, true, nil
		}
	}
	return 0, false, nil
}

// Marks implements [program.Recogniser]: all that an ndarray is to NumPy is in its struct, but for the dtype.
// That cannot change, unless it has fields, whose names can. The offsets are those of PyArrayObject_fields,
// which every extension module has compiled in, since the macros for them are a part of NumPy's ABI 1 and 2.
func (*adapter) Marks(g *py.GIL, env *program.Env, o py.Object) (py.Marks, bool, error) {
	if !strings.HasPrefix(env.Version, "1.") && !strings.HasPrefix(env.Version, "2.") {
		return py.Marks{}, false, nil
	}
	class, ok, err := g.AttrOK(env.Module, "ndarray")
	if !ok || err != nil || g.Type(o) != class {
		return py.Marks{}, false, err
	}
	dtype, err := g.Attr(o, "dtype")
	if err != nil {
		return py.Marks{}, false, err
	}
	fields, err := g.Attr(dtype, "names")
	return py.Marks{
		Class:  class,
		Struct: py.StructMarks{Data: 16, Rank: 24, Shape: 32, Strides: 40, Object: 56, Flags: 64, Owned: ownData},
	}, err == nil && g.IsNone(fields), err
}

// ownData is NPY_ARRAY_OWNDATA: NumPy gives the memory back with the array, or in resize, under the GIL.
const ownData = 0x4

// Plan implements [program.Adapter].
func (a *adapter) Plan(g *py.GIL, env *program.Env, o py.Object) (program.Plan, error) {
	plan := program.StandardPlan()
	class, ok, err := classOf(g, env, o)
	if !ok || err != nil {
		return plan, err
	}
	plan.Class = class
	facts, err := look(g, env, class, o)
	if err != nil {
		return plan, err
	}
	plan.Fixed = g.Type(o) == class && !facts.scalar
	a.Edit(&plan, env, facts)
	return plan, nil
}

// Keeper implements [program.Keeper].
func (*adapter) Keeper(g *py.GIL, env *program.Env, o py.Object) (keeper py.Object, ok bool, err error) {
	class, err := g.Attr(env.Module, "ndarray")
	if err != nil || !g.IsInstance(o, class) {
		return 0, false, err
	}
	flags, err := attrOf(g, class, o, "flags")
	if err != nil {
		return 0, false, err
	}
	if own, err := boolAttr(g, flags, "owndata"); own || err != nil {
		return o, own, err
	}
	return g.AttrOf(class, o, "base")
}
