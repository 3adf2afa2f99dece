package program

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program/published"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core/names"
)

// target is what a name leads to.
type target struct {
	object      py.Object
	publication *published.Publication // if that is what the name leads to; nil: it leads to a variable, or further
}

// close gives up what find got besides the object.
func (t *target) close() {
	if t.publication != nil && t.publication.Mark != nil {
		t.publication.Mark.Close()
	}
}

// find follows a path to its object, which the scope holds. The caller closes it. What is not there is a
// *missingError.
func (p *Program) find(g *py.GIL, path names.Path) (target, error) {
	if pub := p.published.Get(g, path.String()); pub != nil {
		return target{pub.Object, pub}, nil
	}
	o, err := p.root(g, path)
	if err != nil {
		return target{}, err
	}
	where := names.Path{Of: path.Of, Root: path.Root}.String()
	for _, s := range path.Steps {
		if o, err = p.lead(g, o, s, where); err != nil {
			return target{}, err
		}
		where += s.String()
	}
	return target{object: o}, nil
}

// root gives what the first part of a path leads to.
func (p *Program) root(g *py.GIL, path names.Path) (py.Object, error) {
	if path.Of != (names.Function{}) {
		return p.local(g, path.Of, path.Root)
	}
	if t := (target{publication: p.published.Get(g, path.Root)}); t.publication != nil {
		t.close() // its mark says nothing about what the object leads to
		return t.publication.Object, nil
	}
	return p.global(g, path.Root)
}
