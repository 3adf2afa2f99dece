package py

import (
	"errors"
	"strings"

	"github.com/ndbridge/ndbridge/core"
)

// Main gives the module __main__.
func (g *GIL) Main() (Object, error) {
	m := capiMain()
	if m == 0 {
		return 0, &core.Error{Op: "enter python", Kind: core.ErrNotFound, Err: errors.New("the program has removed its module __main__")}
	}
	return g.own(m), nil
}

// Import imports a module, or finds it if it was imported before. For "a.b" it gives a.b.
func (g *GIL) Import(name string) (Object, error) { return g.take(capiImport(name)) }

// Loaded gives a module if it is imported already, to its end. It runs no Python code and waits for nobody.
func (g *GIL) Loaded(name string) (Object, bool) {
	m := capiLoaded(name)
	if m == 0 {
		return 0, false
	}
	return g.own(m), true
}

// Variable gives a module's global variable. It runs no code of the module's, which may have an attribute without it.
func (g *GIL) Variable(module Object, name string) (Object, bool) {
	dict := capiModuleDict(module)
	if dict == 0 {
		return 0, false
	}
	key, err := g.Interned(name)
	if err != nil {
		return 0, false
	}
	v := capiDictGet(dict, key)
	if v == 0 {
		return 0, false
	}
	return g.own(v), true
}

// Attr gives o.name.
func (g *GIL) Attr(o Object, name string) (Object, error) { return g.take(capiAttr(o, name)) }

// AttrOK gives o.name, or false if there is no such attribute. Any other exception is an error.
func (g *GIL) AttrOK(o Object, name string) (Object, bool, error) {
	return g.attribute(capiAttr(o, name))
}

// GetOK is AttrOK with a name that is a str.
func (g *GIL) GetOK(o, name Object) (Object, bool, error) { return g.attribute(capiGet(o, name)) }

// attribute takes over what an attribute is, or finds out why there is none.
func (g *GIL) attribute(v Object) (Object, bool, error) {
	if v != 0 {
		return g.own(v), true, nil
	}
	if capiFailedWith(capiAttributeError()) {
		capiClear()
		return 0, false, nil
	}
	return 0, false, g.failure()
}

// Inherits reports whether o's class has a method as class has it.
func (g *GIL) Inherits(o Object, method string, class Object) (bool, error) {
	own, ok, err := g.AttrOK(g.Type(o), method)
	if !ok || err != nil {
		return false, err
	}
	theirs, err := g.Attr(class, method)
	return own == theirs, err
}

// AttrOf gives o.name as class defines it, of which o is an instance, whatever a class made from it
// makes of the name; or false if class has no such attribute. Any other exception is an error.
func (g *GIL) AttrOf(class, o Object, name string) (Object, bool, error) {
	descriptor, ok, err := g.AttrOK(class, name)
	if !ok || err != nil {
		return 0, false, err
	}
	v, err := g.take(capiGetBy(descriptor, o))
	return v, err == nil, err
}

// Item gives o[key].
func (g *GIL) Item(o, key Object) (Object, error) { return g.take(capiItem(o, key)) }

// ItemInt gives o[i].
func (g *GIL) ItemInt(o Object, i int) (Object, error) {
	key, err := g.NewInt(int64(i))
	if err != nil {
		return 0, err
	}
	return g.Item(o, key)
}

// ItemStr gives o["key"].
func (g *GIL) ItemStr(o Object, key string) (Object, error) {
	k, err := g.NewStr(key)
	if err != nil {
		return 0, err
	}
	return g.Item(o, k)
}

// KW is a keyword argument.
type KW struct {
	Name  string
	Value Object
}

// Call gives f(*args, **kw).
func (g *GIL) Call(f Object, args []Object, kw []KW) (Object, error) {
	if len(args) == 0 && len(kw) == 0 {
		return g.take(capiCall(f, 0, 0))
	}
	tuple, err := g.NewTuple(args...)
	if err != nil {
		return 0, err
	}
	if len(kw) == 0 {
		return g.take(capiCall(f, tuple, 0))
	}
	dict, err := g.NewDict()
	if err != nil {
		return 0, err
	}
	for _, a := range kw {
		name, err := g.NewStr(a.Name)
		if err != nil {
			return 0, err
		}
		if err := g.SetItem(dict, name, a.Value); err != nil {
			return 0, err
		}
	}
	return g.take(capiCall(f, tuple, dict))
}

