#define _GNU_SOURCE
#include "capi.h"

#include <dlfcn.h>

// _PyType_Lookup, which is private to CPython: NULL where it is no longer there. It gives what a class or one it is made
// from has in its dict, borrowed, and asks no metaclass.
static ndpy (*lookup)(ndpy class, ndpy name);
static ndpy object, type; // the classes of these names

void ndpy_open_classes(void) {
	*(void **)&lookup = dlsym(RTLD_DEFAULT, "_PyType_Lookup");
	object = (ndpy)dlsym(RTLD_DEFAULT, "PyBaseObject_Type");
	type = (ndpy)dlsym(RTLD_DEFAULT, "PyType_Type");
	if (!object || !type) lookup = NULL;
}

ndpy ndpy_class_get(ndpy class, ndpy name) { return lookup ? lookup(class, name) : 0; }

int ndpy_class_has(ndpy o, ndpy name) {
	ndpy class = ndpy_type(o);
	int has = !lookup || lookup(class, name) != 0;
	ndpy_decref(class);
	return has;
}

int ndpy_class_generic(ndpy o) {
	static ndpy name; // the GIL is held
	if (!name && !(name = ndpy_new_interned("__getattribute__", 16))) ndpy_clear();
	if (!name || !lookup) return 0;
	ndpy class = ndpy_type(o);
	int is = lookup(class, name) == lookup(object, name);
	ndpy_decref(class);
	return is;
}

ndpy ndpy_class_attr(ndpy class, const char *name, size_t len) {
	ndpy key = ndpy_new_interned(name, len);
	if (!key) return 0;
	ndpy descriptor = lookup ? lookup(type, key) : 0;
	ndpy_decref(key);
	if (!descriptor) return ndpy_attr(class, name, len);
	return ndpy_get_by(descriptor, class);
}

ndpy ndpy_class_repr(ndpy class) {
	static ndpy repr; // the GIL is held
	if (!repr && !(repr = type ? ndpy_attr(type, "__repr__", 8) : 0)) return 0;
	return ndpy_call_c(repr, class);
}
