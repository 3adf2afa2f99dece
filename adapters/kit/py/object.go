package py

// Main gives the module __main__.
func (g *GIL) Main() (Object, error) { return g.take(capiMain()) }

// Import imports a module, or finds it if it was imported before. For "a.b" it gives a.b.
func (g *GIL) Import(name string) (Object, error) { return g.take(capiImport(name)) }

// Loaded gives a module if it is imported already. It runs no Python code.
func (g *GIL) Loaded(name string) (Object, bool) {
	m := capiLoaded(name)
	if m == 0 {
		return 0, false
	}
	return g.own(m), m != capiNone()
}

// Attr gives o.name.
func (g *GIL) Attr(o Object, name string) (Object, error) { return g.take(capiAttr(o, name)) }

// AttrOK gives o.name, or false if there is no such attribute. Any other exception is an error.
func (g *GIL) AttrOK(o Object, name string) (Object, bool, error) {
	if v := capiAttr(o, name); v != 0 {
		return g.own(v), true, nil
	}
	if capiFailedWith(capiAttributeError()) {
		capiClear()
		return 0, false, nil
	}
	return 0, false, g.failure()
}

// AttrOf gives o.name as class defines it, of which o is an instance, whatever a class made from it
// makes of the name; or false if class has no such attribute. Any other exception is an error.
func (g *GIL) AttrOf(class, o Object, name string) (Object, bool, error) {
	descriptor, ok, err := g.AttrOK(class, name)
	if !ok || err != nil {
		return 0, false, err
	}
	v, err := g.CallMethod(descriptor, "__get__", []Object{o}, nil)
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
	tuple, err := g.NewTuple(args...)
	if err != nil {
		return 0, err
	}
	if len(kw) == 0 {
		return g.take(capiCall(f, tuple, 0))
	}
	dict, err := g.take(capiNewDict())
	if err != nil {
		return 0, err
	}
	for _, a := range kw {
		name, err := g.NewStr(a.Name)
		if err != nil {
			return 0, err
		}
		if capiDictSet(dict, name, a.Value) < 0 {
			return 0, g.failure()
		}
	}
	return g.take(capiCall(f, tuple, dict))
}

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
func (g *GIL) GenericAttributes(o Object) (bool, error) {
	get, err := g.Attr(g.Type(o), getattribute)
	return get == g.interp.generic, err
}

// Type gives type(o).
func (g *GIL) Type(o Object) Object { return g.own(capiType(o)) }

// TypeName gives the qualified name of o's type: "numpy.ndarray", and without the module for
// built-in types: "list". It never fails: what a type does not say is written "?".
func (g *GIL) TypeName(o Object) string {
	t := capiType(o)
	defer capiDecref(t)
	return g.className(t)
}

// MRO gives the names of o's type and of its base types in the order in which Python searches them,
// written as by TypeName.
func (g *GIL) MRO(o Object) []string {
	t := capiType(o)
	defer capiDecref(t)
	mro := capiAttr(t, "__mro__")
	if mro == 0 {
		capiClear()
		return []string{g.className(t)}
	}
	defer capiDecref(mro)
	if !g.IsTuple(mro) {
		return []string{g.className(t)}
	}
	names := make([]string, 0, 4)
	for i := range capiTupleLen(mro) {
		names = append(names, g.className(capiTupleItem(mro, i)))
	}
	return names
}

// className gives the qualified name of a class, without the module builtins.
func (g *GIL) className(class Object) string {
	module, name := attrText(class, "__module__"), attrText(class, "__qualname__")
	if name == "" {
		name = "?"
	}
	if module == "" || module == "builtins" {
		return name
	}
	return module + "." + name
}

// attrText gives an attribute that is a str, and "" where there is none.
func attrText(o Object, name string) string {
	v := capiAttr(o, name)
	if v == 0 {
		capiClear()
		return ""
	}
	defer capiDecref(v)
	text, ok := capiText(v)
	if !ok {
		capiClear()
	}
	return text
}
