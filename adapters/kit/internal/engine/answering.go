package engine

import (
	"context"
	"fmt"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/pyvalues"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/internal/calls"
	"github.com/ndbridge/ndbridge/internal/values"
)

// write writes an object, which is the answer's what, as its values, and then leases the arrays in it, of which there are not too many by
// then. The answer is not given before the work is done that the GPUs awaited were given.
func (p *Program) write(ctx context.Context, g *py.GIL, what string, o py.Object, a *calls.Answer, awaited []int) error {
	form := values.NewWriter(nil)
	var found []py.Object // each with a reference
	defer func() { g.DropAll(found) }()
	is := func(g *py.GIL, o py.Object) bool {
		f, ok := p.arrayOf(g, o)
		if f != nil {
			p.classes.add(g, o, f)
		}
		return ok
	}
	arrays := pyvalues.Arrays{Is: is, Known: p.isArrayClass, Number: func(g *py.GIL, o py.Object) (int, error) {
		if len(found) == calls.MaxArrays {
			return 0, &core.Error{
				Kind: core.ErrUnsupported, Err: fmt.Errorf("%s has at most %d arrays", what, calls.MaxArrays),
				Remedy: "hand over one array of them all",
			}
		}
		found = append(found, g.Keep(o))
		return len(found) - 1, nil
	}}
	err := pyvalues.Append(g, form, o, &arrays)
	a.Values = form.Form()
	for i := 0; i < len(found) && err == nil; i++ {
		l, failed := p.grantUnnamed(ctx, g, found[i], awaited)
		if failed != nil {
			err = values.Report("append", values.At(pyvalues.Place(g, o, arrays, i), failed))
			break
		}
		a.Leases = append(a.Leases, l)
	}
	return remedied(what+values.Place(err), values.Located(what, err))
}

// isArray reports whether an object is an array: of a framework, or of anybody who speaks its protocols.
func (p *Program) isArray(g *py.GIL, o py.Object) bool {
	_, ok := p.arrayOf(g, o)
	return ok
}

// arrayOf is isArray, and gives the framework; nil: the array is of none that is known.
func (p *Program) arrayOf(g *py.GIL, o py.Object) (f *framework, ok bool) {
	f, _, err := p.owner(g, o)
	return f, err == nil && (f != nil || speaks(g, o))
}

// speaks reports whether an object of no known framework speaks the protocols of arrays.
func speaks(g *py.GIL, o py.Object) bool {
	switch g.TypeName(o) {
	case "memoryview", "array.array", "mmap.mmap":
		return true
	}
	return looksLikeArray(g, o)
}
