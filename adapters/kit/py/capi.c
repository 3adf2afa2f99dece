#define _GNU_SOURCE
#include "capi.h"
#include "collect.h"
#include "fingerprint.h"
#include "plain.h"
#include "signals.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef struct _object PyObject;
typedef ptrdiff_t Py_ssize_t;

// Every function used, with its type. All of them are in the stable ABI, or were before they were
// called so (the buffer functions), and are exported by every CPython from 3.8 to 3.14.
#define FUNCTIONS(X)                                                         \
	CODE(X)                                                                  \
	X(int, PyGILState_Ensure, (void))                                        \
	X(void, PyGILState_Release, (int))                                       \
	X(void *, PyEval_SaveThread, (void))                                     \
	X(void, PyEval_RestoreThread, (void *))                                  \
	X(int, Py_IsInitialized, (void))                                         \
	X(const char *, Py_GetVersion, (void))                                   \
	X(void, Py_IncRef, (PyObject *))                                         \
	X(void, Py_DecRef, (PyObject *))                                         \
	X(int, Py_AddPendingCall, (int (*)(void *), void *))                     \
	X(unsigned long, PyThread_get_thread_ident, (void))                      \
	X(int, PyThreadState_SetAsyncExc, (unsigned long, PyObject *))           \
	X(PyObject *, PyImport_GetModuleDict, (void))                            \
	X(PyObject *, PyModule_GetDict, (PyObject *))                            \
	X(PyObject *, PyObject_GetAttr, (PyObject *, PyObject *))                \
	X(PyObject *, PyObject_CallFunctionObjArgs, (PyObject *, ...))           \
	X(PyObject *, PyObject_Type, (PyObject *))                               \
	X(int, PyType_IsSubtype, (PyObject *, PyObject *))                       \
	X(int, PyCallable_Check, (PyObject *))                                   \
	X(unsigned long, PyType_GetFlags, (PyObject *))                          \
	X(PyObject *, PyLong_FromLongLong, (long long))                          \
	X(PyObject *, PyLong_FromUnsignedLongLong, (unsigned long long))         \
	X(unsigned long long, PyLong_AsUnsignedLongLong, (PyObject *))           \
	X(PyObject *, PyUnicode_FromStringAndSize, (const char *, Py_ssize_t))   \
	X(PyObject *, PyUnicode_AsEncodedString,                                 \
	  (PyObject *, const char *, const char *))                              \
	X(int, PyBytes_AsStringAndSize, (PyObject *, char **, Py_ssize_t *))     \
	X(const char *, PyUnicode_AsUTF8AndSize, (PyObject *, Py_ssize_t *))     \
	X(void, PyUnicode_InternInPlace, (PyObject **))                          \
	X(PyObject *, PyTuple_New, (Py_ssize_t))                                 \
	X(int, PyTuple_SetItem, (PyObject *, Py_ssize_t, PyObject *))            \
	X(Py_ssize_t, PyTuple_Size, (PyObject *))                                \
	X(PyObject *, PyTuple_GetItem, (PyObject *, Py_ssize_t))                 \
	X(PyObject *, PyList_AsTuple, (PyObject *))                              \
	X(PyObject *, PyDict_New, (void))                                        \
	X(int, PyDict_SetItem, (PyObject *, PyObject *, PyObject *))             \
	X(PyObject *, PyDict_GetItemWithError, (PyObject *, PyObject *))         \
	X(Py_ssize_t, PyList_Size, (PyObject *))                                 \
	X(PyObject *, PyList_GetItem, (PyObject *, Py_ssize_t))                  \
	X(PyObject *, PyObject_GenericGetDict, (PyObject *, void *))             \
	X(PyObject *, PyObject_GenericGetAttr, (PyObject *, PyObject *))         \
	X(PyObject *, PyDict_Items, (PyObject *))                                \
	X(PyObject **, _PyObject_GetDictPtr, (PyObject *))                       \
	X(int, PyDict_Next, (PyObject *, Py_ssize_t *, PyObject **, PyObject **)) \
	X(PyObject *, PyWeakref_NewRef, (PyObject *, PyObject *))                \
	X(PyObject *, PyWeakref_GetObject, (PyObject *))                         \
	X(PyObject *, PyErr_Occurred, (void))                                    \
	X(int, PyErr_ExceptionMatches, (PyObject *))                             \
	X(void, PyErr_Clear, (void))                                             \
	X(void, PyErr_Fetch, (PyObject **, PyObject **, PyObject **))            \
	X(void, PyErr_Restore, (PyObject *, PyObject *, PyObject *))             \
	X(void, PyErr_SetObject, (PyObject *, PyObject *))                       \
	X(int, PyObject_GetBuffer, (PyObject *, ndpy_buffer *, int))             \
	X(void *, PyCapsule_GetPointer, (PyObject *, const char *))              \
	X(const char *, PyCapsule_GetName, (PyObject *))                         \
	X(int, PyCapsule_SetName, (PyObject *, const char *))                    \
	X(int, PyCapsule_IsValid, (PyObject *, const char *))

