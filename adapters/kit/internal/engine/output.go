package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/values"
)

// immutableFramework is whose arrays nobody can assign to.
const immutableFramework = "jax"

// copying is by which method an array is copied that is to be written into memory which it may have a part of. NumPy sees for itself
// that it would read what it has written; the others only see it within one array.
var copying = map[string]string{"torch": "clone", "cupy": "copy"}

// give answers with what a function has returned: in the last array of the request, if that is where it is wanted.
func (w *worker) give(ctx context.Context, g *py.GIL, o py.Object, r *calls.Request, a *calls.Answer) error {
	if r.Flags&calls.FlagOut == 0 {
		return w.write(ctx, g, "result", o, a, w.gpus(r))
	}
	form := values.NewWriter(nil)
	form.Null()
	a.Values = form.Form()
	if len(r.Arrays) == 0 {
		return &core.Error{Kind: core.ErrProtocol, Err: errors.New("no array for the result")}
	}
	return g.Nested(func() error { return w.output(g, o, r, len(r.Arrays)-1) }) // nothing of it uses the host's memory then
}

// output assigns an array to one of the request's, unless it is that.
func (w *worker) output(g *py.GIL, o py.Object, r *calls.Request, number int) error {
	into := &r.Arrays[number]
	if !w.isArray(g, o) {
		return &core.Error{
			Kind: core.ErrUnsupported, Err: fmt.Errorf("the function returned %s, and only an array can be written into one", g.TypeName(o)),
			Remedy: "return one array, or call the function without Out",
		}
	}
	f, plan, err := w.plan(g, o)
	if err != nil {
		return err
	}
	rd := w.reader(f, &plan)
	result, err := rd.read(g, o)
	if err != nil {
		return about("result", "", f.name, err)
	}
	is := result.array.Array
	result.drop(g)
	switch {
	case is.Layout.DType() != into.Layout.DType():
		return &core.Error{
			Kind: core.ErrDType, Err: fmt.Errorf("the result is %v, the array for it %v", is.Layout.DType(), into.Layout.DType()),
			Remedy: "convert the result in the function, or pass an array of its dtype",
		}
	case !slices.Equal(is.Layout.Shape(), into.Layout.Shape()):
		return &core.Error{
			Kind: core.ErrLayout, Err: fmt.Errorf("the result has the shape %v, the array for it %v", is.Layout.Shape(), into.Layout.Shape()),
			Remedy: "pass an array of the result's shape",
		}
	}
	s, err := w.segment(into.Segment)
	if err != nil {
		return err
	}
	if is.Addr == s.Addr()+uintptr(into.Layout.Offset()) && slices.Equal(is.Layout.Strides(), into.Layout.Strides()) {
		return nil
	}
	framework := usualFramework
	if slices.Contains(w.importers(), f.name) && f.name != immutableFramework {
		framework = f.name
	}
	if _, onGPU := s.Device(); onGPU && framework == usualFramework {
		return &core.Error{
			Kind: core.ErrUnsupported, Err: fmt.Errorf("%s does not write into memory of a GPU", f.shown),
			Remedy: "return an array of PyTorch or CuPy, or call the function without Out",
		}
	}
	if method := copying[framework]; method != "" && is.Inside(uint64(s.Addr()), uint64(s.Size())) {
		if o, err = g.CallMethod(o, method, nil, nil); err != nil {
			return err
		}
	}
	array, err := w.argument(g, r, number, framework)
	if err != nil {
		return err
	}
	return fill(g, array, o)
}

// fill is what Python does for array[...] = o.
func fill(g *py.GIL, array, o py.Object) error {
	builtins, err := g.Import("builtins")
	if err != nil {
		return err
	}
	all, err := g.Attr(builtins, "Ellipsis")
	if err != nil {
		return err
	}
	_, err = g.CallMethod(array, "__setitem__", []py.Object{all, o}, nil)
	return err
}
