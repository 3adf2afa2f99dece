#define _GNU_SOURCE
#include "fields.h"
#include "frames.h"

#include <dlfcn.h>
#include <string.h>

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

// An attribute of a class in C that leads to another object.
struct lead {
	const char *class; // a symbol of Python's; NULL: it is functools.partial
	const char *name;
	const char *get; // gives the object, borrowed, and raises no audit event as the attribute does; NULL: the attribute raises none
	ndpy type, key, found; // found is what the type has for the key; 0 until they are known
	ndpy (*getter)(ndpy);
};

static struct lead leads[] = { // the GIL guards it
	{"PyFunction_Type", "__closure__", "PyFunction_GetClosure"},
	{"PyFunction_Type", "__defaults__", "PyFunction_GetDefaults"},
	{"PyFunction_Type", "__kwdefaults__", "PyFunction_GetKwDefaults"},
	{"PyCell_Type", "cell_contents", NULL},
	{"PyMethod_Type", "__self__", "PyMethod_Self"},
	{"PyMethod_Type", "__func__", "PyMethod_Function"},
	{"PyGen_Type", "gi_yieldfrom", NULL},
	{"PyCoro_Type", "cr_await", NULL},
	{"PyAsyncGen_Type", "ag_await", NULL},
	{NULL, "func", NULL},
	{NULL, "args", NULL},
	{NULL, "keywords", NULL},
};

enum { LEADS = sizeof leads / sizeof *leads };

static ndpy partial_class(void) {
	ndpy module = ndpy_loaded("_functools", 10);
	ndpy vars = module ? ndpy_module_dict(module) : 0, key = vars ? ndpy_new_interned("partial", 7) : 0;
	ndpy class = key ? ndpy_dict_get(vars, key) : 0;
	ndpy_clear();
	ndpy_decref(key);
	ndpy_decref(module);
	return class; // it stays: nobody asks again once it is there
}

// Whether what a lead needs is there: functools may not be imported yet.
static bool is_open(struct lead *l) {
	if (l->found) return true;
	if (!l->type) l->type = l->class ? (ndpy)dlsym(RTLD_DEFAULT, l->class) : partial_class();
	if (l->type && !l->key && !(l->key = ndpy_new_interned(l->name, strlen(l->name)))) ndpy_clear();
	if (l->get) *(void **)&l->getter = dlsym(RTLD_DEFAULT, l->get);
	if (l->key && (!l->get || l->getter)) l->found = ndpy_class_get(l->type, l->key);
	return l->found != 0;
}

static const struct lead *lead_of(ndpy found) {
	for (size_t i = 0; found && i < LEADS; i++)
		if (is_open(&leads[i]) && leads[i].found == found) return &leads[i];
	return NULL;
}

bool ndpy_is_field(ndpy found) {
	static ndpy member; // the GIL is held
	if (!member) member = (ndpy)dlsym(RTLD_DEFAULT, "PyMemberDescr_Type");
	ndpy type = found ? ndpy_class(found) : 0;
	return type && (type == member || type == tuple_getter() || lead_of(found));
}

ndpy ndpy_field(ndpy o, ndpy found, ndpy name) {
	const struct lead *l = lead_of(found);
	if (!l || !l->getter) return ndpy_get_generic(o, name);
	ndpy v = l->getter(o);
	if (v) ndpy_incref(v);
	return v;
}

// Where objects of functions that wait have their frames.
static const struct {
	const char *class, *frame;
} waiting[] = {{"PyGen_Type", "gi_frame"}, {"PyCoro_Type", "cr_frame"}, {"PyAsyncGen_Type", "ag_frame"}};

enum { WAITING = sizeof waiting / sizeof *waiting };

int ndpy_waits(ndpy o) {
	static ndpy classes[WAITING]; // the GIL is held
	for (int i = 0; i < WAITING; i++) {
		if (!classes[i]) classes[i] = (ndpy)dlsym(RTLD_DEFAULT, waiting[i].class);
		if (ndpy_class(o) == classes[i]) return i;
	}
	return -1;
}

ndpy ndpy_waiting_local(ndpy o, ndpy name) {
	int kind = ndpy_waits(o);
	ndpy frame = kind >= 0 ? ndpy_attr(o, waiting[kind].frame, strlen(waiting[kind].frame)) : 0;
	ndpy code = frame && frame != ndpy_none() ? ndpy_frame_code(frame) : 0;
	ndpy found = code ? ndpy_frame_local(frame, code, name) : 0;
	ndpy_clear();
	ndpy_decref(code);
	ndpy_decref(frame);
	return found;
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

bool ndpy_leads(ndpy class) {
	for (size_t i = 0; i < LEADS; i++)
		if (is_open(&leads[i]) && leads[i].type == class) return true;
	return false;
}

static size_t leads_from(ndpy class, ndpy base, ndpy *keys, size_t max) {
	size_t n = 0;
	for (size_t i = 0; i < LEADS && n < max; i++) {
		if (!is_open(&leads[i]) || leads[i].type != base || ndpy_class_get(class, leads[i].key) != leads[i].found) continue;
		ndpy_incref(keys[n++] = leads[i].key);
	}
	return n;
}

size_t ndpy_fields(ndpy class, ndpy *keys, size_t max) {
	ndpy mro = ndpy_class_generic(class) || ndpy_leads(class) ? ndpy_class_attr(class, "__mro__", 7) : 0;
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
		else n += leads_from(class, base, keys + n, max - n);
	}
	ndpy_decref(mro);
	return n;
}