// Of these, those that may run code of the program's or give the GIL away.
#define CODE(X)                                                              \
	X(PyObject *, PyImport_Import, (PyObject *))                             \
	X(PyObject *, PyObject_GetItem, (PyObject *, PyObject *))                \
	X(PyObject *, PyObject_Call, (PyObject *, PyObject *, PyObject *))       \
	X(PyObject *, PyObject_CallMethodObjArgs, (PyObject *, PyObject *, ...)) \
	X(PyObject *, PyObject_Str, (PyObject *))                                \
	X(PyObject *, PyObject_Repr, (PyObject *))                               \
	X(Py_ssize_t, PyObject_Size, (PyObject *))                               \
	X(PyObject *, PySequence_GetItem, (PyObject *, Py_ssize_t))              \
	X(int, PyObject_IsTrue, (PyObject *))                                    \
	X(PyObject *, PyNumber_Index, (PyObject *))                              \
	X(long long, PyLong_AsLongLong, (PyObject *))                            \
	X(double, PyFloat_AsDouble, (PyObject *))                                \
	X(void, PyErr_NormalizeException, (PyObject **, PyObject **, PyObject **)) \
	X(void, PyBuffer_Release, (ndpy_buffer *))

// The objects used: two types behind a pointer each, and the rest by their own address.
#define OBJECTS(X)     \
	X(_Py_NoneStruct)  \
	X(_Py_TrueStruct)  \
	X(_Py_FalseStruct) \
	X(PyCapsule_Type)  \
	X(PyFunction_Type) \
	X(PyExc_AttributeError) \
	X(PyExc_KeyboardInterrupt) \
	X(PyExc_SystemExit)

// Filled once by ndpy_open, before any other call, and never changed afterwards.
static struct {
#define X(result, name, arguments) result(*name) arguments;
	FUNCTIONS(X)
#undef X
#define X(name) void *name;
	OBJECTS(X)
#undef X
} api;

// For a Python that needs it: what api points to, if those in api let the thread's signals through. No function
// has more arguments, and all are integers or pointers.
static __typeof__(api) signalled;

static void reblock(bool *guarded) { ndpy_out_of_python(*guarded); }

#define X(result, name, arguments)                                                                    \
	static result name##_signalled(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d) {          \
		bool guarded __attribute__((cleanup(reblock))) = ndpy_into_python();                  \
		return ((result(*)(uintptr_t, uintptr_t, uintptr_t, uintptr_t))signalled.name)(a, b, c, d); \
	}
FUNCTIONS(X)
#undef X

// What api points to, with which collection stays off, if those of CODE in api let it be as the program has it.
static __typeof__(api) held;

#define X(result, name, arguments)                                                                    \
	static result name##_collecting(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d) {         \
		NDPY_AS_PROGRAM;                                                                      \
		return ((result(*)(uintptr_t, uintptr_t, uintptr_t, uintptr_t))held.name)(a, b, c, d); \
	}
CODE(X)
#undef X

static void guard_go(void) {
	signalled = api;
#define X(result, name, arguments) api.name = (result(*) arguments)(void *)name##_signalled;
	FUNCTIONS(X)
#undef X
	ndpy_guard_go();
}

#define OBJECT(o) ((PyObject *)(o))

