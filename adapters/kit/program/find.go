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
	var o py.Object
	if t := (target{publication: p.published.Get(g, path.Root)}); t.publication != nil {
		t.close() // its mark says nothing about what the object leads to
		o = t.publication.Object
	} else {
		var err error
		if o, err = global(g, path.Root, p.published.Names); err != nil {
			return target{}, err
		}
	}
	where := path.Root
	for _, s := range path.Steps {
		var err error
		if o, err = p.lead(g, o, s, where); err != nil {
			return target{}, err
		}
		where += s.String()
	}
	return target{object: o}, nil
}
