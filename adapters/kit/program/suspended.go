package program

import (
	"fmt"
	"slices"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core/names"
	"github.com/ndbridge/ndbridge/internal/prose"
)

// suspended are the objects of functions that wait, by type: which attributes have the frame, and what the function waits for.
var suspended = map[string]struct{ frame, awaits string }{
	"generator":       {"gi_frame", "gi_yieldfrom"},
	"coroutine":       {"cr_frame", "cr_await"},
	"async_generator": {"ag_frame", "ag_await"},
}

// frameLocals is the attribute of a frame that has its variables. Python before 3.13 makes a dict of them, which stays with the frame, and
// keeps what the function has dropped since.
const frameLocals = "f_locals"

// inFrame gives a local variable of a function that waits, for a name such as g.gi_frame.f_locals["x"], and how many steps of the name
// that was: 0, if the name means anything else. The frame is let go before anything else happens.
func (p *Program) inFrame(g *py.GIL, o py.Object, rest []names.Step, where string) (v py.Object, used int, err error) {
	const steps = 3
	attribute := func(s names.Step, name string) bool { return s.Kind == names.Attr && s.Text == name }
	if len(rest) < steps || !attribute(rest[1], frameLocals) || rest[2].Kind != names.Key {
		return 0, 0, nil
	}
	of, ok := suspended[g.TypeName(o)]
	if known := p.interp.NoFrames() == nil; !known || !ok || !attribute(rest[0], of.frame) {
		return 0, 0, nil
	}
	name := rest[2].Text
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
	return v, steps, err
}

// nameInFrame gives the whole name of what may have been meant by an attribute: a local variable of a function that waits; "" if there is none.
func (p *Program) nameInFrame(g *py.GIL, o py.Object, attribute, where string) (whole string) {
	of, ok := suspended[g.TypeName(o)]
	if !ok || p.interp.NoFrames() != nil {
		return ""
	}
	_ = g.Nested(func() error { // without its frame there is nothing to say
		if f, err := frameOf(g, o); err == nil && f != nil && slices.Contains(f.Locals(), attribute) {
			whole = fmt.Sprintf("%s.%s.%s%s", where, of.frame, frameLocals, names.Step{Kind: names.Key, Text: attribute})
		}
		return nil
	})
	return whole
}

// frameOf gives the frame of a function that waits; nil: it has ended, or o is no such function's.
func frameOf(g *py.GIL, o py.Object) (*py.Frame, error) {
	object, err := g.Attr(o, suspended[g.TypeName(o)].frame)
	if err != nil {
		return nil, err
	}
	f, _ := g.FrameOf(object)
	return f, nil
}
