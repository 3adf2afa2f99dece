// The Python C API as this package uses it: functions of the interpreter that the library was loaded
// into, found by name. Nothing here comes from Python.h, so one library serves every version.
//
// An ndpy is a PyObject *. Functions that return one give a new reference, or 0 with Python's error
// indicator set; functions that return an int give -1 with the indicator set, unless said otherwise.
// All but ndpy_open and ndpy_enter need the GIL.
#ifndef NDBRIDGE_CAPI_H
#define NDBRIDGE_CAPI_H

#include <stddef.h>
#include <stdint.h>

typedef uintptr_t ndpy;

// Py_buffer, whose layout has been the same since Python 3.0 and belongs to the stable ABI.
typedef struct {
	void *buf;
	ndpy obj;
	ptrdiff_t len, itemsize;
	int readonly, ndim;
	char *format;
	ptrdiff_t *shape, *strides, *suboffsets;
	void *internal;
} ndpy_buffer;

enum { NDPY_NO_PYTHON = 1, NDPY_NOT_RUNNING, NDPY_TOO_OLD, NDPY_NO_MEMORY };

// Finds the C API. Gives 0, or one of the constants above; *missing then names the first function
// that was not found, if any.
int ndpy_open(const char **missing);
const char *ndpy_version(void);

// From now on Python's garbage collector runs in no thread that has the GIL by ndpy_enter, but in code of the program's
// (collect.h). Objects must begin with the count of references and the type, a word each.
void ndpy_hold_collection(void);

// Takes the GIL on this thread, and gives it back. What ndpy_leave gives is the state of the thread's next
// ndpy_enter; the first one's is 0.
void ndpy_enter(uintptr_t state);
uintptr_t ndpy_leave(void);

// Has Python forget this thread, whose state it is, before the thread ends.
void ndpy_end(uintptr_t state);

// Names this thread, makes one raise an exception when it next runs Python code (SystemExit, if exception is 0), and takes
// back what was not raised yet.
unsigned long ndpy_thread(void); // needs no GIL
// Takes this thread out of threading's list, into which threading.current_thread() has put it if Python code that ran
// on it asked.
void ndpy_forget_thread(void);
void ndpy_interrupt(unsigned long thread, ndpy exception);
void ndpy_calm(unsigned long thread);

void ndpy_incref(ndpy o);
void ndpy_decref(ndpy o);
void ndpy_incref_all(const ndpy *o, size_t n); // those that are not 0
void ndpy_decref_all(const ndpy *o, size_t n);
void ndpy_decref_on_main(ndpy o); // when Python's main thread next runs Python code

ndpy ndpy_none(void); // the constants are borrowed
ndpy ndpy_true(void);
ndpy ndpy_false(void);
ndpy ndpy_capsule_type(void);
ndpy ndpy_attribute_error(void);

ndpy ndpy_import(const char *name, size_t len);

ndpy ndpy_attr(ndpy o, const char *name, size_t len);
ndpy ndpy_get(ndpy o, ndpy name);
ndpy ndpy_get_of(ndpy o, ndpy class, ndpy name); // likewise, of an object whose class is known: faster if a getter in C gives it
ndpy ndpy_get_by(ndpy descriptor, ndpy o); // descriptor.__get__(o)
ndpy ndpy_ask(ndpy o, ndpy name);  // o.name()
int ndpy_ask_all(ndpy o, const ndpy *names, size_t n, uint64_t *to); // the same of several names, each an int that fits; 0: with an error
ndpy ndpy_call_c(ndpy f, ndpy o, ndpy other); // f(o) if other is 0, else f(o, other), for a function in C that runs no code of the program's and keeps the GIL

