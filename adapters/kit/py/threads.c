#include "capi.h"

// Gives threading's variable of that name, or 0. The name is kept in key.
static ndpy of_threading(ndpy threading, ndpy *key, const char *name, size_t len) {
	if (!*key) *key = ndpy_new_interned(name, len);
	ndpy vars = ndpy_module_dict(threading); // borrowed; 0: it is no module
	return *key && vars ? ndpy_dict_get(vars, *key) : 0;
}

// Takes an entry out of a dictionary.
static void take_out(ndpy dict, ndpy key) {
	ndpy pop = ndpy_attr(dict, "pop", 3), args = ndpy_new_tuple(&key, 1);
	if (pop && args) ndpy_decref(ndpy_call(pop, args, 0)); // which passes over 0, as all do
	ndpy_decref(args);
	ndpy_decref(pop);
}

void ndpy_forget_thread(void) {
	enum { DICT = 1 << 29 };           // Py_TPFLAGS_DICT_SUBCLASS
	static ndpy active, dummy_thread; // the GIL is held
	ndpy threading = ndpy_loaded("threading", 9);
	if (!threading) return;
	ndpy threads = of_threading(threading, &active, "_active", 7), id = ndpy_new_uint(ndpy_thread());
	ndpy entry = threads && id && ndpy_is(threads, DICT) ? ndpy_dict_get(threads, id) : 0;
	if (entry) {
		ndpy type = ndpy_type(entry), dummy = of_threading(threading, &dummy_thread, "_DummyThread", 12);
		if (type == dummy) take_out(threads, id);
		ndpy_decref(dummy);
		ndpy_decref(type);
	}
	ndpy_decref(entry);
	ndpy_decref(id);
	ndpy_decref(threads);
	ndpy_decref(threading);
	ndpy_clear();
}
