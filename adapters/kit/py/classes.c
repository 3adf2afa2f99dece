#define _GNU_SOURCE
#include "capi.h"

#include <dlfcn.h>

// _PyType_Lookup, which is private to CPython: NULL where it is no longer there. It gives what a class or one it is made
// from has in its dict, borrowed, and asks no metaclass.
static ndpy (*lookup)(ndpy class, ndpy name);
static ndpy object, type; // the classes of these names
static size_t class_at;   // the word of an object that is its class; 0: not known

void ndpy_open_classes(void) {
	*(void **)&lookup = dlsym(RTLD_DEFAULT, "_PyType_Lookup");
	object = (ndpy)dlsym(RTLD_DEFAULT, "PyBaseObject_Type");
	type = (ndpy)dlsym(RTLD_DEFAULT, "PyType_Type");
	if (!object || !type) lookup = NULL;
	enum { HEADER = 8 }; // more words than any Python's objects begin with
	for (size_t i = 1; i < HEADER && !class_at && lookup; i++)
		if (((ndpy *)object)[i] == type) class_at = i;
}

ndpy ndpy_class(ndpy o) {
	if (class_at) return ((ndpy *)o)[class_at];
	ndpy class = ndpy_type(o);
	ndpy_decref(class); // o has one
	return class;
}

ndpy ndpy_dict_behind(ndpy o) {
	static ndpy proxy, dict; // the GIL is held
	if (!proxy) proxy = (ndpy)dlsym(RTLD_DEFAULT, "PyDictProxy_Type"), dict = (ndpy)dlsym(RTLD_DEFAULT, "PyDict_Type");
	if (ndpy_class(o) != proxy) return o;
	ndpy behind = class_at ? ((ndpy *)o)[class_at + 1] : 0;
	return behind && ndpy_class(behind) == dict ? behind : 0;
}

ndpy ndpy_class_get(ndpy class, ndpy name) { return lookup ? lookup(class, name) : 0; }

int ndpy_class_has(ndpy class, ndpy name) { return !lookup || lookup(class, name) != 0; }

int ndpy_object_has(ndpy o, ndpy name) { return ndpy_class_has(ndpy_class(o), name); }

int ndpy_class_generic(ndpy class) {
	static ndpy name, of_object, slot; // the GIL is held; object has no other in its lifetime
	static void *generic;
	if (!name && !(name = ndpy_new_interned("__getattribute__", 16))) ndpy_clear();
	if (!of_object && name && lookup) {
		of_object = lookup(object, name);
		slot = (ndpy)dlsym(RTLD_DEFAULT, "PyWrapperDescr_Type");
		generic = dlsym(RTLD_DEFAULT, "PyObject_GenericGetAttr");
	}
	ndpy found = of_object ? lookup(class, name) : 0;
	if (!found || found == of_object) return found != 0;
	enum { USUAL = 1, WRAPPED = 6 }; // words: where objects have their class as a rule, and what a wrapper calls
	return class_at == USUAL && slot && ndpy_class(found) == slot && ((void **)found)[WRAPPED] == generic;
}

// PyGetSetDescr_Type, and what its descriptors get attributes by: NULL where that is not known.
static ndpy getset;
static ndpy (*get_by_getter)(ndpy descriptor, ndpy o, ndpy class);

void ndpy_open_getters(void) {
	enum { DESCR_GET = 54 }; // Py_tp_descr_get
	void *(*slot)(ndpy, int);
	*(void **)&slot = dlsym(RTLD_DEFAULT, "PyType_GetSlot");
	getset = (ndpy)dlsym(RTLD_DEFAULT, "PyGetSetDescr_Type");
	if (slot && getset && lookup) *(void **)&get_by_getter = slot(getset, DESCR_GET);
}

ndpy ndpy_get_of(ndpy o, ndpy class, ndpy name) {
	ndpy found = get_by_getter ? lookup(class, name) : 0;
	if (!found || ndpy_class(found) != getset || !ndpy_class_generic(class)) return ndpy_get(o, name);
	return get_by_getter(found, o, class);
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
	return ndpy_call_c(repr, class, 0);
}

ndpy_text ndpy_class_text(ndpy class) {
	static ndpy held; // the GIL is held
	ndpy repr = ndpy_class_repr(class);
	ndpy_decref(held);
	held = repr;
	ndpy_text t = {0};
	if (held) t.text = ndpy_utf8(held, &t.len);
	if (!t.text) ndpy_clear();
	return t;
}

ndpy_text ndpy_type_text(ndpy o) { return ndpy_class_text(ndpy_class(o)); }
