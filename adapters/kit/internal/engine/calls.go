package engine

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core/names"
)

// maxCalls bounds how many calls are looked through for arrays and for what a name may have meant.
const maxCalls = 100

// call is a call of a function that is under way.
type call struct{ module, qualified string }

// calls gives the functions that run on the main thread, by the names that lead to these calls, the innermost first. The
// loop must not run code of the program's.
func (*Program) calls(g *py.GIL) iter.Seq2[names.Function, *py.Frame] {
	return func(yield func(names.Function, *py.Frame) bool) {
		var inner []call
		for f := range g.Frames() {
			if !f.Main || len(inner) == maxCalls {
				return
			}
			if isOutside(f) {
				continue
			}
			c := call{f.Module(), names.Qualified(cmp.Or(f.Qualified(), f.Name()))}
			if of, ok := c.spelling(f, inner); ok && !yield(of, f) {
				return
			}
			inner = append(inner, c)
		}
	}
}

// spelling gives a name that leads to a call, and not to one of those inside it.
func (c call) spelling(f *py.Frame, inner []call) (names.Function, bool) {
	candidates := []names.Function{{Name: c.qualified}}
	if f.Qualified() != "" {
		candidates = append(candidates, names.Function{Module: c.module, Name: c.qualified})
	}
	for _, of := range candidates {
		hidden := func(i call) bool { return of.Is(i.module, i.qualified) }
		if path, err := names.Parse(of.String() + ".x"); err == nil && path.Of == of && !slices.ContainsFunc(inner, hidden) {
			return of, true
		}
	}
	return names.Function{}, false
}

// isShown reports whether a local variable is listed: Python has such as ".0".
func isShown(name string) bool { return !strings.HasPrefix(name, "_") && !strings.HasPrefix(name, ".") }

// localNames gives local variables by their own names, each with the whole name that leads to it, and the functions that
// have them.
func (p *Program) localNames(g *py.GIL) (all map[string]string, functions []string) {
	all = make(map[string]string)
	_ = g.Nested(func() error {
		for of, f := range p.calls(g) {
			functions = append(functions, of.String())
			for _, name := range f.Locals() {
				if _, ok := all[name]; !ok && isShown(name) {
					all[name] = names.Path{Of: of, Root: name}.String()
				}
			}
		}
		return nil
	})
	return all, functions
}

// localValues gives the values of local variables, which the scope holds, with the names that lead there.
func (p *Program) localValues(g *py.GIL) (all []Named, err error) {
	for of, f := range p.calls(g) {
		for _, name := range f.Locals() {
			if !isShown(name) {
				continue
			}
			key, err := g.NewKey(name)
			if err != nil {
				return nil, err
			}
			if o, ok := f.Local(key); ok {
				all = append(all, Named{Name: names.Path{Of: of, Root: name}.String(), Object: o})
			}
		}
	}
	return all, nil
}
