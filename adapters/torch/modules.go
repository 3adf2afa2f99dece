package torch

import (
	"strconv"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core/names"
)

// registries are where a Module keeps what it is asked for as attributes, in the order in which it looks.
var registries = []string{"_parameters", "_buffers", "_modules"}

// holders are the modules that have items, by what the items are asked for, and where they keep them.
var holders = []struct {
	class      string
	kind       names.Kind
	registries []string
}{
	{"ModuleList", names.Item, registries[2:]},
	{"Sequential", names.Item, registries[2:]},
	{"ParameterList", names.Item, registries[:1]},
	{"ModuleDict", names.Key, registries[2:]},
	{"ParameterDict", names.Key, registries[:1]},
}

// Follow implements [program.Follower]: modules keep their parts in dicts, and so do lists of modules. A tensor leads to its gradient.
func (*adapter) Follow(g *py.GIL, env *program.Env, o py.Object, s names.Step) (step py.Step, ok bool, err error) {
	if s.Kind == names.Attr && s.Text == "grad" {
		if step, ok, err = gradient(g, env, o); ok || err != nil {
			return step, ok, err
		}
	}
	nn, module, err := moduleOf(g, env)
	if err != nil || !g.IsInstance(o, module) {
		return step, false, err
	}
	if s.Kind == names.Attr {
		step = py.Step{Kind: py.StepRegistered, Registries: registries}
		ok, err = g.Inherits(o, "__getattr__", module)
		return step, ok, err
	}
	step.Kind = py.StepRegisteredItem
	if step.Registries, ok, err = held(g, nn, o, s.Kind); !ok || err != nil {
		return step, false, err
	}
	if s.Kind == names.Item {
		step.Key, err = g.NewKey(strconv.FormatInt(s.Item, 10))
	}
	return step, true, err
}

func moduleOf(g *py.GIL, env *program.Env) (nn, module py.Object, err error) {
	if nn, err = g.Attr(env.Module, "nn"); err != nil {
		return 0, 0, err
	}
	module, err = g.Attr(nn, "Module")
	return nn, module, err
}

// held gives where a module keeps items that are asked for by a kind of step; ok is false if it has no such items.
func held(g *py.GIL, nn, o py.Object, kind names.Kind) (in []string, ok bool, err error) {
	for _, h := range holders {
		if h.kind != kind {
			continue
		}
		class, ok, err := g.AttrOK(nn, h.class)
		if err != nil {
			return nil, false, err
		}
		if ok && g.IsInstance(o, class) {
			ok, err = g.Inherits(o, "__getitem__", class)
			return h.registries, ok, err
		}
	}
	return nil, false, nil
}

// haveGradients are the attributes of which one is true of a tensor that is to have a gradient. PyTorch warns who asks another for it.
var haveGradients = []string{"is_leaf", "retains_grad"}

// gradient is the step to the gradient of a tensor; ok is false if the object is none, or of a class whose attributes may run code.
func gradient(g *py.GIL, env *program.Env, o py.Object) (step py.Step, ok bool, err error) {
	tensor, err := g.Attr(env.Module, "Tensor")
	if err != nil {
		return step, false, err
	}
	class := g.Type(o)
	if class != tensor {
		nn, err := g.Attr(env.Module, "nn")
		if err != nil {
			return step, false, err
		}
		if parameter, err := g.Attr(nn, "Parameter"); err != nil || class != parameter {
			return step, false, err
		}
	}
	step = py.Step{Kind: py.StepGetter, Class: class, Registries: haveGradients}
	if step.Key, err = g.Interned("grad"); err == nil {
		step.Unless, err = g.Interned(engine)
	}
	return step, err == nil, err
}

// engine is the method that computes gradients, and replaces them without the GIL. Who reads one meanwhile, or while one is set to None, as any
// thread of Python's could, ends the program: see the tests.
const engine = "run_backward"

// Unready implements [program.Guard], for the gradients of tensors of any class.
func (*adapter) Unready(g *py.GIL, env *program.Env, o py.Object, s names.Step) (why string, err error) {
	if s.Kind != names.Attr || s.Text != "grad" {
		return "", nil
	}
	tensor, err := g.Attr(env.Module, "Tensor")
	if err != nil || !g.IsInstance(o, tensor) {
		return "", err
	}
	name, err := g.Interned(engine)
	if err != nil || g.Steady(name) {
		return "", err
	}
	return "PyTorch may be replacing it", nil
}

// Parts implements [program.Container].
func (*adapter) Parts(g *py.GIL, env *program.Env, o py.Object, yield func(s names.Step, part py.Object) bool) (ok bool, err error) {
	if step, ok, err := gradient(g, env, o); ok || err != nil {
		if part, there := g.Follow(o, step); there && !g.IsNone(part) {
			yield(names.Step{Kind: names.Attr, Text: "grad"}, part)
		}
		return true, err
	}
	nn, module, err := moduleOf(g, env)
	if err != nil || !g.IsInstance(o, module) {
		return false, err
	}
	own, ok := g.OwnDict(o)
	if !ok {
		return true, nil
	}
	attributes, err := g.Inherits(o, "__getattr__", module)
	if err != nil {
		return true, err
	}
	kind := names.Attr
	for _, k := range []names.Kind{names.Item, names.Key} {
		if _, ok, err := held(g, nn, o, k); err != nil {
			return true, err
		} else if ok {
			kind = k
		}
	}
	for _, registry := range registries {
		key, err := g.Interned(registry)
		if err != nil {
			return true, err
		}
		dict, ok := g.Follow(own, py.Step{Kind: py.StepKey, Class: g.Type(own), Key: key})
		if !ok || !g.IsDict(dict) {
			continue
		}
		if kind == names.Attr && !attributes { // its class finds parts in its own way, as that of torch.compile does, but the dict is there
			if !g.ClassDefines(o, key) && !yield(names.Step{Kind: names.Attr, Text: registry}, dict) {
				return true, nil
			}
			continue
		}
		for at := 0; ; {
			key, part, next, ok := g.DictNext(dict, at)
			if !ok {
				break
			}
			at = next
			if s, ok := stepTo(g, o, key, kind, attributes); ok && !yield(s, part) {
				return true, nil
			}
		}
	}
	return true, nil
}

// stepTo gives the step from a module to what it keeps under a name.
func stepTo(g *py.GIL, o, key py.Object, kind names.Kind, attributes bool) (s names.Step, ok bool) {
	if !g.IsStr(key) {
		return s, false
	}
	text, ok := g.NameText(key)
	if !ok {
		return s, false
	}
	if kind == names.Item {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text {
			return names.Step{Kind: names.Item, Item: n}, true
		}
	}
	if kind == names.Key {
		return names.Step{Kind: names.Key, Text: text}, true
	}
	return names.Step{Kind: names.Attr, Text: text}, attributes && names.IsIdentifier(text) && !g.ClassDefines(o, key)
}
