package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/core/names"
)

// findArray is find for those who want memory: it may be that of an array behind the object.
func (p *Program) findArray(g *py.GIL, path names.Path) (target, error) {
	return p.findBefore(g, path, func(o py.Object, at int) (t target, ok bool, err error) {
		b, ok, err := p.fronted(g, o, path.Steps[at:])
		if errors.Is(err, program.ErrGivenAway) { // it may come
			err = &missingError{What: fmt.Sprintf("%s: %v", path.Front(at), err)}
		}
		at += b.Used
		return target{object: b.Array, path: path.Front(min(at, len(path.Steps))), row: b.Part, cut: path.Steps[at:]}, ok, err
	})
}

// fronted asks the adapters for the array behind an object. Steps that it leaves are indices of the array.
func (p *Program) fronted(g *py.GIL, o py.Object, rest []names.Step) (b program.Behind, ok bool, err error) {
	for a, err := range loadedAs[program.Fronter](p, g) {
		ok := false
		if err == nil {
			b, ok, err = a.as.Behind(g, a.env, o, rest)
		}
		if (ok || err != nil) && (names.Path{Steps: rest[b.Used:]}).Plain() == 0 {
			return b, ok, err
		}
	}
	return program.Behind{}, false, nil
}

// beyondDeep leaves out each ** at the beginning of what is left of a pattern, as it may mean nothing.
func beyondDeep(rest []names.Step) []names.Step {
	for len(rest) > 0 && rest[0].Kind == names.Deep {
		rest = rest[1:]
	}
	return rest
}

// onlyNames gives what is left of a pattern if that is the rest of a name; what may be nothing is.
func onlyNames(rest []names.Step) ([]names.Step, bool) {
	rest = beyondDeep(rest)
	return rest, !names.Path{Steps: rest}.Globs()
}

// ofArray gives the index that what is left of a pattern is for an array; ok is false if it is none.
func ofArray(rest []names.Step) (index []names.Step, ok bool) {
	rest = beyondDeep(rest)
	return rest, names.Path{Steps: rest}.Plain() == 0
}

// addBehind tells of an array behind an object, or why that is none.
func (s *search) addBehind(g *py.GIL, o py.Object, b program.Behind, at place, err error) error {
	if err != nil {
		name, framework := at.path.String(), frameworkOf(g, o)
		e := contract.Entry{Name: name, Framework: framework, Err: about("list", name, framework, err)}
		s.tell(g, &discovery{e, sight{s.turns, at.path, at.order}, nil}, name)
		return nil
	}
	f, _, err := s.program.owner(g, b.Array)
	if f == nil || err != nil {
		return err
	}
	return s.add(g, b.Array, owner{f, f.name}, b.Part, at)
}

// columns goes through the columns of a table; ok is false if the object is none.
func (s *search) columns(g *py.GIL, o py.Object, from place, where func(names.Step) ([]names.Step, bool)) (ok bool, err error) {
	for a, err := range loadedAs[program.Fronter](s.program, g) {
		if err != nil || ok {
			return ok, err
		}
		n := 0
		var failed error
		ok, err = a.as.Columns(g, a.env, o, func(step names.Step, b program.Behind, why error) bool {
			if n++; n <= from.at {
				return true
			}
			if n%16 == 0 && s.late() { // the rest in another turn
				from.at = n - 1
				s.queue = slices.Insert(s.queue, 0, from)
				return false
			}
			rest, wanted := where(step)
			if !wanted && step.Kind == names.Attr {
				step.Kind = names.Key
				rest, wanted = where(step)
			}
			if index, array := ofArray(rest); wanted && array {
				failed = s.addBehind(g, o, b, place{path: from.path.With(step), rest: index, order: from.order.with(n)}, why)
			}
			return failed == nil
		})
		if err = cmp.Or(err, failed); err != nil {
			return ok, err
		}
	}
	return ok, nil
}

// columnNames gives the names of a table's columns.
func (p *Program) columnNames(g *py.GIL, o py.Object) (words []string) {
	for a, err := range loadedAs[program.Fronter](p, g) {
		if err == nil {
			_, _ = a.as.Columns(g, a.env, o, func(s names.Step, _ program.Behind, _ error) bool { // they only serve an error
				if s.Kind != names.Item {
					words = append(words, s.Text)
				}
				return len(words) < maxSuggested
			})
		}
	}
	return words
}
