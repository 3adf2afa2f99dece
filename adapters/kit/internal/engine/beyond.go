package engine

import (
	"context"
	"slices"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core/names"
)

// beyond goes on at the arrays to which an array leads, as a tensor does to its gradient, if the pattern names the step. A ** does not mean them:
// who only lists what there is does not read what the program may be replacing without Python's lock.
func (s *search) beyond(g *py.GIL, f *framework, o py.Object, at place) error {
	at.rest = beyondDeep(at.rest)
	c, ok := f.adapter.(program.Container)
	if !ok || len(at.rest) == 0 || at.rest[0].Kind != names.Attr {
		return nil
	}
	env, ok, err := s.program.env(g, f)
	if !ok || err != nil {
		return err
	}
	n := 0
	_, err = c.Parts(g, env, o, func(step names.Step, _ py.Object) bool {
		if n++; at.rest[0].Matches(step) {
			s.push(place{path: at.path.With(step), rest: at.rest[1:], order: at.order.with(n)})
		}
		return true
	})
	return err
}

// hasArrayKeys reports whether an object is a dict by arrays, as the state of PyTorch's optimizers is: by its first key.
func (s *search) hasArrayKeys(g *py.GIL, o py.Object) bool {
	if g.Builtin(o) != "dict" {
		return false
	}
	key, _, _, ok := g.DictNext(o, 0)
	return ok && s.kindOf(g, key) == array
}

// byObjects goes on at the items of a dict whose keys are arrays that have names.
func (s *search) byObjects(g *py.GIL, o py.Object, from place) error {
	for g.Builtin(o) == "dict" {
		key, part, next, ok := g.DictNext(o, from.at)
		if !ok {
			return nil
		}
		if from.at = next; s.kindOf(g, key) == array {
			if name, ok := s.nameOf(g, key); ok {
				step := names.Step{Kind: names.ByName, By: &name}
				if rest, ok := from.where(step); ok {
					if err := s.part(g, part, s.kindOf(g, part), place{path: from.path.With(step), rest: rest, order: from.order.with(next)}); err != nil {
						return err
					}
				}
			}
		}
		if s.late() {
			s.queue = slices.Insert(s.queue, 0, from)
			return nil
		}
	}
	return nil
}

// name finds the names of arrays, if the search itself does not look everywhere.
func (s *search) name(ctx context.Context, pattern names.Path) (err error) {
	if s.names != nil {
		return nil
	}
	if s.names = s; pattern.Root != names.Every {
		s.names = s.program.newSearch(maxSearchFound)
		err = s.names.run(ctx, names.Path{Root: names.Every})
	}
	return err
}

// nameOf gives the name by which an array was found.
func (s *search) nameOf(g *py.GIL, o py.Object) (names.Path, bool) {
	known := s.names.objects[o]
	if known == nil {
		return names.Path{}, false
	}
	return known.path, s.isStill(g, known.path, o)
}
