package program

import (
	_ "embed"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

//go:embed loop.py
var loopCode string

// loop awaits what coroutine functions return. The GIL guards it.
type loop struct{ start py.Object } // loop.py's begin; 0: not yet there

// begin begins to await an object, and gives a loop.py's Awaited, which is a concurrent.futures.Future.
func (l *loop) begin(g *py.GIL, awaitable py.Object, blocked *uint64) (py.Object, error) {
	if l.start == 0 {
		if err := l.load(g); err != nil {
			return 0, err
		}
	}
	args, err := g.NewTuple(awaitable)
	if err != nil {
		return 0, err
	}
	return g.CallOnce(l.start, args, 0, blocked)
}

func (l *loop) load(g *py.GIL) error {
	builtins, err := g.Import("builtins")
	if err != nil {
		return err
	}
	namespace, err := g.NewDict()
	if err != nil {
		return err
	}
	code, err := g.NewStr(loopCode)
	if err != nil {
		return err
	}
	name, err := g.NewStr("__name__")
	if err != nil {
		return err
	}
	value, err := g.NewStr("ndbridge.loop")
	if err != nil {
		return err
	}
	if err := g.SetItem(namespace, name, value); err != nil {
		return err
	}
	if _, err := g.CallMethod(builtins, "exec", []py.Object{code, namespace}, nil); err != nil {
		return err
	}
	begin, err := g.ItemStr(namespace, "begin")
	if err != nil {
		return err
	}
	l.start = g.Keep(begin)
	return nil
}

// isAwaitable reports whether an object is what a coroutine function returns.
func isAwaitable(g *py.GIL, o py.Object) bool {
	return g.TypeName(o) == "coroutine" || g.ClassHas(o, "__await__")
}