// CallOnce gives f(*args, **kw), where args is a tuple and kw a dict or 0, for a function of the program's that may do
// anything. A child process that it forks ends when it returns from f. Go's threads block all signals, and what f starts, be it a
// thread or a process, blocks what its thread does. So on another thread than the main one these are blocked meanwhile, a bit
// for each from 1 on, and no others; nil changes nothing.
func (g *GIL) CallOnce(f, args, kw Object, blocked *uint64) (Object, error) {
	return g.take(capiCallOnce(f, args, kw, blocked))
}

// CallC gives f(o), or f(o, other) if other is not 0, where f is a function in C that runs no code of the program's and
// keeps the GIL: Python's garbage collector does not run meanwhile.
func (g *GIL) CallC(f, o, other Object) (Object, error) { return g.take(capiCallC(f, o, other)) }

// CallMethod gives o.name(*args, **kw).
func (g *GIL) CallMethod(o Object, name string, args []Object, kw []KW) (Object, error) {
	f, err := g.Attr(o, name)
	if err != nil {
		return 0, err
	}
	return g.Call(f, args, kw)
}

// Len gives len(o).
func (g *GIL) Len(o Object) (int, error) {
	n := capiLen(o)
	if n < 0 {
		return 0, g.failure()
	}
	return n, nil
}

// IsInstance reports whether o's type is class, or made from it. It runs no Python code: unlike for
// isinstance, what o says with __class__ does not count. What is no class has no instances.
func (g *GIL) IsInstance(o, class Object) bool {
	t := capiType(o)
	defer capiDecref(t)
	return is(class, flagType) && capiSubtype(t, class)
}

// ExactType gives "module", "dict", "list" or "tuple" if o is exactly of that type, and else "".
func (g *GIL) ExactType(o Object) string { return g.interp.exact[g.Type(o)] }

// GenericAttributes reports whether o's class gets attributes as object does, at first at least: what it does
// about attributes that are not there (__getattr__) is another matter.
func (*GIL) GenericAttributes(o Object) (bool, error) { return capiClassGeneric(o), nil }

// ClassHas reports whether o's class, or one that it is made from, defines an attribute. It runs no Python code. Where
// CPython does not say, it may.
func (g *GIL) ClassHas(o Object, name string) bool {
	key, err := g.Interned(name)
	return err == nil && capiClassHas(o, key)
}

// Type gives type(o).
func (g *GIL) Type(o Object) Object { return g.own(capiType(o)) }

// TypeName gives the qualified name of o's type: "numpy.ndarray", and without the module for
// built-in types: "list". It never fails: what a type does not say is written "?".
func (g *GIL) TypeName(o Object) string {
	return className(capiTypeText(o))
}

// MRO gives the names of o's type and of its base types in the order in which Python searches them,
// written as by TypeName.
func (g *GIL) MRO(o Object) []string {
	t := capiType(o)
	defer capiDecref(t)
	mro := capiClassAttr(t, "__mro__")
	if mro == 0 {
		capiClear()
		return []string{g.TypeName(o)}
	}
	defer capiDecref(mro)
	if !g.IsTuple(mro) {
		return []string{g.TypeName(o)}
	}
	names := make([]string, 0, 4)
	for i := range capiTupleLen(mro) {
		names = append(names, className(capiClassText(capiTupleItem(mro, i))))
	}
	return names
}

// className gives the qualified name of a class, without the module builtins, as type itself writes it: a metaclass is
// not asked, and what is no str (pybind11 puts objects of its own there) is passed over.
func className(repr string) string {
	name, ok := strings.CutPrefix(repr, "<class '")
	if !ok {
		return "?"
	}
	return strings.TrimSuffix(name, "'>")
}

// text gives the text of a new reference that is a str, which it takes over, and "" where there is none.
func text(v Object) string {
	if v == 0 {
		capiClear()
		return ""
	}
	defer capiDecref(v)
	s, ok := capiText(v)
	if !ok {
		capiClear()
	}
	return s
}
