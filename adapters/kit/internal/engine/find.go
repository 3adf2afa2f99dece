package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/published"
	"github.com/ndbridge/ndbridge/adapters/kit/internal/routes"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
	"github.com/ndbridge/ndbridge/core/names"
)

// target is what a name leads to.
type target struct {
	object      py.Object
	publication *published.Publication // if that is what the name leads to; nil: it leads to a variable, or further

	path names.Path   // that leads to the object
	row  []names.Step // of the object, which path means: of an array that stands behind what Python has
	cut  []names.Step // the rest of the name: the part of the object, an array, that is meant
}

// close gives up what find got besides the object.
func (t *target) close() {
	if t.publication != nil && t.publication.Mark != nil {
		t.publication.Mark.Close()
	}
}

// find follows a path to its object, which the scope holds. The caller closes it. What is not there is a
// *missingError.
func (p *Program) find(g *py.GIL, path names.Path) (target, error) { return p.findBefore(g, path, nil) }

// findBefore is find, which asks about each object whether the way ends there already; behind may be nil.
func (p *Program) findBefore(g *py.GIL, path names.Path, behind func(o py.Object, at int) (target, bool, error)) (target, error) {
	if t, ok := p.publishedPart(g, path); ok {
		return t, nil
	}
	o, err := p.root(g, path)
	if err != nil {
		return target{}, err
	}
	plain := path.Plain()
	for i := 0; ; {
		if behind != nil {
			if t, ok, err := behind(o, i); ok || err != nil {
				return t, err
			}
		}
		if i == len(path.Steps) {
			return target{object: o, path: path}, nil
		}
		s := path.Steps[i]
		if i >= plain && p.hasParts(g, o) {
			return target{object: o, path: path.Front(i), cut: path.Steps[i:]}, nil
		}
		v, used, err := p.inFrame(g, o, path.Steps[i:], path.Front(i).String())
		if used == 0 && err == nil {
			v, err = p.lead(g, o, s, path.Front(i).String())
			used = 1
		}
		if err != nil {
			return target{}, err
		}
		o = v
		i += used
	}
}

// publishedPart gives what a path leads to if that, or the array of which the path means a part, was published.
func (p *Program) publishedPart(g *py.GIL, path names.Path) (target, bool) {
	for n := len(path.Steps); n >= path.Plain(); n-- {
		t := target{path: path.Front(n), cut: path.Steps[n:]}
		t.publication = p.published.Get(g, t.path.String())
		if t.publication == nil {
			continue
		}
		t.object = t.publication.Object
		if len(t.cut) == 0 || t.publication.Scalar == nil && p.hasParts(g, t.object) {
			return t, true
		}
		t.close()
	}
	return target{}, false
}

// hasParts reports whether an index in brackets means a part of an object's memory, whatever Python makes of it.
func (p *Program) hasParts(g *py.GIL, o py.Object) bool {
	if g.ExactType(o) != "" {
		return false
	}
	f, _, err := p.owner(g, o)
	return f != nil && err == nil || speaks(g, o) || slices.ContainsFunc(g.MRO(o), func(class string) bool {
		return class == "bytes" || class == "bytearray" || class == "_ctypes.Array"
	})
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

// whole gives the object that Python has for a target: of a part of an array, what Python makes of the brackets.
func (p *Program) whole(g *py.GIL, t *target) (o py.Object, err error) {
	o = t.object
	for i, s := range t.cut {
		if o, err = p.lead(g, o, s, t.upTo(i)); err != nil {
			return 0, err
		}
	}
	return o, nil
}

// upTo gives the name up to some steps of the cut.
func (t *target) upTo(n int) string {
	path := t.path
	path.Steps = slices.Concat(path.Steps, t.cut[:n])
	return path.String()
}

// part makes a reading that of the part which is meant: the same memory with another layout.
func (t *target) part(r *reading) error {
	r.full = r.array.Array
	if len(t.row)+len(t.cut) == 0 {
		return nil
	}
	l := r.array.Layout
	for i, s := range slices.Concat(t.row, t.cut) {
		next, err := names.Cut(l, s.Index())
		if e, ok := errors.AsType[*core.Error](err); ok {
			e.Err = fmt.Errorf("%s: %w", t.upTo(max(i+1-len(t.row), 0)), e.Err)
			if errors.Is(e.Kind, core.ErrNotFound) { // it may come
				return &missingError{What: e.Err.Error()}
			}
		}
		if err != nil {
			return err
		}
		l = next
	}
	r.array.Array = routes.Array{Addr: r.full.Addr + uintptr(l.Offset()-r.full.Layout.Offset()), Layout: l}
	r.array.OnGPU = r.array.OnGPU && l.Len() > 0 // no elements are nowhere
	return nil
}
