package engine

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core/names"
)

// steps says how the program's global variables lead to what a path leads to, without running code of the
// program's. It gives none if they do not: either something is missing on the way, or code is needed.
func (p *Program) steps(g *py.GIL, path names.Path) (steps []py.Step, code bool, err error) {
	if len(path.Steps)+1 > py.MaxSteps || p.published.Last(path.Root) != nil {
		return nil, len(path.Steps) > 0, nil
	}
	o, err := globals(g)
	if err != nil {
		return nil, false, err
	}
	key, err := g.NewKey(path.Root)
	if err != nil {
		return nil, false, err
	}
	steps = append(steps, py.Step{Kind: py.StepKey, Class: g.Type(o), Key: key})
	return p.stepsFrom(g, o, steps, path.Steps)
}

// stepsFrom appends the steps of a path to those that lead to its root from o, or to none if o is the root.
func (p *Program) stepsFrom(g *py.GIL, o py.Object, steps []py.Step, rest []names.Step) (all []py.Step, code bool, err error) {
	plain := names.Path{Steps: rest}.Plain()
	if n := len(steps); n > 0 {
		var ok bool
		if o, ok = g.Follow(o, steps[n-1]); !ok {
			return nil, false, nil
		}
	}
	objects := false // one is a key on the way, which steps would keep
	defer func() {
		if objects {
			all = nil
		}
	}()
	for i := 0; ; {
		if b, ok, err := p.fronted(g, o, rest[i:]); ok || err != nil {
			if len(steps)+len(b.Steps) > py.MaxSteps {
				return nil, false, nil
			}
			return append(steps, b.Steps...), false, nil // find says why what is there may be no array
		}
		if i == len(rest) {
			return steps, false, nil
		}
		if i >= plain && p.hasParts(g, o) { // what follows means a part of its memory
			return steps, false, nil
		}
		h, code, err := p.hop(g, o, rest[i:])
		if h.to == 0 || err != nil {
			return nil, code, err
		}
		o, i = h.to, i+h.used
		if h.step.Kind == 0 {
			objects = true
			continue
		}
		steps = append(steps, h.step)
	}
}

// hop is the way from an object to the next one that a name leads to.
type hop struct {
	to   py.Object // 0: there is none without code of the program's
	step py.Step   // the zero step: by an object that is a key
	used int       // of the name's steps
}

// hop makes the first one from an object on. code says that code of the program's may lead further.
func (p *Program) hop(g *py.GIL, o py.Object, rest []names.Step) (h hop, code bool, err error) {
	if rest[0].Kind == names.ByName {
		to, ok := p.byName(g, o, rest[0])
		return hop{to: to, used: 1}, !ok, nil
	}
	step, used, ok, err := p.step(g, o, rest)
	if !ok || err != nil {
		return hop{}, true, err
	}
	to, _ := g.Follow(o, step)
	return hop{to, step, used}, false, nil
}

// byName gives the item of a dict whose key is what a name leads to, without code of the program's.
func (p *Program) byName(g *py.GIL, o py.Object, s names.Step) (py.Object, bool) {
	if g.Builtin(o) != "dict" {
		return 0, false
	}
	key, ok := p.reach(g, *s.By)
	if !ok {
		return 0, false
	}
	return g.DictByObject(o, key)
}

// reach follows a name without code of the program's.
func (p *Program) reach(g *py.GIL, path names.Path) (o py.Object, ok bool) {
	if t, ok := p.publishedPart(g, path); ok {
		t.close()
		return t.object, len(t.cut) == 0
	}
	var err error
	if path.Of == (names.Function{}) && p.published.Last(path.Root) == nil {
		o, ok = reachGlobal(g, path.Root)
	} else {
		o, err = p.root(g, path)
		ok = err == nil
	}
	for rest := path.Steps; ok && len(rest) > 0; {
		h, _, err := p.hop(g, o, rest)
		o, ok, rest = h.to, h.to != 0 && err == nil, rest[h.used:]
	}
	return o, ok
}

