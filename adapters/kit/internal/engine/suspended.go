package engine

import (
	"fmt"
	"slices"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core/names"
	"github.com/ndbridge/ndbridge/internal/prose"
)

// suspended says of the objects of functions that wait, by what [py.GIL.Waits] gives: which attributes have the frame, and what the
// function waits for.
var suspended = [...]struct{ frame, awaits string }{
	{"gi_frame", "gi_yieldfrom"}, {"cr_frame", "cr_await"}, {"ag_frame", "ag_await"},
}

// frameLocals is the attribute of a frame that has its variables. Python before 3.13 makes a dict of them, which stays with the frame, and
// keeps what the function has dropped since.
const frameLocals = "f_locals"

// wayToLocals gives the steps of a name that come before a key that is a local variable of a function that waits; none: o is no object of one,
// or this Python's frames cannot be read.
func (p *Program) wayToLocals(g *py.GIL, o py.Object) []names.Step {
	kind := g.Waits(o)
	if kind < 0 || p.interp.NoFrames() != nil {
		return nil
	}
	return []names.Step{{Kind: names.Attr, Text: suspended[kind].frame}, {Kind: names.Attr, Text: frameLocals}}
}

// leadsToLocal reports whether what is left of a name begins with such a way and a key.
func leadsToLocal(rest, way []names.Step) bool {
	return goesBy(rest, way) && rest[len(way)].Kind == names.Key
}

// goesBy reports whether what is left of a name or pattern begins with a way, and goes on.
func goesBy(rest, way []names.Step) bool {
	return len(way) > 0 && len(rest) > len(way) && slices.EqualFunc(rest[:len(way)], way, func(a, b names.Step) bool { return a.Kind == b.Kind && a.Text == b.Text })
}

// yieldLocals goes through the variables of a function that waits, from a position on, as [Program.parts] does.
func (p *Program) yieldLocals(g *py.GIL, o py.Object, from int, yield func(s names.Step, part py.Object, next int) bool) (n int, goesOn bool) {
	var all []string
	_ = g.Nested(func() error { // one that has ended has none
		f, err := frameOf(g, o)
		if err == nil && f != nil {
			all = f.Locals()
		}
		return nil
	})
	for i, name := range all {
		if i < from || !isShown(name) {
			continue
		}
		s := names.Step{Kind: names.Key, Text: name}
		part, ok := p.waitingLocal(g, o, name)
		if ok && !yield(s, part, i+1) {
			return i + 1, false
		}
	}
	return len(all), true
}

func (*Program) waitingLocal(g *py.GIL, o py.Object, name string) (py.Object, bool) {
	key, err := g.NewKey(name)
	if err != nil {
		return 0, false
	}
	return g.Follow(o, py.Step{Kind: py.StepLocal, Class: g.Type(o), Key: key})
}

// inFrame gives a local variable of a function that waits, for a name such as g.gi_frame.f_locals["x"], and how many steps of the name
// that was: 0, if the name means anything else. The frame is let go before anything else happens.
func (p *Program) inFrame(g *py.GIL, o py.Object, rest []names.Step, where string) (v py.Object, used int, err error) {
	way := p.wayToLocals(g, o)
	if !leadsToLocal(rest, way) {
		return 0, 0, nil
	}
	name := rest[len(way)].Text
	key, err := g.NewKey(name)
	if err != nil {
		return 0, 0, err
	}
	v, err = g.Result(func() (py.Object, error) {
		f, err := frameOf(g, o)
		if err != nil {
			return 0, err
		}
		if f == nil {
			return 0, &missingError{What: where + " has ended, and has no variables any more"}
		}
		if v, ok := f.Local(key); ok {
			return v, nil
		}
		all := f.Locals()
		if slices.Contains(all, name) {
			return 0, &missingError{What: fmt.Sprintf("the variable %s of %s has no value now", name, where)}
		}
		return 0, &missingError{
			What: fmt.Sprintf("%s has no local variable %s", where, name), Remedy: prose.Remedy(name, slices.Values(all), ""),
		}
	})
	return v, len(way) + 1, err
}

// nameInFrame gives the whole name of what may have been meant by an attribute: a local variable of a function that waits; "" if there is none.
func (p *Program) nameInFrame(g *py.GIL, o py.Object, attribute, where string) (whole string) {
	way := p.wayToLocals(g, o)
	if len(way) == 0 {
		return ""
	}
	_ = g.Nested(func() error { // without its frame there is nothing to say
		if f, err := frameOf(g, o); err == nil && f != nil && slices.Contains(f.Locals(), attribute) {
			whole = where + names.Path{Steps: append(way, names.Step{Kind: names.Key, Text: attribute})}.String()
		}
		return nil
	})
	return whole
}

// frameOf gives the frame of a function that waits; nil: it has ended, or o is no such function's.
func frameOf(g *py.GIL, o py.Object) (*py.Frame, error) {
	object, err := g.Attr(o, suspended[g.Waits(o)].frame)
	if err != nil {
		return nil, err
	}
	f, _ := g.FrameOf(object)
	return f, nil
}
