package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/names"
)

// inModule calls do with what has a name in a module, which it imports, where functions run: that runs code of the program's. What a module
// does not have when it is imported is not waited for.
func (w *worker) inModule(ctx context.Context, module string, path names.Path, do func(g *py.GIL, o py.Object) error) error {
	return w.do(ctx, func(g *py.GIL) error {
		if isStarting(g) {
			return &missingError{What: "the program has not begun, and finds no modules of its own yet"}
		}
		o, err := w.importModule(g, module)
		if err != nil {
			return err
		}
		where := module
		for i, s := range slices.Insert(slices.Clone(path.Steps), 0, names.Step{Kind: names.Attr, Text: path.Root}) {
			if o, err = w.lead(g, o, s, where); err != nil {
				return neverFound(err)
			}
			where = module + ":" + path.Front(i).String()
		}
		return do(g, o)
	})
}

// isStarting reports whether the program has not begun yet: start.py has None in the place of the module ndbridge until then.
func isStarting(g *py.GIL) bool {
	sys, ok := g.Loaded("sys")
	if !ok {
		return false
	}
	modules, ok := g.Variable(sys, "modules")
	key, err := g.NewStr("ndbridge")
	if !ok || err != nil {
		return false
	}
	own, ok, err := lookUp(g, modules, key)
	return ok && err == nil && g.IsNone(own)
}

// neverFound is [notFound] for what is not waited for.
func neverFound(err error) error {
	missing, ok := errors.AsType[*missingError](err)
	if !ok {
		return err
	}
	return &core.Error{Kind: core.ErrNotFound, Err: errors.New(missing.What), Remedy: missing.Remedy}
}

// importModule does what the statement import does, as a function of the program's.
func (w *worker) importModule(g *py.GIL, module string) (py.Object, error) {
	builtins, err := g.Import("builtins")
	if err != nil {
		return 0, err
	}
	f, err := g.Attr(builtins, "__import__")
	if err != nil {
		return 0, err
	}
	name, err := g.NewStr(module)
	if err != nil {
		return 0, err
	}
	every, err := g.NewStr("__doc__")
	if err != nil {
		return 0, err
	}
	from, err := g.NewTuple(every) // with it, "a.b" gives a.b, and not a
	if err != nil {
		return 0, err
	}
	args, err := g.NewTuple(name, g.None(), g.None(), from)
	if err != nil {
		return 0, err
	}
	return w.run(g, f, args, 0)
}
