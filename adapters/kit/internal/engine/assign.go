package engine

import (
	"context"
	"errors"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/pyvalues"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/names"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/values"
)

// set gives a name a value.
func (w *worker) set(ctx context.Context, r *calls.Request) error {
	reader := values.NewReader(r.Values)
	if t, err := reader.Next(); err != nil || t.Items() != 2 {
		return &core.Error{Kind: core.ErrProtocol, Err: errors.New("a name and a value are wanted")}
	}
	text, err := reader.Next()
	if err != nil {
		return err
	}
	path, err := names.Parse(string(text.Bytes))
	if err != nil {
		return about("set", string(text.Bytes), "", err)
	}
	err = w.do(ctx, func(g *py.GIL) error {
		o, err := pyvalues.Build(g, reader, func(g *py.GIL, i int) (py.Object, error) {
			return w.argument(g, r, i, r.Framework)
		})
		if err != nil {
			return err
		}
		if err := w.begin(); err != nil {
			return err
		}
		defer w.end(g)
		return w.assign(g, path, o)
	})
	return about("set", path.String(), "", err)
}

// assign is what Python does for path = o.
func (p *Program) assign(g *py.GIL, path names.Path, o py.Object) error {
	n := len(path.Steps)
	if n == 0 {
		if path.Of != (names.Function{}) {
			return errNoAssign
		}
		dict, err := globals(g)
		if err != nil {
			return err
		}
		key, err := g.NewStr(path.Root)
		if err != nil {
			return err
		}
		_, err = g.CallMethod(dict, "__setitem__", []py.Object{key, o}, nil)
		return err
	}
	t, err := p.find(g, names.Path{Of: path.Of, Root: path.Root, Steps: path.Steps[:n-1]})
	if err != nil {
		return notFound(err)
	}
	defer t.close()
	in, err := p.whole(g, &t)
	if err != nil {
		return notFound(err)
	}
	last := path.Steps[n-1]
	k, err := key(g, last)
	if err != nil {
		return err
	}
	module, assigns := "_operator", "setitem"
	if last.Kind == names.Attr {
		module, assigns = "builtins", "setattr" // in may be a class, whose own __setattr__ is that of its instances
	}
	m, err := g.Import(module)
	if err != nil {
		return err
	}
	_, err = g.CallMethod(m, assigns, []py.Object{in, k, o}, nil)
	return err
}
