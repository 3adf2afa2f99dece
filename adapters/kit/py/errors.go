package py

import (
	"errors"
	"strings"

	"github.com/ndbridge/ndbridge/core"
)

// failure turns the exception that Python has set into an error and clears it.
func (g *GIL) failure() error {
	t, v, traceback := capiFetch()
	if t == 0 {
		// What Python itself says of a C function that fails without saying why.
		return &core.PythonError{Type: "SystemError", Message: "error return without exception set"}
	}
	defer g.release(len(g.owned), len(g.buffers))
	for _, o := range []Object{t, v, traceback} {
		if o != 0 {
			g.own(o)
		}
	}
	return g.describe(t, v, traceback)
}

// Exception describes an exception that Python code has caught.
func (g *GIL) Exception(v Object) *core.PythonError {
	defer g.release(len(g.owned), len(g.buffers))
	return g.describe(g.Type(v), v, g.quiet(capiAttr(v, "__traceback__")))
}

func (g *GIL) describe(t, v, traceback Object) *core.PythonError {
	return &core.PythonError{
		Type:      g.className(t),
		Message:   g.message(v),
		Traceback: g.format(t, v, traceback),
	}
}

// message is str(v), as the traceback module writes it where that raises.
func (g *GIL) message(v Object) string {
	if s := capiStr(v); s != 0 {
		defer capiDecref(s)
		if text, ok := capiText(s); ok {
			return text
		}
	}
	capiClear()
	return "<exception str() failed>"
}

// format gives the traceback as Python prints it, or "" if Python cannot say.
func (g *GIL) format(t, v, traceback Object) string {
	defer g.release(len(g.owned), len(g.buffers))
	if traceback == 0 {
		traceback = capiNone()
	}
	module := g.quiet(capiImport("traceback"))
	if module == 0 {
		return ""
	}
	f, args := g.quiet(capiAttr(module, "format_exception")), g.quiet(capiNewTuple([]Object{t, v, traceback}))
	if f == 0 || args == 0 {
		return ""
	}
	list := g.quiet(capiCall(f, args, 0))
	if list == 0 || !g.IsList(list) {
		return ""
	}
	lines := g.quiet(capiListTuple(list))
	if lines == 0 {
		return ""
	}
	var b strings.Builder
	for i := range capiTupleLen(lines) {
		line, ok := capiText(capiTupleItem(lines, i))
		if !ok {
			capiClear()
		}
		b.WriteString(line)
	}
	return b.String()
}

// quiet takes a new reference into the scope, and clears the error where there is none.
func (g *GIL) quiet(o Object) Object {
	if o == 0 {
		capiClear()
		return 0
	}
	return g.own(o)
}

// Raise sets err as Python's exception, for a function that Python called and that now returns NULL
// or -1. A [*core.PythonError] of a built-in type becomes that type again; an argument that cannot
// be used becomes TypeError or ValueError; everything else is a RuntimeError.
func (g *GIL) Raise(err error) {
	name, text := "RuntimeError", err.Error()
	if e, ok := errors.AsType[*core.PythonError](err); ok {
		name, text = e.Type, e.Message
	} else if errors.Is(err, core.ErrConfig) || errors.Is(err, core.ErrLayout) {
		name = "ValueError"
	} else if errors.Is(err, core.ErrDType) || errors.Is(err, core.ErrUnsupported) {
		name = "TypeError"
	}
	defer g.release(len(g.owned), len(g.buffers)) // builtins holds the class
	builtins := g.quiet(capiImport("builtins"))
	if builtins == 0 {
		return
	}
	class, base := g.quiet(capiAttr(builtins, name)), g.quiet(capiAttr(builtins, "BaseException"))
	if class == 0 || !g.isSubclass(class, base) {
		class, text = g.quiet(capiAttr(builtins, "RuntimeError")), err.Error()
	}
	if class != 0 {
		capiRaise(class, text)
	}
}

// isSubclass looks in the class's own resolution order: issubclass may run Python code.
func (g *GIL) isSubclass(class, base Object) bool {
	mro := g.quiet(capiAttr(class, "__mro__"))
	if mro == 0 || !g.IsTuple(mro) {
		return false
	}
	for i := range capiTupleLen(mro) {
		if capiTupleItem(mro, i) == base {
			return true
		}
	}
	return false
}

// Raised reports whether err is a Python exception of exactly this type.
func Raised(err error, exception string) bool {
	e, ok := errors.AsType[*core.PythonError](err)
	return ok && e.Type == exception
}
