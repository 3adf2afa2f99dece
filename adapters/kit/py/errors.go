package py

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ndbridge/ndbridge/core"
)

// exception is an exception as Python has it, with references; the zero exception is none.
type exception struct{ t, v, traceback Object }

// take replaces the exception by another one, whose references stay the caller's.
func (e *exception) take(t, v, traceback Object) {
	capiIncrefAll([]Object{t, v, traceback})
	capiDecrefAll([]Object{e.t, e.v, e.traceback})
	*e = exception{t, v, traceback}
}

// throw makes it Python's again, and reports whether there is one.
func (e *exception) throw() bool {
	if e.t == 0 {
		return false
	}
	capiThrow(e.t, e.v, e.traceback)
	return true
}

// failure turns the exception that Python has set into an error and clears it.
func (g *GIL) failure() error {
	ends := g.ending != nil && capiFailed() && capiFailedToEnd()
	t, v, traceback := capiFetch()
	if ends {
		g.ending.take(t, v, traceback)
	}
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
	// Importing it here might run the program's own module of that name.
	module, ok := g.Loaded("traceback")
	if !ok {
		module = 0
	}
	return g.describe(t, v, traceback, module)
}

// Exception describes an exception that Python code has caught. It imports the module traceback, as Python itself
// may when it prints one.
func (g *GIL) Exception(v Object) *core.PythonError {
	defer g.release(len(g.owned), len(g.buffers))
	return g.describe(g.Type(v), v, g.quiet(capiAttr(v, "__traceback__")), g.quiet(capiImport("traceback")))
}

// describe uses the module traceback, or makes do without if that is 0 or cannot say. What lies behind the exception is told of without it,
// for that runs code of the program's.
func (g *GIL) describe(t, v, traceback, module Object) *core.PythonError {
	told := telling{places: maxPlaces}
	e := g.tell(v, &told)
	e.Type = className(capiClassText(t))
	if module != 0 {
		e.Traceback = g.format(module, t, v, traceback)
	}
	if e.Traceback == "" {
		places := maxPlaces
		e.Traceback = g.before(v, maxCauses) + g.places(traceback, &places) + e.Error() + "\n" + lines(e.Notes)
	}
	return e
}

const (
	maxTold  = 64 // how many exceptions describe tells of
	maxNotes = 64 // how many notes of one
)

// telling is what describe has told of, and how many lines of tracebacks it may still give.
type telling struct {
	told   []Object // each is kept until describe ends
	places int
}

// tell gives an exception and what is behind it, each exception once: they may lie in a circle.
func (g *GIL) tell(v Object, w *telling) *core.PythonError {
	w.told = append(w.told, v)
	e := &core.PythonError{Type: g.TypeName(v), Message: g.message(v), Notes: g.notes(v)}
	cause, context := g.origin(v)
	e.Cause, e.Context = g.behind(cause, w), g.behind(context, w)
	parts := g.ofException(v, "BaseExceptionGroup", "exceptions")
	for i := 0; parts != 0 && g.IsTuple(parts) && i < capiTupleLen(parts) && len(w.told) < maxTold; i++ {
		if part := g.behind(capiTupleItem(parts, i), w); part != nil {
			e.Group = append(e.Group, part)
		}
	}
	return e
}

// behind tells of an exception behind another one, if it is one and not told of yet.
func (g *GIL) behind(v Object, w *telling) *core.PythonError {
	if v == 0 || len(w.told) == maxTold || slices.Contains(w.told, v) {
		return nil
	}
	e := g.tell(v, w)
	e.Traceback = g.places(g.ofException(v, "BaseException", "__traceback__"), &w.places) + e.Error() + "\n"
	return e
}

// origin gives the exception from which another one was raised, or else the one while which was handled, if that is not suppressed.
func (g *GIL) origin(v Object) (cause, context Object) {
	if cause = g.ofException(v, "BaseException", "__cause__"); cause != 0 {
		return cause, 0
	}
	if suppressed := g.ofException(v, "BaseException", "__suppress_context__"); suppressed == 0 || capiTruth(suppressed) != 0 {
		return 0, 0
	}
	return 0, g.ofException(v, "BaseException", "__context__")
}

