package jax

import (
	"strconv"
	"strings"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core/names"
)

// Lists and dicts of Flax (nnx.List, nnx.Dict) keep each item as an attribute, under its index in decimal or under its key. What else they
// have begins with an underscore. Flax 0.12.0 to 0.12.3 keep the items of lists otherwise, and those are not found.

// Follow implements [program.Follower].
func (*adapter) Follow(g *py.GIL, _ *program.Env, o py.Object, s names.Step) (step py.Step, ok bool, err error) {
	kind, ok, err := itemsOf(g, o)
	if !ok || err != nil || s.Kind != kind || s.Kind == names.Item && s.Item < 0 || s.Kind == names.Key && strings.HasPrefix(s.Text, "_") {
		return step, false, err
	}
	step.Kind = py.StepAttribute
	if kind == names.Item {
		step.Key, err = g.NewKey(strconv.FormatInt(s.Item, 10))
	}
	return step, true, err
}

// Parts implements [program.Container].
func (*adapter) Parts(g *py.GIL, _ *program.Env, o py.Object, yield func(s names.Step, part py.Object) bool) (ok bool, err error) {
	kind, ok, err := itemsOf(g, o)
	if !ok || err != nil {
		return false, err
	}
	own, ok := g.OwnDict(o)
	for at := 0; ok; {
		var key, part py.Object
		if key, part, at, ok = g.DictNext(own, at); !ok || !g.IsStr(key) {
			continue
		}
		text, err := g.Text(key)
		if err != nil {
			continue
		}
		step := names.Step{Kind: kind, Text: text}
		if kind == names.Item {
			n, err := strconv.ParseUint(text, 10, 31)
			if err != nil || strconv.FormatUint(n, 10) != text {
				continue
			}
			step = names.Step{Kind: kind, Item: int64(n)} //nolint:gosec // it has 31 bits
		}
		if !strings.HasPrefix(text, "_") && !yield(step, part) {
			break
		}
	}
	return true, nil
}

// containers are those classes of Flax.
var containers = [...]struct {
	class string
	items names.Kind // by what kind of step they are asked for
}{{"List", names.Item}, {"Dict", names.Key}}

// itemsOf says by what kind of step an object's items are asked for; ok is false if it is no list and no dict of Flax.
func itemsOf(g *py.GIL, o py.Object) (kind names.Kind, ok bool, err error) {
	nnx, ok := g.Loaded("flax.nnx")
	if !ok {
		return 0, false, nil
	}
	for _, c := range containers {
		if class, ok := g.Variable(nnx, c.class); ok && g.IsInstance(o, class) {
			ok, err := g.Inherits(o, "__getitem__", class)
			return c.items, ok, err
		}
	}
	return 0, false, nil
}
