package py

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/ndbridge/ndbridge/core"
)

// Frame is a function, or the body of a class or a module, that runs. It is valid during its turn of [GIL.Frames].
type Frame struct {
	Thread uint64 // as threading knows it; 0: not known
	Main   bool   // it is on Python's first thread, which is the main one

	g            *GIL
	object, code Object
}

// Frames gives what runs: thread by thread, the oldest first, and the innermost frame of each first. Nothing is left
// behind, and frame.f_locals stays as it is. The loop must not run code of the program's. Without [Interp.NoFrames] there
// are none.
func (g *GIL) Frames() iter.Seq[*Frame] {
	return func(yield func(*Frame) bool) {
		if g.interp.noFrames != nil {
			return
		}
		threads := capiThreads()
		slices.Reverse(threads)
		for n, t := range threads {
			for o, more := t.frame(), true; o != 0; {
				if code := capiFrameCode(o); code != 0 {
					more = yield(&Frame{Thread: t.ident(), Main: n == 0, g: g, object: o, code: g.own(code)})
				}
				back := capiFrameBack(o)
				capiDecref(o)
				if o = back; !more {
					capiDecref(o) // which passes over 0
					return
				}
			}
		}
	}
}

// Steady reports whether what a getter in C gives is whole now: no thread runs a function that uses a name, an interned one, of what replaces
// it without the GIL, and none sets or deletes an attribute. With [Interp.NoFrames] it may not be.
func (*GIL) Steady(name Object) bool { return capiSteady(name) }

// FrameOf gives the function that a frame object is of, such as that of a coroutine which waits. It is valid while the scope is.
func (g *GIL) FrameOf(o Object) (*Frame, bool) {
	if g.interp.noFrames != nil || g.TypeName(o) != "frame" {
		return nil, false
	}
	code := capiFrameCode(o)
	if code == 0 {
		return nil, false
	}
	return &Frame{g: g, object: o, code: g.own(code)}, true
}

// NoFrames says why this Python's frames cannot be read; nil: they can. The error wraps core.ErrVersion.
func (i *Interp) NoFrames() error { return i.noFrames }

// Code gives the frame's code.
func (f *Frame) Code() Object { return f.code }

// Name gives the name of the function or class, "<lambda>", "<module>" or the like.
func (f *Frame) Name() string { return f.text("co_name") }

// Qualified gives the qualified name, or "" before Python 3.11, whose code does not have it.
func (f *Frame) Qualified() string {
	if !atLeast(f.g.interp.version, 11) {
		return ""
	}
	return f.text("co_qualname")
}

// Module gives what the frame's global variables say is their module's name, or "".
func (f *Frame) Module() string {
	key, err := f.g.Interned("__name__")
	if err != nil {
		return ""
	}
	name := capiDictGet(f.Globals(), key)
	if name == 0 || !is(f.g.own(name), flagStr) {
		return ""
	}
	s, err := f.g.Text(name)
	if err != nil {
		return ""
	}
	return s
}

// Globals gives the frame's global variables, a dict.
func (f *Frame) Globals() Object { return f.g.own(capiFrameGlobals(f.object)) }

// Local gives a local variable, or one of an outer function that the function uses; false: it has none of that name now.
// Key is of [GIL.NewKey].
func (f *Frame) Local(key Object) (Object, bool) {
	var v Object
	if f.isFunction() {
		v = capiFrameLocal(f.object, f.code, key)
	} else if space, ok := f.space(); ok {
		v = capiDictGet(space, key)
	}
	if v == 0 {
		return 0, false
	}
	return f.g.own(v), true
}

