package jax

import (
	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
)

// imports is what Import needs of JAX, kept for as long as the interpreter runs.
type imports struct {
	module, fromDLPack py.Object
}

// Import implements [program.Importer]. JAX does not write to an array's memory, not even if the array is donated, for it
// is not JAX's own. It takes memory that is not aligned to 64 bytes, and types that it does not have without x64, as a
// copy.
func (a *adapter) Import(g *py.GIL, env *program.Env, exporter py.Object, _ core.Layout, _ bool) (py.Object, error) {
	i := a.imports.Load()
	if i == nil || i.module != env.Module {
		dlpack, err := g.Attr(env.Module, "dlpack")
		if err != nil {
			return 0, err
		}
		f, err := g.Attr(dlpack, "from_dlpack")
		if err != nil {
			return 0, err
		}
		i = &imports{g.Keep(env.Module), g.Keep(f)}
		a.imports.Store(i)
	}
	g.HostArrayUnsigned(exporter) // from_dlpack does not ask for the new kind of capsule
	return g.Call(i.fromDLPack, []py.Object{exporter}, nil)
}
