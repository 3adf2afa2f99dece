package torch

import (
	"errors"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
)

// imports is what Import needs of PyTorch, kept for as long as the interpreter runs.
type imports struct {
	module, fromDLPack py.Object
}

// Import implements [program.Importer]. A tensor does not know that its memory is read-only, so the old kind of capsule
// says as much as the new one, and every version takes it.
func (a *adapter) Import(
	g *py.GIL, env *program.Env, exporter py.Object, l core.Layout, readOnly bool,
) (py.Object, error) {
	i, err := a.importing(g, env)
	if err != nil {
		return 0, err
	}
	effect := shareReadOnly
	if readOnly {
		effect = env.Effect(idReadOnlyMemory, readOnlyEffects()...)
	}
	if effect == refuseReadOnly {
		return 0, &core.Error{
			Kind: core.ErrUnsupported, Quirk: idReadOnlyMemory, Remedy: readOnlyRemedy,
			Err: errors.New("the memory is read-only, and the configuration says no to tensors of such memory"),
		}
	}
	for axis := range l.Rank() {
		if l.Stride(axis) < 0 {
			return 0, &core.Error{
				Kind: core.ErrLayout, Err: errors.New("PyTorch has no negative strides"), Remedy: "hand over a dense copy",
			}
		}
	}
	capsule, err := g.HostArrayCapsule(exporter, false)
	if err != nil {
		return 0, err
	}
	tensor, err := g.Call(i.fromDLPack, []py.Object{capsule}, nil)
	if err != nil || effect != copyReadOnly {
		return tensor, err
	}
	return g.CallMethod(tensor, "clone", nil, nil)
}

func (a *adapter) importing(g *py.GIL, env *program.Env) (*imports, error) {
	if i := a.imports.Load(); i != nil && i.module == env.Module {
		return i, nil
	}
	o := env.Module
	for _, name := range []string{"utils", "dlpack", "from_dlpack"} {
		var err error
		if o, err = g.Attr(o, name); err != nil {
			return nil, err
		}
	}
	i := &imports{g.Keep(env.Module), g.Keep(o)}
	a.imports.Store(i)
	return i, nil
}