// Locals gives the names that local variables have or may come to have.
func (f *Frame) Locals() []string {
	var all []string
	add := func(o Object) {
		if s, err := f.g.Text(o); err == nil && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	if !f.isFunction() {
		space, ok := f.space()
		if !ok {
			return nil
		}
		items, err := f.g.DictItems(space)
		if err != nil {
			return nil
		}
		for key := range items {
			if is(key, flagStr) {
				add(key)
			}
		}
		return all
	}
	for _, attribute := range []string{"co_varnames", "co_cellvars", "co_freevars"} {
		tuple, ok := f.of(attribute)
		if !ok {
			return nil
		}
		for i := range capiTupleLen(tuple) {
			add(capiTupleItem(tuple, i))
		}
	}
	return all
}

// isFunction reports whether the frame has its variables in places of its own.
func (f *Frame) isFunction() bool {
	const optimized = 1 // CO_OPTIMIZED
	o, ok := f.of("co_flags")
	return ok && capiInt64(o)&optimized != 0
}

// space gives the variables of the body of a class. Those of a module are its global variables, and no others.
func (f *Frame) space() (Object, bool) {
	o := capiFrameSpace(f.object)
	if o == 0 {
		return 0, false
	}
	return f.g.own(o), f.g.ExactType(o) == "dict" && o != f.Globals()
}

// of gives an attribute of the frame's code, which is a field of it.
func (f *Frame) of(attribute string) (Object, bool) { return f.g.field(f.code, attribute) }

func (f *Frame) text(attribute string) string {
	o, ok := f.of(attribute)
	if !ok {
		return ""
	}
	s, err := f.g.Text(o)
	if err != nil {
		return ""
	}
	return s
}

// maxWrapped bounds how many decorators are looked through.
const maxWrapped = 16

// Defined gives the function, class or code that a dict, a class or a function defines under a name, without running code
// of the program's. Of a function it is the code of what the function makes each time. key is of [GIL.NewKey].
func (g *GIL) Defined(in, key Object) (Object, bool) {
	switch {
	case g.IsDict(in):
		v := capiDictGet(in, key)
		if v == 0 {
			return 0, false
		}
		return g.own(v), true
	case is(in, flagType):
		v := capiClassGet(in, key)
		if v != 0 {
			g.Share(v)
		}
		return v, v != 0
	}
	code, ok := g.CodeOf(in)
	if !ok {
		return 0, false
	}
	constants, ok := g.field(code, "co_consts")
	if !ok {
		return 0, false
	}
	for i := range capiTupleLen(constants) {
		c := capiTupleItem(constants, i)
		if g.TypeName(c) != "code" {
			continue
		}
		if name, ok := g.field(c, "co_name"); ok && name == key {
			g.Share(c)
			return c, true
		}
	}
	return 0, false
}

// CodeOf gives the code of a function, also of one that decorators have made something else of and say so, or of code
// itself. No code of the program's runs.
func (g *GIL) CodeOf(o Object) (Object, bool) {
	wrapped, err := g.NewKey("__wrapped__")
	if err != nil {
		return 0, false
	}
	for range maxWrapped {
		attribute := ""
		switch g.TypeName(o) {
		case "code":
			return o, true
		case "staticmethod", "classmethod":
			attribute = "__func__"
		case "property":
			attribute = "fget"
		}
		var inner Object
		var ok bool
		if attribute != "" {
			inner, ok = g.field(o, attribute)
		} else {
			inner, ok = g.Follow(o, Step{Kind: StepAttribute, Class: g.Type(o), Key: wrapped})
		}
		if !ok {
			break
		}
		o = inner
	}
	if g.TypeName(o) != "function" {
		return 0, false
	}
	code := capiFunctionCode(o)
	if code == 0 {
		return 0, false
	}
	return g.own(code), true
}

// field gives what a getter in C gives.
func (g *GIL) field(o Object, name string) (Object, bool) {
	key, err := g.Interned(name)
	if err != nil {
		return 0, false
	}
	v, ok, err := g.GetOK(o, key)
	return v, ok && err == nil
}

// probe has a function with variables of each kind, which waits.
const probe = `
def outer(free):
    def generator(argument, cell_argument, deleted):
        del deleted
        local, cell = [1], [2]
        yield argument, cell_argument, local, cell, free, lambda: (cell_argument, cell)
    return generator([3], [4], [5])
waits = outer([6])
values = next(waits)
frame, code = waits.gi_frame, waits.gi_code
`

// openFrames finds out whether frames are as they are known to be.
func (i *Interp) openFrames(g *GIL) error {
	i.noFrames = &core.Error{
		Kind: core.ErrVersion, Err: fmt.Errorf("local variables of Python %s are not known", i.version),
		Remedy: "use CPython 3.8 to 3.14, or publish the array",
	}
	if !i.usual || !capiOpenFrames() {
		return nil
	}
	builtins, err := g.Import("builtins")
	if err != nil {
		return err
	}
	space, err := g.NewDict()
	if err != nil {
		return err
	}
	text, err := g.NewStr(probe)
	if err != nil {
		return err
	}
	if _, err := g.CallMethod(builtins, "exec", []Object{text, space}, nil); err != nil {
		return err
	}
	switch err := g.probe(space); {
	case err == nil:
		i.noFrames = nil
	case !errors.Is(err, errProbe):
		return err
	}
	_, err = g.CallMethod(space, "clear", nil, nil) // the function in it has it: no garbage is left to the program
	return err
}

// errProbe says that frames are not as they were expected to be.
var errProbe = errors.New("a frame is not as it is known")

// probe compares what the frame of the probe says with what is so.
func (g *GIL) probe(space Object) error {
	object, err := g.ItemStr(space, "frame")
	if err != nil {
		return err
	}
	code, err := g.ItemStr(space, "code")
	if err != nil {
		return err
	}
	values, err := g.ItemStr(space, "values")
	if err != nil {
		return err
	}
	if c := capiFrameCode(object); c == 0 || g.own(c) != code {
		return errProbe
	}
	f := Frame{g: g, object: object, code: code}
	if f.Globals() != space || capiFrameBack(object) != 0 || !f.isFunction() {
		return errProbe
	}
	names := []string{"argument", "cell_argument", "local", "cell", "free", "deleted", "missing"}
	for i, name := range names {
		var want Object
		if i < len(names)-2 {
			want = capiTupleItem(values, i)
		}
		key, err := g.NewKey(name)
		if err != nil {
			return err
		}
		if v, ok := f.Local(key); ok != (want != 0) || v != want {
			return errProbe
		}
	}
	return nil
}
