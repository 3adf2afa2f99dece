package engine

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core/names"
)

// ownAttributes is the position of the first attribute in an object's __dict__, among its parts: those that its framework knows come before,
// and its fields.
const ownAttributes = math.MaxInt32

// maxTuple bounds a key that is a tuple.
const maxTuple = 32

// parts goes through what an object leads to without code of the program's, from a position on. yield gets the position of the
// next part; it returns false to end.
func (p *Program) parts(g *py.GIL, o py.Object, from int, yield func(s names.Step, part py.Object, next int) bool) error {
	switch kind := g.Builtin(o); kind {
	case "dict":
		for at := from; ; {
			key, part, next, ok := g.DictNext(o, at)
			if !ok {
				return nil
			}
			if s, ok := itemStep(g, key); ok && !yield(s, part, next) {
				return nil
			}
			at = next
		}
	case "list", "tuple", "deque":
		fields, goesOn := 0, true
		if kind != "deque" && g.ExactType(o) == "" {
			fields, goesOn = yieldFields(g, o, 0, from, yield)
		}
		for i := max(from-fields, 0); goesOn; i++ {
			part, ok := g.Sequence(o, i)
			goesOn = ok && yield(names.Step{Kind: names.Item, Item: int64(i)}, part, fields+i+1)
		}
		return nil
	}
	if g.ExactType(o) == "module" {
		if dict, ok := g.ModuleDict(o); ok && isOwnModule(g, dict) {
			attributes(g, dict, from, func(s names.Step, _, part py.Object, next int) bool { return yield(s, part, next) })
		}
		return nil
	}
	return p.attributes(g, o, from, yield)
}

// attributes is parts for an object with attributes.
func (p *Program) attributes(g *py.GIL, o py.Object, from int, yield func(s names.Step, part py.Object, next int) bool) error {
	known, goesOn, n := false, true, 0
	for c, err := range loadedAs[program.Container](p, g) {
		if err != nil {
			return err
		}
		known, err = c.as.Parts(g, c.env, o, func(s names.Step, part py.Object) bool {
			if n++; n > from {
				goesOn = yield(s, part, n)
			}
			return goesOn
		})
		if err != nil {
			return err
		}
		if known {
			break
		}
	}
	if goesOn && g.Waits(o) >= 0 {
		n, goesOn = p.yieldLocals(g, o, from, yield)
	}
	if goesOn {
		_, goesOn = yieldFields(g, o, n, from, yield)
	}
	own, ok := g.OwnDict(o)
	if !ok || !goesOn {
		return nil
	}
	class := g.Type(o)
	attributes(g, own, max(from-ownAttributes, 0), func(s names.Step, key, part py.Object, next int) bool {
		if known && strings.HasPrefix(s.Text, "_") { // where a framework keeps the parts that it has told
			return true
		}
		if g.ClassDefines(o, key) {
			if _, ok := g.Follow(o, py.Step{Kind: py.StepAttribute, Class: class, Key: key}); !ok {
				return true
			}
		}
		return yield(s, part, next+ownAttributes)
	})
	return nil
}

// yieldFields goes through the fields of an object that have a value, of which the first has position n; it gives the position behind
// the last one.
func yieldFields(g *py.GIL, o py.Object, n, from int, yield func(s names.Step, part py.Object, next int) bool) (next int, goesOn bool) {
	class := g.Type(o)
	for _, key := range g.Fields(o) {
		if n++; n <= from {
			continue
		}
		text, err := g.Text(key)
		if err != nil || !names.IsIdentifier(text) {
			continue
		}
		part, ok := g.Follow(o, py.Step{Kind: py.StepAttribute, Class: class, Key: key})
		if ok && !yield(names.Step{Kind: names.Attr, Text: text}, part, n) {
			return n, false
		}
	}
	return n, true
}

// attributes goes through a dict of attributes.
func attributes(g *py.GIL, dict py.Object, at int, yield func(s names.Step, key, part py.Object, next int) bool) {
	for {
		key, part, next, ok := g.DictNext(dict, at)
		if !ok {
			return
		}
		at = next
		if !g.IsStr(key) || !g.UsualKey(key) {
			continue
		}
		text, err := g.Text(key)
		if err == nil && names.IsIdentifier(text) && !yield(names.Step{Kind: names.Attr, Text: text}, key, part, next) {
			return
		}
	}
}

// itemStep gives the step to a dict's item.
func itemStep(g *py.GIL, key py.Object) (s names.Step, ok bool) {
	switch {
	case !g.UsualKey(key):
		return s, false
	case g.IsStr(key):
		text, ok := g.NameText(key)
		return names.Step{Kind: names.Key, Text: text}, ok
	case g.IsInt(key):
		n, err := g.Int64(key)
		return names.Step{Kind: names.Item, Item: n}, err == nil
	case g.ExactType(key) == "tuple":
		return tupleStep(g, key)
	default:
		return s, false
	}
}