// What follows runs no code of the program's, and gives 0 without an error where there is nothing, unless said
// otherwise.
ndpy ndpy_modules(void);                               // sys.modules: a dict; borrowed
ndpy ndpy_loaded(const char *name, size_t len);        // a module that is imported to its end
ndpy ndpy_main(void);                                  // the module __main__
ndpy ndpy_globals(void);                               // of __main__: a dict; borrowed
ndpy ndpy_module_dict(ndpy module);                    // borrowed
ndpy ndpy_weak(ndpy o);                                // a weak reference to it, or 0 if it can have none
int ndpy_gone(ndpy weak, ndpy o);                      // whether o has ended since; no if weak is 0
ndpy ndpy_dict_get(ndpy dict, ndpy key);               // also of a class made from dict, as dict itself does it
ndpy ndpy_dict_by_object(ndpy dict, ndpy key); // what has key itself as its key, and no other that is equal: a new reference, or 0
int ndpy_dict_next(ndpy dict, ptrdiff_t *position, ndpy *key, ndpy *value); // PyDict_Next with new references
ndpy ndpy_dict_behind(ndpy o);                         // o, or what a mapping proxy has, if that is exactly a dict; borrowed
ndpy ndpy_sequence_get(ndpy list_tuple_or_deque, ptrdiff_t index);
ndpy ndpy_own_dict(ndpy o);                            // o.__dict__, which a function may not have yet; may fail with an error
ndpy ndpy_get_generic(ndpy o, ndpy name);              // as object.__getattribute__; may fail with an error
void ndpy_open_classes(void); // before the calls that follow; without Python's functions for them, they know nothing
void ndpy_open_getters(void); // after it, from Python 3.10 on: before that, not each class tells of its slots
ndpy ndpy_class_get(ndpy class, ndpy name);            // what class, or one it is made from, defines; borrowed
ndpy ndpy_class(ndpy o);                               // borrowed
int ndpy_class_has(ndpy class, ndpy name);             // whether the class defines the attribute, or may
int ndpy_object_has(ndpy o, ndpy name);                // the same of the class of o
int ndpy_class_generic(ndpy class);                    // whether the class gets attributes as object does, at first at least
ndpy ndpy_class_attr(ndpy class, const char *name, size_t len); // class.name, as type itself says it; may fail with an error
ndpy ndpy_class_repr(ndpy class);                        // type.__repr__(class); may fail with an error
typedef struct {
	const char *text;
	ptrdiff_t len;
} ndpy_text;
ndpy_text ndpy_class_text(ndpy class); // the text of that, until the next call; NULL if it is not to be had in UTF-8
ndpy_text ndpy_type_text(ndpy o);      // the same of the class of o

ndpy ndpy_item(ndpy o, ndpy key);
ndpy ndpy_call(ndpy f, ndpy args, ndpy kw); // kw may be 0
// Likewise. A child that f has forked ends when it returns from f. On another thread than the main one, these signals are
// blocked meanwhile, a bit for each from 1 on, and no others; NULL: those that are.
ndpy ndpy_call_once(ndpy f, ndpy args, ndpy kw, const uint64_t *blocked);
ndpy ndpy_type(ndpy o);
ndpy ndpy_str(ndpy o);
ndpy ndpy_repr(ndpy o);
ptrdiff_t ndpy_len(ndpy o);
int ndpy_truth(ndpy o);
int ndpy_subtype(ndpy type, ndpy base);
int ndpy_callable(ndpy o); // never fails
unsigned long ndpy_type_flags(ndpy type);
int ndpy_is(ndpy o, unsigned long flag); // whether the type of o has the flag

ndpy ndpy_index(ndpy o); // what operator.index gives
ndpy ndpy_new_int(long long v);
ndpy ndpy_new_uint(unsigned long long v);
long long ndpy_int64(ndpy o);
unsigned long long ndpy_uint64(ndpy o);
double ndpy_float64(ndpy o);

ndpy ndpy_new_str(const char *text, size_t len);
ndpy ndpy_new_interned(const char *text, size_t len);
const char *ndpy_utf8(ndpy str, ptrdiff_t *len); // lives as long as str
ndpy ndpy_encode(ndpy str); // bytes in UTF-8; what UTF-8 cannot say is escaped with a backslash
int ndpy_bytes(ndpy bytes, char **data, ptrdiff_t *len);

ndpy ndpy_new_tuple(const ndpy *items, ptrdiff_t n); // takes its own references
ptrdiff_t ndpy_tuple_len(ndpy tuple);
ndpy ndpy_tuple_item(ndpy tuple, ptrdiff_t i); // borrowed
ndpy ndpy_list_tuple(ndpy list);
ndpy ndpy_new_dict(void);
int ndpy_dict_set(ndpy dict, ndpy key, ndpy value);
ndpy ndpy_dict_items(ndpy dict); // a tuple of pairs, in order

int ndpy_failed(void);                                    // is the error indicator set?
int ndpy_failed_with(ndpy cls);                           // is it an instance of cls?
void ndpy_clear(void);
void ndpy_fetch(ndpy *type, ndpy *value, ndpy *traceback); // clears the indicator; gives new references
void ndpy_throw(ndpy type, ndpy value, ndpy traceback);   // sets the indicator, and takes the references over
int ndpy_failed_to_end(void);                             // is it a KeyboardInterrupt or a SystemExit?
void ndpy_raise(ndpy type, const char *text, size_t len);

int ndpy_get_buffer(ndpy o, ndpy_buffer *buffer, int flags);
void ndpy_release_buffer(ndpy_buffer *buffer);

void *ndpy_capsule(ndpy o, const char *name); // NULL without an error if o is not such a capsule
const char *ndpy_capsule_name(ndpy o);        // NULL without an error if it has none
int ndpy_capsule_rename(ndpy o, const char *name);

void ndpy_call_deleter(uintptr_t function, uintptr_t argument);
int ndpy_call_exporter(uintptr_t function, ndpy o, uintptr_t *made);

#endif