int ndpy_open(const char **missing) {
	*missing = NULL;
	// Of two libraries that both have what follows, only CPython's own exports this name.
	if (!dlsym(RTLD_DEFAULT, "PyGILState_Ensure") || !dlsym(RTLD_DEFAULT, "Py_GetVersion")) return NDPY_NO_PYTHON;
#define X(result, name, arguments)                                                         \
	*(void **)&api.name = dlsym(RTLD_DEFAULT, #name);                                      \
	if (!api.name && !*missing) *missing = #name;
	FUNCTIONS(X)
#undef X
#define X(name)                                       \
	api.name = dlsym(RTLD_DEFAULT, #name);            \
	if (!api.name && !*missing) *missing = #name;
	OBJECTS(X)
#undef X
	ndpy_open_plain(missing);
	if (*missing) return NDPY_TOO_OLD;
	ndpy_open_classes();
	ndpy_open_checks();
	if (!api.Py_IsInitialized()) return NDPY_NOT_RUNNING;
	const char *version = api.Py_GetVersion();
	if (strncmp(version, "3.8.", 4) == 0 || strncmp(version, "3.9.", 4) == 0) guard_go();
	else ndpy_open_getters();
	held = api;
	return 0;
}

void ndpy_hold_collection(void) {
	if (!ndpy_collect_open()) return;
#define X(result, name, arguments) api.name = (result(*) arguments)(void *)name##_collecting;
	CODE(X)
#undef X
}

const char *ndpy_version(void) { return api.Py_GetVersion(); }

void ndpy_enter(uintptr_t state) {
	// The thread's Python state is made once and kept: making one costs more than a whole export.
	if (state)
		api.PyEval_RestoreThread((void *)state);
	else
		api.PyGILState_Ensure();
	ndpy_collect_hold();
}

uintptr_t ndpy_leave(void) {
	ndpy_collect_restore();
	return (uintptr_t)api.PyEval_SaveThread();
}

void ndpy_end(uintptr_t state) {
	enum { UNLOCKED = 1 }; // PyGILState_UNLOCKED, which Ensure gave: nothing is left of the state then
	api.PyEval_RestoreThread((void *)state);
	api.PyGILState_Release(UNLOCKED);
}

unsigned long ndpy_thread(void) { return api.PyThread_get_thread_ident(); }

void ndpy_interrupt(unsigned long thread, ndpy exception) {
	api.PyThreadState_SetAsyncExc(thread, exception ? OBJECT(exception) : *(PyObject **)api.PyExc_SystemExit);
}

void ndpy_calm(unsigned long thread) { api.PyThreadState_SetAsyncExc(thread, NULL); }

void ndpy_incref(ndpy o) { api.Py_IncRef(OBJECT(o)); }

void ndpy_decref(ndpy o) { // which passes over NULL
	NDPY_AS_PROGRAM_IF(ndpy_last(o));
	api.Py_DecRef(OBJECT(o));
}

void ndpy_incref_all(const ndpy *o, size_t n) {
	for (size_t i = 0; i < n; i++) api.Py_IncRef(OBJECT(o[i])); // likewise
}

void ndpy_decref_all(const ndpy *o, size_t n) {
	for (size_t i = 0; i < n; i++) ndpy_decref(o[i]);
}

// References for the main thread to give back. The GIL guards them.
static struct later {
	PyObject *o;
	struct later *next;
} *later;
static int asked; // the main thread was asked to

static int decref_later(void *unused) {
	(void)unused;
	asked = 0;
	while (later) { // giving one back may run code that adds to them
		struct later *first = later;
		later = first->next;
		PyObject *o = first->o;
		free(first);
		api.Py_DecRef(o);
	}
	return 0;
}

void ndpy_decref_on_main(ndpy o) {
	struct later *l = malloc(sizeof *l);
	if (!l) return; // then it stays
	*l = (struct later){OBJECT(o), later};
	later = l;
	// Python's own list of such calls is short. If it is full, the next reference asks again.
	if (!asked) asked = api.Py_AddPendingCall(decref_later, NULL) == 0;
}

ndpy ndpy_none(void) { return (ndpy)api._Py_NoneStruct; }
ndpy ndpy_true(void) { return (ndpy)api._Py_TrueStruct; }
ndpy ndpy_false(void) { return (ndpy)api._Py_FalseStruct; }
ndpy ndpy_capsule_type(void) { return (ndpy)api.PyCapsule_Type; }
ndpy ndpy_attribute_error(void) { return *(ndpy *)api.PyExc_AttributeError; }

ndpy ndpy_import(const char *name, size_t len) {
	PyObject *s = api.PyUnicode_FromStringAndSize(name, (Py_ssize_t)len);
	if (!s) return 0;
	PyObject *m = api.PyImport_Import(s);
	api.Py_DecRef(s);
	return (ndpy)m;
}

ndpy ndpy_attr(ndpy o, const char *name, size_t len) {
	PyObject *s = api.PyUnicode_FromStringAndSize(name, (Py_ssize_t)len);
	if (!s) return 0;
	ndpy r = ndpy_get(o, (ndpy)s);
	api.Py_DecRef(s);
	return r;
}

ndpy ndpy_get(ndpy o, ndpy name) {
	NDPY_AS_PROGRAM_IF(ndpy_computed(o, name));
	return (ndpy)api.PyObject_GetAttr(OBJECT(o), OBJECT(name));
}

ndpy ndpy_get_by(ndpy descriptor, ndpy o) {
	static ndpy name; // the GIL is held
	if (!name && !(name = ndpy_new_interned("__get__", 7))) return 0;
	NDPY_AS_PROGRAM_IF(!ndpy_in_c(descriptor));
	return (ndpy)held.PyObject_CallMethodObjArgs(OBJECT(descriptor), OBJECT(name), OBJECT(o), (PyObject *)NULL);
}

ndpy ndpy_ask(ndpy o, ndpy name) {
	return (ndpy)api.PyObject_CallMethodObjArgs(OBJECT(o), OBJECT(name), (PyObject *)NULL);
}

int ndpy_ask_all(ndpy o, const ndpy *names, size_t n, uint64_t *to) {
	NDPY_AS_PROGRAM;
	for (size_t i = 0; i < n; i++) {
		ndpy v = ndpy_ask(o, names[i]);
		if (!v) return 0;
		to[i] = ndpy_uint64(v);
		ndpy_decref(v);
		if (to[i] == (uint64_t)-1 && ndpy_failed()) return 0;
	}
	return 1;
}

ndpy ndpy_call_c(ndpy f, ndpy o, ndpy other) {
	return (ndpy)api.PyObject_CallFunctionObjArgs(OBJECT(f), OBJECT(o), OBJECT(other), (PyObject *)NULL);
}

static ndpy borrowed(PyObject *o) {
	if (o) api.Py_IncRef(o);
	else if (api.PyErr_Occurred()) api.PyErr_Clear(); // a key that has no hash
	return (ndpy)o;
}

ndpy ndpy_modules(void) { return (ndpy)api.PyImport_GetModuleDict(); }

ndpy ndpy_module_dict(ndpy module) {
	PyObject *dict = api.PyModule_GetDict(OBJECT(module));
	if (!dict) api.PyErr_Clear(); // it is no module
	return (ndpy)dict;
}

ndpy ndpy_dict_get(ndpy dict, ndpy key) { return borrowed(api.PyDict_GetItemWithError(OBJECT(dict), OBJECT(key))); }

int ndpy_dict_next(ndpy dict, ptrdiff_t *position, ndpy *key, ndpy *value) {
	PyObject *k, *v;
	if (!api.PyDict_Next(OBJECT(dict), position, &k, &v)) return 0;
	*key = borrowed(k), *value = borrowed(v);
	return 1;
}

ndpy ndpy_dict_by_object(ndpy dict, ndpy key) {
	Py_ssize_t at = 0;
	PyObject *k, *v;
	while (api.PyDict_Next(OBJECT(dict), &at, &k, &v))
		if ((ndpy)k == key) return borrowed(v);
	return 0;
}

ndpy ndpy_sequence_get(ndpy o, ptrdiff_t index) {
	enum { LIST = 1 << 25, TUPLE = 1 << 26 }; // Py_TPFLAGS_LIST_SUBCLASS, Py_TPFLAGS_TUPLE_SUBCLASS
	int list = ndpy_is(o, LIST), tuple = ndpy_is(o, TUPLE);
	Py_ssize_t n = list ? api.PyList_Size(OBJECT(o)) : tuple ? api.PyTuple_Size(OBJECT(o)) : api.PyObject_Size(OBJECT(o));
	if (index < 0) index += n;
	if (index < 0 || index >= n) return 0;
	if (!list && !tuple) return (ndpy)api.PySequence_GetItem(OBJECT(o), index);
	return borrowed(list ? api.PyList_GetItem(OBJECT(o), index) : api.PyTuple_GetItem(OBJECT(o), index));
}

ndpy ndpy_weak(ndpy o) {
	PyObject *ref = api.PyWeakref_NewRef(OBJECT(o), NULL);
	if (!ref) api.PyErr_Clear(); // it can have none
	return (ndpy)ref;
}

int ndpy_gone(ndpy weak, ndpy o) { return weak && (ndpy)api.PyWeakref_GetObject(OBJECT(weak)) != o; }

ndpy ndpy_own_dict(ndpy o) {
	if (ndpy_class(o) != (ndpy)api.PyFunction_Type) return (ndpy)api.PyObject_GenericGetDict(OBJECT(o), NULL);
	PyObject **has = api._PyObject_GetDictPtr(OBJECT(o)); // the other would make one for each function
	return has && *has ? borrowed(*has) : 0;
}
ndpy ndpy_get_generic(ndpy o, ndpy name) { return (ndpy)api.PyObject_GenericGetAttr(OBJECT(o), OBJECT(name)); }

ndpy ndpy_item(ndpy o, ndpy key) { return (ndpy)api.PyObject_GetItem(OBJECT(o), OBJECT(key)); }
ndpy ndpy_call(ndpy f, ndpy args, ndpy kw) {
	static ndpy none; // the GIL is held
	if (!args && !none && !(none = ndpy_new_tuple(NULL, 0))) return 0;
	return (ndpy)api.PyObject_Call(OBJECT(f), OBJECT(args ? args : none), OBJECT(kw));
}
ndpy ndpy_type(ndpy o) { return (ndpy)api.PyObject_Type(OBJECT(o)); }
ndpy ndpy_str(ndpy o) { return (ndpy)api.PyObject_Str(OBJECT(o)); }
ndpy ndpy_repr(ndpy o) { return (ndpy)api.PyObject_Repr(OBJECT(o)); }
ptrdiff_t ndpy_len(ndpy o) { return api.PyObject_Size(OBJECT(o)); }
int ndpy_truth(ndpy o) { return api.PyObject_IsTrue(OBJECT(o)); }
int ndpy_subtype(ndpy type, ndpy base) { return api.PyType_IsSubtype(OBJECT(type), OBJECT(base)); }
int ndpy_callable(ndpy o) { return api.PyCallable_Check(OBJECT(o)); }
unsigned long ndpy_type_flags(ndpy type) { return api.PyType_GetFlags(OBJECT(type)); }

int ndpy_is(ndpy o, unsigned long flag) { return (ndpy_type_flags(ndpy_class(o)) & flag) != 0; }

ndpy ndpy_index(ndpy o) { return (ndpy)api.PyNumber_Index(OBJECT(o)); }
ndpy ndpy_new_int(long long v) { return (ndpy)api.PyLong_FromLongLong(v); }
ndpy ndpy_new_uint(unsigned long long v) { return (ndpy)api.PyLong_FromUnsignedLongLong(v); }
long long ndpy_int64(ndpy o) { return api.PyLong_AsLongLong(OBJECT(o)); }
unsigned long long ndpy_uint64(ndpy o) {
	ndpy i = ndpy_index(o);
	unsigned long long v = i ? api.PyLong_AsUnsignedLongLong(OBJECT(i)) : (unsigned long long)-1;
	ndpy_decref(i);
	return v;
}
double ndpy_float64(ndpy o) { return api.PyFloat_AsDouble(OBJECT(o)); }

ndpy ndpy_new_str(const char *text, size_t len) {
	return (ndpy)api.PyUnicode_FromStringAndSize(text, (Py_ssize_t)len);
}

ndpy ndpy_new_interned(const char *text, size_t len) {
	PyObject *s = api.PyUnicode_FromStringAndSize(text, (Py_ssize_t)len);
	if (s) api.PyUnicode_InternInPlace(&s);
	return (ndpy)s;
}

const char *ndpy_utf8(ndpy str, ptrdiff_t *len) { return api.PyUnicode_AsUTF8AndSize(OBJECT(str), len); }

ndpy ndpy_encode(ndpy str) {
	return (ndpy)api.PyUnicode_AsEncodedString(OBJECT(str), "utf-8", "backslashreplace");
}

int ndpy_bytes(ndpy bytes, char **data, ptrdiff_t *len) {
	return api.PyBytes_AsStringAndSize(OBJECT(bytes), data, len);
}

ndpy ndpy_new_tuple(const ndpy *items, ptrdiff_t n) {
	PyObject *t = api.PyTuple_New(n);
	for (ptrdiff_t i = 0; t && i < n; i++) {
		api.Py_IncRef(OBJECT(items[i]));
		api.PyTuple_SetItem(t, i, OBJECT(items[i])); // takes that reference, and cannot fail here
	}
	return (ndpy)t;
}

ptrdiff_t ndpy_tuple_len(ndpy tuple) { return api.PyTuple_Size(OBJECT(tuple)); }
ndpy ndpy_tuple_item(ndpy tuple, ptrdiff_t i) { return (ndpy)api.PyTuple_GetItem(OBJECT(tuple), i); }
ndpy ndpy_list_tuple(ndpy list) { return (ndpy)api.PyList_AsTuple(OBJECT(list)); }
ndpy ndpy_new_dict(void) { return (ndpy)api.PyDict_New(); }

int ndpy_dict_set(ndpy dict, ndpy key, ndpy value) {
	return api.PyDict_SetItem(OBJECT(dict), OBJECT(key), OBJECT(value));
}

ndpy ndpy_dict_items(ndpy dict) {
	PyObject *list = api.PyDict_Items(OBJECT(dict));
	if (!list) return 0;
	PyObject *tuple = api.PyList_AsTuple(list);
	api.Py_DecRef(list);
	return (ndpy)tuple;
}

int ndpy_failed(void) { return api.PyErr_Occurred() != NULL; }
int ndpy_failed_with(ndpy cls) { return api.PyErr_ExceptionMatches(OBJECT(cls)); }
void ndpy_clear(void) { api.PyErr_Clear(); }

void ndpy_fetch(ndpy *type, ndpy *value, ndpy *traceback) {
	PyObject *t = NULL, *v = NULL, *tb = NULL;
	api.PyErr_Fetch(&t, &v, &tb);
	api.PyErr_NormalizeException(&t, &v, &tb);
	*type = (ndpy)t, *value = (ndpy)v, *traceback = (ndpy)tb;
}

int ndpy_failed_to_end(void) {
	return api.PyErr_ExceptionMatches(*(PyObject **)api.PyExc_KeyboardInterrupt) ||
	       api.PyErr_ExceptionMatches(*(PyObject **)api.PyExc_SystemExit);
}

void ndpy_throw(ndpy type, ndpy value, ndpy traceback) { api.PyErr_Restore(OBJECT(type), OBJECT(value), OBJECT(traceback)); }

void ndpy_raise(ndpy type, const char *text, size_t len) {
	PyObject *s = api.PyUnicode_FromStringAndSize(text, (Py_ssize_t)len);
	if (!s) return; // the indicator is set all the same
	api.PyErr_SetObject(OBJECT(type), s);
	api.Py_DecRef(s);
}

int ndpy_get_buffer(ndpy o, ndpy_buffer *buffer, int flags) {
	memset(buffer, 0, sizeof *buffer);
	return api.PyObject_GetBuffer(OBJECT(o), buffer, flags);
}

void ndpy_release_buffer(ndpy_buffer *buffer) { api.PyBuffer_Release(buffer); }

void *ndpy_capsule(ndpy o, const char *name) {
	return api.PyCapsule_IsValid(OBJECT(o), name) ? api.PyCapsule_GetPointer(OBJECT(o), name) : NULL;
}

const char *ndpy_capsule_name(ndpy o) { return api.PyCapsule_GetName(OBJECT(o)); }
int ndpy_capsule_rename(ndpy o, const char *name) { return api.PyCapsule_SetName(OBJECT(o), name); }

void ndpy_call_deleter(uintptr_t function, uintptr_t argument) {
	NDPY_AS_PROGRAM;
	bool guarded __attribute__((cleanup(reblock))) = ndpy_into_python();
	((void (*)(void *))function)((void *)argument);
}

int ndpy_call_exporter(uintptr_t function, ndpy o, uintptr_t *made) {
	NDPY_AS_PROGRAM;
	bool guarded __attribute__((cleanup(reblock))) = ndpy_into_python();
	void *p = NULL;
	int r = ((int (*)(PyObject *, void **))function)(OBJECT(o), &p);
	*made = (uintptr_t)p;
	return r;
}