func reachGlobal(g *py.GIL, name string) (py.Object, bool) {
	dict, err := globals(g)
	if err != nil {
		return 0, false
	}
	key, err := g.NewKey(name)
	if err != nil {
		return 0, false
	}
	return g.Follow(dict, py.Step{Kind: py.StepKey, Class: g.Type(dict), Key: key})
}

// runsCode reports whether code of the program's may run on the way to what the path leads to. Who waits for a
// mailbox may give up and ask by gRPC; the code would run twice then, and a property that takes from a queue would lose
// what it took first.
func (a *granting) runsCode(g *py.GIL) bool {
	if len(a.path.Steps) == 0 {
		return false
	}
	for n := len(a.path.Steps); n >= a.path.Plain(); n-- {
		if pub := a.program.published.Last(a.path.Front(n).String()); pub != nil {
			return n < len(a.path.Steps) && !a.program.hasParts(g, pub.Object)
		}
	}
	if a.path.Of == (names.Function{}) {
		_, code, err := a.program.steps(g, a.path)
		return code || err != nil
	}
	o, err := a.program.local(g, a.path.Of, a.path.Root)
	if err != nil {
		return false // find says so
	}
	_, code, err := a.program.stepsFrom(g, o, nil, a.path.Steps)
	return code || err != nil
}

// step is the first of them, from o on, and says how many steps of the name that is.
func (p *Program) step(g *py.GIL, o py.Object, rest []names.Step) (step py.Step, used int, ok bool, err error) {
	if way := p.wayToLocals(g, o); leadsToLocal(rest, way) {
		key, err := g.NewKey(rest[len(way)].Text)
		return py.Step{Kind: py.StepLocal, Class: g.Type(o), Key: key}, len(way) + 1, err == nil, err
	}
	step, ok, err = p.single(g, o, rest[0])
	return step, 1, ok, err
}

// single is step for one step of the name.
func (p *Program) single(g *py.GIL, o py.Object, s names.Step) (step py.Step, ok bool, err error) {
	step = py.Step{Class: g.Type(o)}
	kind := g.Builtin(o)
	switch s.Kind {
	case names.Item:
		step.Index = int(s.Item)
		step.Key, err = g.NewInt(s.Item)
	case names.Slice:
		if kind != "dict" {
			return step, false, nil
		}
		step.Key, err = sliceKey(g, s)
	default:
		step.Key, err = g.NewKey(s.Text)
	}
	if err != nil {
		return step, false, err
	}
	switch {
	case s.Kind == names.Attr && g.ExactType(o) == "module":
		step.Kind = py.StepGlobal
	case s.Kind == names.Attr:
		generic, err := g.GenericAttributes(o)
		if err != nil {
			return step, false, err
		}
		if framework, ok, err := p.follow(g, o, s, step); ok || err != nil {
			return framework, ok && generic, err
		}
		step.Kind = py.StepAttribute
		if generic && !g.ClassHas(o, s.Text) {
			return step, true, nil
		}
		_, ok := g.Follow(o, step)
		return step, ok, nil
	case kind == "dict":
		step.Kind = py.StepKey
	case s.Kind == names.Item && kind != "":
		step.Kind = py.StepIndex
	default:
		return p.follow(g, o, s, step)
	}
	return step, true, nil
}

// follow asks the adapters, whose frameworks have containers.
func (p *Program) follow(g *py.GIL, o py.Object, s names.Step, step py.Step) (py.Step, bool, error) {
	for a, err := range loadedAs[program.Follower](p, g) {
		if err != nil {
			return step, false, err
		}
		if found, ok, err := a.as.Follow(g, a.env, o, s); ok || err != nil {
			found.Class = step.Class
			if found.Key == 0 {
				found.Key = step.Key
			}
			return found, ok, err
		}
	}
	return step, false, nil
}
