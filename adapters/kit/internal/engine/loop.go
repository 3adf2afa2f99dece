package engine

import (
	_ "embed"

	"github.com/ndbridge/ndbridge/adapters/kit/py"
)

//go:embed loop.py
var loopCode string

//go:embed forks.py
var forksCode string

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
	namespace, err := runOwn(g, "ndbridge.loop", loopCode)
	if err != nil {
		return err
	}
	begin, err := g.ItemStr(namespace, "begin")
	if err != nil {
		return err
	}
	l.start = g.Keep(begin)
	return nil
}

// runOwn runs code of ours in a namespace of its own, which it gives.
func runOwn(g *py.GIL, name, code string) (py.Object, error) {
	builtins, err := g.Import("builtins")
	if err != nil {
		return 0, err
	}
	namespace, err := g.NewDict()
	if err != nil {
		return 0, err
	}
	text, err := g.NewStr(code)
	if err != nil {
		return 0, err
	}
	key, err := g.NewStr("__name__")
	if err != nil {
		return 0, err
	}
	value, err := g.NewStr(name)
	if err != nil {
		return 0, err
	}
	if err := g.SetItem(namespace, key, value); err != nil {
		return 0, err
	}
	_, err = g.CallMethod(builtins, "exec", []py.Object{text, namespace}, nil)
	return namespace, err
}

// isAwaitable reports whether an object is what a coroutine function returns.
func isAwaitable(g *py.GIL, o py.Object) bool {
	return g.ClassHas(o, "__await__")
}
