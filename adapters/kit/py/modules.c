#define _GNU_SOURCE
#include "capi.h"

#include <dlfcn.h>
#include <string.h>

// Gives the variable of that name in a dict, or 0. The name is kept in key: the GIL is held.
static ndpy variable(ndpy vars, ndpy *key, const char *name, size_t len) {
	if (!*key) *key = ndpy_new_interned(name, len);
	if (!*key) ndpy_clear();
	return *key && vars ? ndpy_dict_get(vars, *key) : 0;
}

// Whether somebody is just importing the module. The import system says so in the module's spec.
static int importing(ndpy module) {
	static ndpy spec_key, initializing;
	ndpy spec = variable(ndpy_module_dict(module), &spec_key, "__spec__", 8);
	ndpy vars = spec ? ndpy_own_dict(spec) : 0;
	if (spec && !vars) ndpy_clear();
	ndpy is = variable(vars, &initializing, "_initializing", 13);
	ndpy_decref(is); // which passes over 0, as all do
	ndpy_decref(vars);
	ndpy_decref(spec);
	return is == ndpy_true();
}

// Whether it is loaded when the program first asks it for something.
static int lazy(ndpy module) {
	static const char class[] = "<class 'importlib.util._LazyModule'>";
	static ndpy usual; // the GIL is held
	if (!usual) usual = (ndpy)dlsym(RTLD_DEFAULT, "PyModule_Type");
	if (ndpy_class(module) == usual) return 0;
	ndpy_text is = ndpy_type_text(module);
	return is.text && (size_t)is.len == sizeof class - 1 && memcmp(is.text, class, sizeof class - 1) == 0;
}

// PyImport_GetModule would ask the module for its spec, which loads a lazy one, and wait until it is imported.
ndpy ndpy_loaded(const char *name, size_t len) {
	ndpy key = ndpy_new_str(name, len);
	if (!key) {
		ndpy_clear();
		return 0;
	}
	ndpy module = ndpy_dict_get(ndpy_modules(), key);
	ndpy_decref(key);
	if (module && module != ndpy_none() && !importing(module) && !lazy(module)) return module;
	ndpy_decref(module); // which passes over 0
	return 0;
}

// PyImport_AddModule would make a module where the program has removed its own.
ndpy ndpy_main(void) {
	static ndpy key;
	return variable(ndpy_modules(), &key, "__main__", 8);
}

ndpy ndpy_globals(void) {
	ndpy main = ndpy_main();
	ndpy vars = main ? ndpy_module_dict(main) : 0;
	ndpy_decref(main); // sys.modules has it
	return vars;
}
