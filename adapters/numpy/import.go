package numpy

import (
	"fmt"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/program/dtypes"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
)

// imports is what Import needs of NumPy, kept for as long as the interpreter runs. The GIL guards it.
type imports struct {
	module           py.Object // of which the rest is
	ndarray, asarray py.Object
	dtypes           map[core.DType]py.Object // of elements without a tag
}

// Import implements [program.Importer]. The constructor of ndarray takes any dtype that NumPy has, and is the fastest
// way to an array, but reads dense memory only.
func (a *adapter) Import(g *py.GIL, env *program.Env, exporter py.Object, l core.Layout, _ bool) (py.Object, error) {
	n, err := a.importing(g, env)
	if err != nil {
		return 0, err
	}
	dtype, err := n.dtype(g, l)
	if err != nil {
		return 0, err
	}
	if !l.Contiguous() {
		array, err := g.Call(n.asarray, []py.Object{exporter}, nil)
		if err != nil {
			return 0, err
		}
		return g.CallMethod(array, "view", []py.Object{dtype}, nil) // its own is as good as bytes, for most types
	}
	shape, err := g.NewInts(l.Shape())
	if err != nil {
		return 0, err
	}
	return g.Call(n.ndarray, []py.Object{shape, dtype, exporter}, nil)
}

func (a *adapter) importing(g *py.GIL, env *program.Env) (*imports, error) {
	if n := a.imports.Load(); n != nil && n.module == env.Module {
		return n, nil
	}
	n := &imports{module: env.Module, dtypes: make(map[core.DType]py.Object)}
	for name, to := range map[string]*py.Object{"ndarray": &n.ndarray, "asarray": &n.asarray} {
		o, err := g.Attr(env.Module, name)
		if err != nil {
			return nil, err
		}
		*to = g.Keep(o)
	}
	g.Keep(n.module)
	a.imports.Store(n)
	return n, nil
}

// dtype gives NumPy's dtype for the elements of a layout.
func (n *imports) dtype(g *py.GIL, l core.Layout) (py.Object, error) {
	if l.Tag() != "" {
		return n.find(g, l)
	}
	if o, ok := n.dtypes[l.DType()]; ok {
		return o, nil
	}
	o, err := n.find(g, l)
	if err != nil {
		return 0, err
	}
	n.dtypes[l.DType()] = g.Keep(o)
	return o, nil
}

// find asks NumPy by the name, which for an opaque type somebody else's program may have given, or the package
// ml_dtypes, which has the small floats.
func (n *imports) find(g *py.GIL, l core.Layout) (py.Object, error) {
	name := l.String()[:len(l.String())-len(fmt.Sprint(l.Shape()))]
	unknown := &core.Error{Kind: core.ErrDType, Err: fmt.Errorf("NumPy has no elements of %s", name)}
	if fields, ok := strings.CutPrefix(name, "(numpy.record, "); ok { // of a recarray, by whose class alone its dtype differs
		name = strings.TrimSuffix(fields, ")")
	}
	argument, err := g.NewStr(name)
	if err != nil {
		return 0, unknown
	}
	if ast, ok := g.Loaded("ast"); ok && (strings.HasPrefix(name, "[") || strings.HasPrefix(name, "{")) { // of a structure, in Python
		if argument, err = g.CallMethod(ast, "literal_eval", []py.Object{argument}, nil); err != nil {
			return 0, unknown
		}
	}
	if module, ok := g.Loaded("ml_dtypes"); ok && l.Tag() == "" {
		if class, ok := g.Variable(module, name); ok {
			argument = class
		}
	}
	o, err := g.CallMethod(n.module, "dtype", []py.Object{argument}, nil)
	if err != nil {
		if l.Tag() == "" {
			unknown.Remedy = "for bfloat16 and smaller floats, import ml_dtypes in the program"
		}
		return 0, unknown
	}
	facts, err := dtypes.Look(g, o)
	if err != nil {
		return 0, err
	}
	if facts.Pointers || facts.Size != l.DType().Size() {
		return 0, unknown
	}
	return o, nil
}
