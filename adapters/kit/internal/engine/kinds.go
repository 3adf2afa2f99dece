package engine

import (
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core/names"
)

// kind is what an object can be to a search.
type kind uint8

const (
	leaf kind = iota + 1
	array
	container
	layer   // a container whose numbers are settings
	routine // a function: a container, or a leaf
	numeral // a number of Python's own: a leaf, unless numbers are wanted
)

// kindOf tells by an object's type. What it remembers holds as long as the turn, in which no type ends.
func (s *search) kindOf(g *py.GIL, o py.Object) kind {
	class := g.Type(o)
	known, ok := s.kinds[class]
	if !ok {
		known = s.program.kindOf(g, o)
		if s.numbers.wanted {
			known = s.program.kindWithNumbers(g, o, known)
		}
		s.kinds[class] = known
	}
	if known == routine {
		return s.program.kindOfFunction(g, o)
	}
	return known
}

func (p *Program) kindOf(g *py.GIL, o py.Object) kind {
	switch {
	case g.IsInt(o), g.IsStr(o), g.IsNone(o), g.IsClass(o):
		return leaf
	case g.Builtin(o) != "", g.ExactType(o) == "module":
		return container
	}
	if f, _, err := p.owner(g, o); f != nil && err == nil {
		return array
	}
	generic, err := g.GenericAttributes(o)
	switch {
	case err != nil:
		return leaf
	case g.TypeName(o) == "function":
		return routine
	case generic && g.ClassHas(o, "__dict__"), len(g.Fields(o)) > 0:
		return container
	default:
		return leaf
	}
}

// kindOfFunction tells functions of the program's own, which lead to the variables of outer functions that they use, and to their defaults, from
// those of installed packages, which are full of what nobody looks for.
func (p *Program) kindOfFunction(g *py.GIL, o py.Object) kind {
	of, ok := g.FunctionGlobals(o)
	if !ok {
		return leaf
	}
	if main, err := globals(g); err == nil && main == of || isOwnModule(g, of) {
		return container
	}
	return leaf
}

// kindWithNumbers is kindOf for a search that wants numbers.
func (p *Program) kindWithNumbers(g *py.GIL, o py.Object, known kind) kind {
	switch {
	case g.IsNumber(o):
		return numeral
	case known == container && p.isLayer(g, o):
		return layer
	default:
		return known
	}
}

// isLayer reports whether a framework knows what an object has, which is of a class of an installed package.
func (p *Program) isLayer(g *py.GIL, o py.Object) bool {
	for c, err := range loadedAs[program.Container](p, g) {
		if err != nil {
			continue
		}
		known, err := c.as.Parts(g, c.env, o, func(names.Step, py.Object) bool { return false })
		if known && err == nil {
			return !isOwnClass(g, o)
		}
	}
	return false
}

// isOwnClass reports whether an object's class is of the program's own, and of no package.
func isOwnClass(g *py.GIL, o py.Object) bool {
	name := g.TypeName(o)
	for i := strings.LastIndexByte(name, '.'); i > 0; i = strings.LastIndexByte(name[:i], '.') {
		if module, ok := g.Loaded(name[:i]); ok {
			dict, ok := g.ModuleDict(module)
			return name[:i] == "__main__" || ok && isOwnModule(g, dict)
		}
	}
	return true
}
