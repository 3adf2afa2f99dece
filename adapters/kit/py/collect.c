#define _GNU_SOURCE
#include "collect.h"

#include <dlfcn.h>
#include <string.h>

bool ndpy_collect_held;

static int (*off)(void), (*on)(void); // off says whether collection was on; NULL: it is not held off

// The functions of the module gc, which Python 3.8 and 3.9 have in the place of functions of C.
typedef ndpy (*gc_function)(ndpy gc, ndpy unused);
static gc_function is_enabled, disable, enable;

static int off_by_module(void) {
	ndpy is = is_enabled(0, 0);
	ndpy_decref(is); // True and False stay
	if (is == ndpy_true()) ndpy_decref(disable(0, 0));
	return is == ndpy_true();
}

static int on_by_module(void) {
	ndpy_decref(enable(0, 0));
	return 0;
}

static gc_function of_module(ndpy gc, const char *name) {
	gc_function (*pointer)(ndpy) = (gc_function(*)(ndpy))dlsym(RTLD_DEFAULT, "PyCFunction_GetFunction");
	ndpy f = gc && pointer ? ndpy_attr(gc, name, strlen(name)) : 0;
	gc_function found = f ? pointer(f) : NULL;
	if (!found) ndpy_clear(); // there is none, or one of Python code
	ndpy_decref(f);
	return found;
}

// The types of what is found in classes, and of what has attributes in other ways than object.
static ndpy getset, member, method, slot, function, type, module;

bool ndpy_collect_open(void) {
	const struct {
		const char *name;
		ndpy *at;
	} symbols[] = {
		{"PyGetSetDescr_Type", &getset}, {"PyMemberDescr_Type", &member}, {"PyMethodDescr_Type", &method},
		{"PyWrapperDescr_Type", &slot}, {"PyFunction_Type", &function}, {"PyType_Type", &type}, {"PyModule_Type", &module},
	};
	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
		if (!(*symbols[i].at = (ndpy)dlsym(RTLD_DEFAULT, symbols[i].name))) return false;
	*(void **)&off = dlsym(RTLD_DEFAULT, "PyGC_Disable");
	*(void **)&on = dlsym(RTLD_DEFAULT, "PyGC_Enable");
	if (off && on) return true;
	ndpy gc = ndpy_import("gc", 2);
	if (!gc) ndpy_clear();
	is_enabled = of_module(gc, "isenabled"), disable = of_module(gc, "disable"), enable = of_module(gc, "enable");
	ndpy_decref(gc);
	if (!is_enabled || !disable || !enable) return false;
	off = off_by_module, on = on_by_module;
	return true;
}

void ndpy_collect_hold(void) { ndpy_collect_held = off && off(); }

void ndpy_collect_restore(void) {
	if (!ndpy_collect_held) return;
	ndpy_collect_held = false;
	on();
}

void ndpy_collect_again(const bool *as_program) {
	if (*as_program) ndpy_collect_hold();
}

// How every object begins: ndpy_collect_open is not called where it does not.
struct header {
	ptrdiff_t references;
	ndpy type;
};

#define HEADER(o) ((const struct header *)(o))

bool ndpy_last(ndpy o) { return o && HEADER(o)->references == 1; }

static ndpy named(ndpy *name, const char *text) {
	if (!*name && !(*name = ndpy_new_interned(text, strlen(text)))) ndpy_clear();
	return *name;
}

// Whether something in a class, got from an object, gives a field of it or a method: no code runs.
static bool binds(ndpy found) {
	ndpy t = HEADER(found)->type;
	return t == member || t == method || t == slot || t == function;
}

static bool is_c_getter(ndpy found) { return HEADER(found)->type == getset; }

bool ndpy_in_c(ndpy descriptor) { return binds(descriptor) || is_c_getter(descriptor); }

// Whether to get what was found in a class, from the class or from an object of it, may run code.
static bool runs(ndpy found, bool from_class) {
	static ndpy get; // the GIL is held
	if (!found || binds(found) || (from_class && is_c_getter(found))) return false;
	return !named(&get, "__get__") || ndpy_class_get(HEADER(found)->type, get);
}

static bool has(ndpy dict, ndpy key) {
	ndpy v = dict ? ndpy_dict_get(dict, key) : 0;
	ndpy_decref(v);
	return v != 0;
}

bool ndpy_computed(ndpy o, ndpy name) {
	static ndpy missing; // the GIL is held
	ndpy t = HEADER(o)->type;
	if (runs(ndpy_class_get(t, name), false) || !named(&missing, "__getattr__")) return true;
	if (t == type) return runs(ndpy_class_get(o, name), true);
	if (t == module) return !has(ndpy_module_dict(o), name) && has(ndpy_module_dict(o), missing);
	return !ndpy_class_generic(t) || ndpy_class_get(t, missing);
}
