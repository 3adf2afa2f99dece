package py

// What follows looks into objects without running code of the program's.

// DictNext gives one item of a dict, also of a class made from dict, and the position of the next; the first has position
// 0. ok is false at the end. The dict may change between two calls: then items may be passed over.
func (g *GIL) DictNext(dict Object, at int) (key, value Object, next int, ok bool) {
	key, value, next = capiDictNext(dict, at)
	if key == 0 {
		return 0, 0, at, false
	}
	return g.own(key), g.own(value), next, true
}

// DictByObject gives the item of a dict whose key is an object, and not another one that is equal to it: no key is hashed or compared.
func (g *GIL) DictByObject(dict, key Object) (Object, bool) {
	v := capiDictByObject(dict, key)
	if v == 0 {
		return 0, false
	}
	return g.own(v), true
}

// Sequence gives one item of a list or a tuple, also of a class made from them, as list and tuple do it, or of a deque.
func (g *GIL) Sequence(o Object, i int) (Object, bool) {
	v := capiSequenceGet(o, i)
	if v == 0 {
		return 0, false
	}
	return g.own(v), true
}

// OwnDict gives the dict with an object's own attributes, if it has one.
func (g *GIL) OwnDict(o Object) (Object, bool) {
	d := capiOwnDict(o)
	if d == 0 {
		capiClear()
		return 0, false
	}
	return g.own(d), g.IsDict(d)
}

// Fields gives the names of the attributes that o has without a __dict__: as its class has them from __slots__ or as a named
// tuple, and those by which a function, a bound method, a functools.partial, a cell, a generator or the like leads to other objects.
// To get one ([StepAttribute]) runs no code of the program's; one without a value leads nowhere.
func (g *GIL) Fields(o Object) []Object {
	keys := capiFields(g.Type(o))
	for _, key := range keys {
		g.own(key)
	}
	return keys
}

// ModuleDict gives the global variables of a module.
func (g *GIL) ModuleDict(module Object) (Object, bool) {
	d := capiModuleDict(module)
	if d == 0 {
		return 0, false
	}
	g.Share(d)
	return d, true
}

// UsualKey reports whether a key is hashed and compared without code of the program's, as str and int are.
func (g *GIL) UsualKey(o Object) bool {
	class := g.Type(o)
	for _, method := range []string{"__eq__", "__hash__"} {
		key, err := g.Interned(method)
		if err != nil {
			return false
		}
		if class == g.Type(key) { // str
			return true
		}
		if found := capiClassGet(class, key); found == 0 || g.TypeName(found) != "wrapper_descriptor" {
			return false
		}
	}
	return true
}

// ClassDefines is [GIL.ClassHas] for a name that is a str.
func (*GIL) ClassDefines(o, name Object) bool { return capiClassHas(o, name) }

// IsClass reports whether o is a class.
func (g *GIL) IsClass(o Object) bool { return is(o, flagType) }

// Waits says whether o is a generator (0), a coroutine (1) or an asynchronous generator (2), exactly; else it gives -1.
func (*GIL) Waits(o Object) int { return capiWaits(o) }

// FunctionGlobals gives the global variables of a function, a dict. Without [Interp.NoFrames] there are none.
func (g *GIL) FunctionGlobals(function Object) (Object, bool) {
	if g.interp.noFrames != nil || g.TypeName(function) != "function" {
		return 0, false
	}
	v := capiFunctionGlobals(function)
	if v == 0 {
		return 0, false
	}
	return g.own(v), true
}

// Builtin gives "dict", "list" or "tuple" if o is of that type, or of one that is made from it and finds items as it
// does; "dict" also for a mapping proxy of what is exactly a dict; and "deque" if o is exactly of that type; else "".
func (g *GIL) Builtin(o Object) string {
	if kind := g.ExactType(o); kind != "" && kind != "module" {
		return kind
	}
	var kind string
	methods := []string{"__getitem__"}
	switch {
	case is(o, flagDict):
		kind, methods = "dict", []string{"__getitem__", "__contains__"}
	case is(o, flagList):
		kind = "list"
	case is(o, flagTuple):
		kind = "tuple"
	case is(o, flagHeap) && !is(o, flagFixed):
		return ""
	default:
		switch g.TypeName(o) {
		case "collections.deque":
			return "deque"
		case "mappingproxy":
			if capiHasDict(o) {
				return "dict"
			}
		}
		return ""
	}
	class := g.Type(o)
	for base, name := range g.interp.exact {
		if name != kind {
			continue
		}
		for _, method := range methods {
			key, err := g.Interned(method)
			if err != nil {
				return ""
			}
			if theirs := capiClassGet(base, key); theirs == 0 || theirs != capiClassGet(class, key) {
				return ""
			}
		}
	}
	return kind
}