// tupleStep gives the step to an item whose key is a tuple of str and int.
func tupleStep(g *py.GIL, key py.Object) (s names.Step, ok bool) {
	s.Kind = names.Slice
	for i := 0; ; i++ {
		o, there := g.Sequence(key, i)
		if !there {
			return s, i > 0
		}
		part, ok := itemStep(g, o)
		switch {
		case !ok || i == maxTuple:
			return s, false
		case part.Kind == names.Key:
			s.Of = append(s.Of, names.Subscript{Kind: names.Word, Text: part.Text})
		case part.Kind == names.Item:
			s.Of = append(s.Of, names.Subscript{Kind: names.At, At: part.Item})
		default:
			return s, false
		}
	}
}

// installed are parts of the paths of modules that are no program's own.
var installed = []string{"/site-packages/", "/dist-packages/", "/lib/python"}

// isOwnModule reports whether a module, of which these are the global variables, is the program's own, and no package's.
func isOwnModule(g *py.GIL, dict py.Object) bool {
	key, err := g.Interned("__file__")
	if err != nil {
		return false
	}
	file, ok := g.Follow(dict, py.Step{Kind: py.StepKey, Class: g.Type(dict), Key: key})
	if !ok || !g.IsStr(file) {
		return false
	}
	text, err := g.Text(file)
	return err == nil && !slices.ContainsFunc(installed, func(part string) bool { return strings.Contains(text, part) })
}

// rootRest gives what is left of a pattern for a variable of a name, if the pattern begins with such a one.
func rootRest(pattern names.Path, name string) ([]names.Step, bool) {
	if pattern.Root == names.Every {
		return slices.Concat([]names.Step{{Kind: names.Deep}}, pattern.Steps), !strings.HasPrefix(name, "__")
	}
	return pattern.Steps, names.MatchName(pattern.Root, name)
}

// roots gives the search its first objects, and notes whether the program imports a module.
func (s *search) roots(ctx context.Context, g *py.GIL, pattern names.Path) error {
	p := s.program
	s.importing = importing(g)
	if pattern.Of != (names.Function{}) {
		all, err := p.localsOf(g, pattern.Of)
		for i, name := range all {
			if left, ok := rootRest(pattern, name); ok && !strings.HasPrefix(name, ".") {
				s.push(place{path: names.Path{Of: pattern.Of, Root: name}, rest: left, order: order{localsLast, 0, i}})
			}
		}
		return err
	}
	if err := s.publishedRoots(g, pattern); err != nil {
		return err
	}
	dict, err := globals(g)
	if err != nil {
		return err
	}
	attributes(g, dict, 0, func(step names.Step, _, part py.Object, next int) bool {
		if left, ok := rootRest(pattern, step.Text); ok && s.kindOf(g, part) != leaf && p.published.Last(step.Text) == nil {
			s.push(place{path: names.Path{Root: step.Text}, rest: left, order: order{globalsNext, next}})
		}
		return ctx.Err() == nil
	})
	if pattern.Root != names.Every {
		return ctx.Err()
	}
	return g.Nested(func() error {
		call := 0
		for of, f := range p.calls(g) {
			for i, name := range f.Locals() {
				if left, ok := rootRest(pattern, name); ok && isShown(name) {
					s.push(place{path: names.Path{Of: of, Root: name}, rest: left, order: order{localsLast, call, i}})
				}
			}
			call--
		}
		return ctx.Err()
	})
}

// publishedRoots gives the search what was published, and tells of arrays among that.
func (s *search) publishedRoots(g *py.GIL, pattern names.Path) error {
	p := s.program
	for i, name := range p.published.Names() {
		path, err := names.Parse(name)
		if err != nil {
			continue
		}
		left, ok := rootRest(pattern, path.Root)
		if !ok || len(path.Steps) > 0 && pattern.Root != names.Every {
			continue
		}
		if index, ok := ofArray(left); !ok || len(index) > 0 {
			s.push(place{path: path, rest: left, order: order{publishedFirst, i}})
			continue
		}
		err = g.Nested(func() error {
			t := target{publication: p.published.Get(g, name)}
			if t.publication == nil {
				return nil
			}
			t.close() // nothing is going to be touched
			if e, ok := p.entry(g, name, t.publication, t.publication.Object); ok {
				s.tell(g, &discovery{e, sight{s.turns, path, order{publishedFirst, i}}, nil}, whereIs(t.publication.Array, t.publication.Object))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// localsOf gives the names of the variables of a function that runs; none if it does not run.
func (p *Program) localsOf(g *py.GIL, of names.Function) (all []string, err error) {
	if err := p.interp.NoFrames(); err != nil {
		return nil, err
	}
	err = g.Nested(func() error {
		frames, err := p.framesOf(g, of)
		if err != nil {
			return notFound(err)
		}
		for f := range frames {
			if !isOutside(f) && isCalled(g, f, of) {
				all = f.Locals()
				return nil
			}
		}
		return nil
	})
	return all, err
}
