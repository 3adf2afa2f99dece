package jax

import (
	"fmt"

	"github.com/ndbridge/ndbridge/adapters/kit/program"
	"github.com/ndbridge/ndbridge/adapters/kit/py"
	"github.com/ndbridge/ndbridge/core"
)

// imports is what Import needs of JAX, kept for as long as the interpreter runs.
type imports struct {
	module, fromDLPack py.Object
}

// Import implements [program.Importer]. JAX does not write to an array's memory, not even if the array is donated, for it
// is not JAX's own. It takes memory that is not aligned to 64 bytes as a copy.
func (a *adapter) Import(g *py.GIL, env *program.Env, exporter py.Object, l core.Layout, _ bool) (py.Object, error) {
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
	array, err := g.Call(i.fromDLPack, []py.Object{exporter}, nil)
	if err == nil && l.DType().Size() >= 8 {
		err = sameSize(g, array, l.DType())
	}
	return array, err
}

// sameSize refuses an array of smaller elements: without x64, JAX makes int32 of int64 and float32 of float64, and says nothing of the
// numbers that have become others.
func sameSize(g *py.GIL, array py.Object, want core.DType) error {
	dtype, err := g.Attr(array, "dtype")
	if err != nil {
		return err
	}
	itemsize, err := g.Attr(dtype, "itemsize")
	if err != nil {
		return err
	}
	if n, err := g.Int64(itemsize); err != nil || int(n) == want.Size() {
		return err
	}
	name, err := g.Str(dtype)
	if err != nil {
		return err
	}
	return &core.Error{
		Kind: core.ErrDType, Err: fmt.Errorf("JAX makes %s of %v, unless the program enables x64", name, want),
		Remedy: fmt.Sprintf("hand over %s, or have the program set jax_enable_x64", name),
	}
}