// maxCauses bounds how many exceptions are told of before one.
const maxCauses = 20

// before gives the exceptions from which, or while which was handled, an exception came, as Python prints them.
func (g *GIL) before(v Object, most int) string {
	const because = "\nThe above exception was the direct cause of the following exception:\n\n"
	const while = "\nDuring handling of the above exception, another exception occurred:\n\n"
	defer g.release(len(g.owned), len(g.buffers))
	why := because
	cause, context := g.origin(v)
	if cause == 0 {
		cause, why = context, while
	}
	if cause == 0 || most == 0 {
		return ""
	}
	e, places := &core.PythonError{Type: g.TypeName(cause), Message: g.message(cause)}, maxPlaces
	return g.before(cause, most-1) + g.places(g.ofException(cause, "BaseException", "__traceback__"), &places) + e.Error() + "\n" + lines(g.notes(cause)) + why
}

// ofException gives what a built-in class of exceptions has for an attribute of one, whatever its own class makes of that; 0 is None, or
// that it is none of these.
func (g *GIL) ofException(v Object, of, name string) Object {
	builtins := g.quiet(capiImport("builtins"))
	if builtins == 0 {
		return 0
	}
	class := g.quiet(capiAttr(builtins, of))
	if class == 0 || !capiSubtype(g.Type(v), class) {
		return 0
	}
	attribute := g.quiet(capiAttr(class, name))
	if attribute == 0 {
		return 0
	}
	get, args := g.quiet(capiAttr(attribute, "__get__")), g.quiet(capiNewTuple([]Object{v}))
	if get == 0 || args == 0 {
		return 0
	}
	if o := g.quiet(capiCall(get, args, 0)); !g.IsNone(o) {
		return o
	}
	return 0
}

// notes gives the notes of an exception, as add_note keeps them. It runs no code of the program's.
func (g *GIL) notes(v Object) []string {
	defer g.release(len(g.owned), len(g.buffers))
	dict, ok := g.OwnDict(v)
	key := g.quiet(capiNewInterned("__notes__"))
	if !ok || key == 0 {
		return nil
	}
	list, ok := g.Follow(dict, Step{Kind: StepKey, Class: g.Type(dict), Key: key})
	if !ok || !g.IsList(list) && !g.IsTuple(list) {
		return nil
	}
	var notes []string
	for i := range maxNotes {
		if note, ok := g.Sequence(list, i); ok && g.IsStr(note) {
			text, ok := capiText(note)
			if !ok {
				capiClear()
			}
			notes = append(notes, text)
		}
	}
	return notes
}

// lines gives each text its line.
func lines(texts []string) string {
	var b strings.Builder
	for _, text := range texts {
		b.WriteString(text + "\n")
	}
	return b.String()
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

// maxPlaces bounds the lines of places.
const maxPlaces = 1000

// places gives the beginning of a traceback as Python prints it, without the text of the lines, and lowers how many lines there may be. It
// runs no code of the program's.
func (g *GIL) places(traceback Object, most *int) string {
	defer g.release(len(g.owned), len(g.buffers))
	var b strings.Builder
	for ; *most > 0; *most-- {
		if traceback == 0 || traceback == capiNone() {
			break
		}
		if b.Len() == 0 {
			b.WriteString("Traceback (most recent call last):\n")
		}
		line := g.quiet(capiAttr(traceback, "tb_lineno"))
		frame := g.quiet(capiAttr(traceback, "tb_frame"))
		if line == 0 || frame == 0 {
			break
		}
		code := g.quiet(capiAttr(frame, "f_code"))
		if code == 0 {
			break
		}
		fmt.Fprintf(&b, "  File \"%s\", line %s, in %s\n",
			text(capiAttr(code, "co_filename")), text(capiStr(line)), text(capiAttr(code, "co_name")))
		traceback = g.quiet(capiAttr(traceback, "tb_next"))
	}
	return b.String()
}

// format gives the traceback as Python's module prints it, or "" if that cannot say.
func (g *GIL) format(module, t, v, traceback Object) string {
	defer g.release(len(g.owned), len(g.buffers))
	if traceback == 0 {
		traceback = capiNone()
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
