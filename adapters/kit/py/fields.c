#define _GNU_SOURCE
#include "fields.h"

#include <dlfcn.h>

enum { HEAP_TYPE = 1 << 9, IMMUTABLE = 1 << 8, TUPLE = 1 << 26 }; // flags of types; a class statement makes mutable heap types

static bool is_python_class(ndpy class) { return (ndpy_type_flags(class) & (HEAP_TYPE | IMMUTABLE)) == HEAP_TYPE; }

// The type of what a named tuple's class has for each of its names: borrowed, or 0 while no such class can be there.
static ndpy tuple_getter(void) {
	static ndpy type, key; // the GIL is held
	if (type) return type;
	ndpy module = ndpy_loaded("_collections", 12);
	ndpy vars = module ? ndpy_module_dict(module) : 0;
	if (!key && !(key = ndpy_new_interned("_tuplegetter", 12))) ndpy_clear();
	ndpy found = vars && key ? ndpy_dict_get(vars, key) : 0;
	if (found && !is_python_class(found)) ndpy_incref(type = found);
	ndpy_decref(found);
	ndpy_decref(module);
	return type;
}

bool ndpy_is_field(ndpy found) {
	static ndpy member; // the GIL is held
	if (!member) member = (ndpy)dlsym(RTLD_DEFAULT, "PyMemberDescr_Type");
	ndpy type = found ? ndpy_class(found) : 0;
	return type && (type == member || type == tuple_getter());
}

bool ndpy_is_getter(ndpy found) {
	static ndpy getset; // the GIL is held
	if (!getset) getset = (ndpy)dlsym(RTLD_DEFAULT, "PyGetSetDescr_Type");
	return ndpy_is_field(found) || (found && ndpy_class(found) == getset);
}

static size_t own_fields(ndpy class, ndpy base, ndpy *keys, size_t max) {
	static ndpy copy; // the GIL is held
	if (!copy && !(copy = ndpy_new_interned("copy", 4))) ndpy_clear();
	ndpy proxy = copy ? ndpy_class_attr(base, "__dict__", 8) : 0;
	ndpy dict = proxy ? ndpy_ask(proxy, copy) : 0;
	if (!dict) ndpy_clear();
	size_t n = 0;
	ptrdiff_t at = 0;
	for (ndpy key, value; dict && n < max && ndpy_dict_next(dict, &at, &key, &value); ndpy_decref(value)) {
		if (ndpy_is_field(value) && ndpy_class_get(class, key) == value) keys[n++] = key;
		else ndpy_decref(key);
	}
	ndpy_decref(dict);
	ndpy_decref(proxy);
	return n;
}

size_t ndpy_fields(ndpy class, ndpy *keys, size_t max) {
	ndpy mro = ndpy_class_generic(class) ? ndpy_class_attr(class, "__mro__", 7) : 0;
	bool tuple = (ndpy_type_flags(class) & TUPLE) != 0;
	if (mro && !(ndpy_type_flags(ndpy_class(mro)) & TUPLE)) {
		ndpy_decref(mro);
		mro = 0;
	}
	if (!mro) ndpy_clear();
	size_t n = 0;
	for (ptrdiff_t i = mro ? ndpy_tuple_len(mro) : 0; i-- > 0;) { // as a dataclass has its fields
		ndpy base = ndpy_tuple_item(mro, i);
		if (tuple || is_python_class(base)) n += own_fields(class, base, keys + n, max - n);
	}
	ndpy_decref(mro);
	return n;
}
