package engine

import (
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

// kept reports whether an object keeps the memory of an array, and gives it back when it goes: the array itself, or what it was made of. So does
// who lends a buffer, as Python demands, and a capsule that an extension module has made an array's base.
func (p *Program) kept(g *py.GIL, o py.Object) bool {
	const far = 16
	for range far {
		by, ok, err := p.keeper(g, o)
		if !ok || err != nil {
			return false
		}
		if by == o {
			return true
		}
		o = by
	}
	return false
}

// keeper is [program.Keeper] for every object.
func (p *Program) keeper(g *py.GIL, o py.Object) (keeper py.Object, ok bool, err error) {
	switch f, env, err := p.owner(g, o); {
	case err != nil:
		return 0, false, err
	case f != nil:
		k, ok := f.adapter.(program.Keeper)
		if !ok {
			return 0, false, nil
		}
		return k.Keeper(g, env, o)
	case g.TypeName(o) == "memoryview":
		return g.AttrOK(o, "obj")
	}
	return o, g.IsCapsule(o) || lends(g, o) && !slices.ContainsFunc(g.MRO(o), isPointer), nil
}

// lends reports whether an object lends a buffer.
func lends(g *py.GIL, o py.Object) bool {
	b, err := g.Buffer(o, 0)
	if err != nil {
		return false
	}
	b.Release()
	return true
}

// pointerModules have types whose objects may lead to memory that they do not keep.
var pointerModules = []string{"ctypes", "_ctypes", "_cffi_backend"}

// isPointer reports whether a class is of pointerModules.
func isPointer(class string) bool {
	module, _, _ := strings.Cut(class, ".")
	return slices.Contains(pointerModules, module)
}
