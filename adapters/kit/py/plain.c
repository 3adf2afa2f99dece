#define _GNU_SOURCE
#include "plain.h"
#include "signals.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// All are in the stable ABI, and run no code of the program's as they are used here.
#define FUNCTIONS(X)                                                    \
	X(ndpy, PyLong_FromLongLong, (long long))                       \
	X(ndpy, PyLong_FromString, (const char *, char **, int))        \
	X(long long, PyLong_AsLongLongAndOverflow, (ndpy, int *))       \
	X(ndpy, PyNumber_Invert, (ndpy))                                \
	X(ndpy, PyNumber_ToBase, (ndpy, int))                           \
	X(ndpy, PyFloat_FromDouble, (double))                           \
	X(double, PyFloat_AsDouble, (ndpy))                             \
	X(ndpy, PyComplex_FromDoubles, (double, double))                \
	X(double, PyComplex_RealAsDouble, (ndpy))                       \
	X(double, PyComplex_ImagAsDouble, (ndpy))                       \
	X(ndpy, PyUnicode_FromStringAndSize, (const char *, ptrdiff_t)) \
	X(const char *, PyUnicode_AsUTF8AndSize, (ndpy, ptrdiff_t *))   \
	X(ndpy, PyBytes_FromStringAndSize, (const char *, ptrdiff_t))   \
	X(int, PyBytes_AsStringAndSize, (ndpy, char **, ptrdiff_t *))   \
	X(char *, PyByteArray_AsString, (ndpy))                         \
	X(ptrdiff_t, PyByteArray_Size, (ndpy))                          \
	X(ndpy, PyList_New, (ptrdiff_t))                                \
	X(ptrdiff_t, PyList_Size, (ndpy))                               \
	X(ndpy, PyList_GetItem, (ndpy, ptrdiff_t))                      \
	X(int, PyList_SetItem, (ndpy, ptrdiff_t, ndpy))                 \
	X(ndpy, PyTuple_New, (ptrdiff_t))                               \
	X(ptrdiff_t, PyTuple_Size, (ndpy))                              \
	X(ndpy, PyTuple_GetItem, (ndpy, ptrdiff_t))                     \
	X(int, PyTuple_SetItem, (ndpy, ptrdiff_t, ndpy))                \
	X(ndpy, PySet_New, (ndpy))                                      \
	X(ndpy, PyFrozenSet_New, (ndpy))                                \
	X(int, PySet_Add, (ndpy, ndpy))                                 \
	X(ptrdiff_t, PySet_Size, (ndpy))                                \
	X(ndpy, PyDict_New, (void))                                     \
	X(int, PyDict_SetItem, (ndpy, ndpy, ndpy))                      \
	X(ptrdiff_t, PyDict_Size, (ndpy))                               \
	X(int, PyDict_Next, (ndpy, ptrdiff_t *, ndpy *, ndpy *))        \
	X(ndpy, PySequence_Tuple, (ndpy))                               \
	X(int, PyType_IsSubtype, (ndpy, ndpy))                          \
	X(unsigned long, PyType_GetFlags, (ndpy))                       \
	X(void, Py_IncRef, (ndpy))

#define TYPES(X)          \
	X(PyLong_Type)      \
	X(PyFloat_Type)     \
	X(PyComplex_Type)   \
	X(PyUnicode_Type)   \
	X(PyByteArray_Type) \
	X(PySet_Type)       \
	X(PyFrozenSet_Type) \
	X(PyODict_Type)

// Filled once by ndpy_open_plain, and never changed afterwards.
static struct {
#define X(result, name, arguments) result(*name) arguments;
	FUNCTIONS(X)
#undef X
#define X(name) ndpy name;
	TYPES(X)
#undef X
} api;

void ndpy_open_plain(const char **missing) {
#define X(result, name, arguments)                \
	*(void **)&api.name = dlsym(RTLD_DEFAULT, #name); \
	if (!api.name && !*missing) *missing = #name;
	FUNCTIONS(X)
#undef X
#define X(name)                                     \
	api.name = (ndpy)dlsym(RTLD_DEFAULT, #name); \
	if (!api.name && !*missing) *missing = #name;
	TYPES(X)
#undef X
}

static void reblock(bool *guarded) { ndpy_out_of_python(*guarded); }

#define PYTHON bool guarded __attribute__((cleanup(reblock), unused)) = ndpy_into_python()

static void pop(ndpy_plain *p) {
	ndpy_frame f = p->frames[--p->depth];
	ndpy_decref(f.o); // which passes over 0, as all do
	ndpy_decref(f.names);
	ndpy_decref(f.key);
	ndpy_decref(f.value);
}

static void let_go(ndpy *o) {
	ndpy old = *o;
	*o = 0;
	ndpy_decref(old);
}

void ndpy_clear_plain(ndpy_plain *p) {
	PYTHON;
	while (p->depth > 0) pop(p);
	let_go(&p->given), let_go(&p->held[0]), let_go(&p->held[1]), let_go(&p->result);
	p->status = NDPY_FINE, p->making = 0;
}

// Takes over o and names. Gives NULL if there is no room.
static ndpy_frame *push(ndpy_plain *p, int kind, ndpy o, ndpy names, int64_t n) {
	if (p->depth == NDPY_MAX_DEPTH) {
		p->status = NDPY_DEEP;
		ndpy_decref(o);
		ndpy_decref(names);
		return NULL;
	}
	ndpy_frame *f = &p->frames[p->depth++];
	*f = (ndpy_frame){.kind = kind, .o = o, .names = names, .n = n};
	return f;
}

static ndpy again(ndpy o) {
	api.Py_IncRef(o);
	return o;
}

// ------------------------------------------------------------------------------------------- read

// The pair that a dict or record has next: borrowed. Gives false if the dict has changed.
static bool pair(ndpy_frame *f, ndpy *key, ndpy *value) {
	ptrdiff_t i = (ptrdiff_t)(f->i / 2);
	if (f->kind == NDPY_RECORD) {
		*key = api.PyTuple_GetItem(f->names, i), *value = api.PyTuple_GetItem(f->o, i);
		return true;
	}
	if (f->pairs) {
		ndpy both = api.PyTuple_GetItem(f->o, i);
		*key = api.PyTuple_GetItem(both, 0), *value = api.PyTuple_GetItem(both, 1);
		return true;
	}
	return api.PyDict_Size(f->o) == f->n / 2 && api.PyDict_Next(f->o, &f->position, key, value);
}

// The item that the innermost container has next: borrowed; 0, with status, if it has changed.
static ndpy item(ndpy_plain *p, ndpy_frame *f) {
	ptrdiff_t i = (ptrdiff_t)f->i++;
	switch (f->kind) {
	case NDPY_LIST:
		if (api.PyList_Size(f->o) == f->n) return api.PyList_GetItem(f->o, i);
		break;
	case NDPY_DICT:
	case NDPY_RECORD:
		if (i % 2) return f->value;
		f->i = i;
		ndpy key, value, old[2] = {f->key, f->value};
		if (!pair(f, &key, &value)) break;
		f->key = again(key), f->value = again(value), f->i = i + 1;
		ndpy_decref(old[0]);
		ndpy_decref(old[1]);
		return f->key;
	default:
		return api.PyTuple_GetItem(f->o, i);
	}
	p->status = NDPY_CHANGED;
	return 0;
}

// Begins a container, and takes over o, which is 0 if that failed.
static bool begin(ndpy_plain *p, ndpy_piece *piece, int kind, ndpy o, ndpy names, int64_t n) {
	piece->kind = kind, piece->n = n;
	if (!o) p->status = NDPY_FAILED;
	return o && push(p, kind, o, names, n);
}

static bool read_set(ndpy_plain *p, ndpy_piece *piece, int kind, ndpy o, bool exact) {
	// A class made from set may iterate in its own way, which the constructor passes over.
	ndpy copy = exact ? again(o) : api.PyFrozenSet_New(o);
	ndpy items = copy ? api.PySequence_Tuple(copy) : 0;
	ndpy_decref(copy);
	return begin(p, piece, kind, items, 0, items ? api.PyTuple_Size(items) : 0);
}

static bool read_dict(ndpy_plain *p, ndpy_piece *piece, ndpy o, ndpy class) {
	if (!api.PyType_IsSubtype(class, api.PyODict_Type))
		return begin(p, piece, NDPY_DICT, again(o), 0, 2 * api.PyDict_Size(o));
	// An OrderedDict has an order of its own, which the dict that it is made from does not know.
	static ndpy items; // the GIL is held
	if (!items) items = ndpy_attr(api.PyODict_Type, "items", 5);
	ndpy view = items ? ndpy_call_c(items, o, 0) : 0;
	ndpy pairs = view ? api.PySequence_Tuple(view) : 0;
	ndpy_decref(view);
	if (!begin(p, piece, NDPY_DICT, pairs, 0, pairs ? 2 * api.PyTuple_Size(pairs) : 0)) return false;
	p->frames[p->depth - 1].pairs = 1;
	return true;
}

static bool read_int(ndpy_plain *p, ndpy_piece *piece, ndpy o) {
	int overflow = 0;
	piece->kind = NDPY_INT, piece->n = api.PyLong_AsLongLongAndOverflow(o, &overflow);
	if (!overflow) return true;
	ptrdiff_t n = 0;
	ndpy text = p->held[1] = api.PyNumber_ToBase(o, 16);
	piece->kind = NDPY_BIG, piece->text = text ? (uintptr_t)api.PyUnicode_AsUTF8AndSize(text, &n) : 0, piece->n = n;
	if (!piece->text) p->status = NDPY_FAILED;
	return piece->text != 0;
}

static bool read_text(ndpy_plain *p, ndpy_piece *piece, ndpy o) {
	ptrdiff_t n = 0;
	piece->kind = NDPY_STR, piece->text = (uintptr_t)api.PyUnicode_AsUTF8AndSize(o, &n), piece->n = n;
	if (piece->text) return true;
	p->status = NDPY_NO_TEXT; // it has surrogates, or is too long for the memory
	ndpy_clear();
	return false;
}

static bool read_bytes(ndpy_plain *p, ndpy_piece *piece, ndpy o) {
	char *text = NULL;
	ptrdiff_t n = 0;
	piece->kind = NDPY_BYTES;
	if (api.PyBytes_AsStringAndSize(o, &text, &n) < 0) p->status = NDPY_FAILED;
	piece->text = (uintptr_t)text, piece->n = n;
	return text != NULL;
}

static bool read_object(ndpy_piece *piece, ndpy o, ndpy class) {
	piece->kind = NDPY_OBJECT, piece->object = o, piece->n = (int64_t)class;
	return true;
}

// What no flag of its type tells of.
static bool read_other(ndpy_plain *p, ndpy_piece *piece, ndpy o, ndpy class) {
	if (api.PyType_IsSubtype(class, api.PyFloat_Type)) {
		piece->kind = NDPY_FLOAT, piece->re = api.PyFloat_AsDouble(o);
	} else if (api.PyType_IsSubtype(class, api.PyComplex_Type)) {
		piece->kind = NDPY_COMPLEX;
		piece->re = api.PyComplex_RealAsDouble(o), piece->im = api.PyComplex_ImagAsDouble(o);
	} else if (api.PyType_IsSubtype(class, api.PyByteArray_Type)) {
		piece->kind = NDPY_BYTES, piece->text = (uintptr_t)api.PyByteArray_AsString(o), piece->n = api.PyByteArray_Size(o);
	} else if (api.PyType_IsSubtype(class, api.PySet_Type)) {
		return read_set(p, piece, NDPY_SET, o, class == api.PySet_Type);
	} else if (api.PyType_IsSubtype(class, api.PyFrozenSet_Type)) {
		return read_set(p, piece, NDPY_FROZENSET, o, class == api.PyFrozenSet_Type);
	} else {
		return read_object(piece, o, class);
	}
	return true;
}

// Py_TPFLAGS_LONG_SUBCLASS and so on.
enum { LONG = 1 << 24, LIST = 1 << 25, TUPLE = 1 << 26, BYTES = 1 << 27, UNICODE = 1 << 28, DICT = 1 << 29 };

static bool read_one(ndpy_plain *p, ndpy_piece *piece, ndpy o) {
	ndpy class = ndpy_class(o);
	if (class == api.PyUnicode_Type) return read_text(p, piece, o);
	if (class == api.PyFloat_Type) {
		piece->kind = NDPY_FLOAT, piece->re = api.PyFloat_AsDouble(o);
		return true;
	}
	if (o == ndpy_none()) return piece->kind = NDPY_NONE, true;
	if (o == ndpy_false()) return piece->kind = NDPY_FALSE, true;
	if (o == ndpy_true()) return piece->kind = NDPY_TRUE, true;
	unsigned long flags = api.PyType_GetFlags(class);
	if (flags & LONG) return read_int(p, piece, o);
	if (flags & UNICODE) return read_text(p, piece, o);
	if (flags & BYTES) return read_bytes(p, piece, o);
	if (flags & LIST) return begin(p, piece, NDPY_LIST, again(o), 0, api.PyList_Size(o));
	if (flags & DICT) return read_dict(p, piece, o, class);
	if (!(flags & TUPLE)) return read_other(p, piece, o, class);
	static ndpy tuple; // the GIL is held
	if (!tuple) {
		ndpy empty = api.PyTuple_New(0);
		tuple = ndpy_class(empty);
		ndpy_decref(empty);
	}
	if (class == tuple) return begin(p, piece, NDPY_TUPLE, again(o), 0, api.PyTuple_Size(o));
	return read_object(piece, o, class); // it may have names for its items
}

size_t ndpy_read_plain(ndpy_plain *p, ndpy o, ndpy_piece *pieces, size_t max) {
	PYTHON;
	let_go(&p->held[0]), let_go(&p->held[1]);
	if (o) p->given = again(o);
	size_t n = 0;
	while (n < max) {
		o = p->given;
		if (o) {
			p->held[0] = o, p->given = 0;
		} else {
			while (p->depth > 0 && p->frames[p->depth - 1].i == p->frames[p->depth - 1].n) pop(p);
			if (p->depth == 0 || !(o = item(p, &p->frames[p->depth - 1]))) return n;
		}
		if (!read_one(p, &pieces[n], o)) return n;
		int kind = pieces[n++].kind;
		if (kind == NDPY_OBJECT || kind == NDPY_BIG) break;
	}
	return n;
}

void ndpy_give_plain(ndpy_plain *p, int kind, ndpy o, ndpy names) {
	PYTHON;
	if (kind == NDPY_OBJECT) {
		let_go(&p->given);
		p->given = again(o);
		return;
	}
	ptrdiff_t n = api.PyTuple_Size(o);
	push(p, kind, again(o), names ? again(names) : 0, kind == NDPY_RECORD ? 2 * n : n);
}

// ------------------------------------------------------------------------------------------- make

static ndpy make_big(const ndpy_piece *piece, const unsigned char *bytes) {
	static const char digits[] = "0123456789abcdef";
	size_t n = (size_t)piece->n;
	char *text = malloc(2 * n + 1);
	if (!text) return api.PyBytes_FromStringAndSize(NULL, PTRDIFF_MAX); // sets MemoryError
	for (size_t i = 0; i < n; i++) text[2 * i] = digits[bytes[i] >> 4], text[2 * i + 1] = digits[bytes[i] & 15];
	text[2 * n] = 0;
	ndpy made = api.PyLong_FromString(text, NULL, 16);
	free(text);
	if (!made || !piece->negative) return made;
	ndpy inverted = api.PyNumber_Invert(made);
	ndpy_decref(made);
	return inverted;
}

static ndpy make_one(const ndpy_piece *piece, const char *bytes) {
	switch (piece->kind) {
	case NDPY_NONE: return again(ndpy_none());
	case NDPY_FALSE: return again(ndpy_false());
	case NDPY_TRUE: return again(ndpy_true());
	case NDPY_INT: return api.PyLong_FromLongLong(piece->n);
	case NDPY_BIG: return make_big(piece, (const unsigned char *)bytes + piece->at);
	case NDPY_FLOAT: return api.PyFloat_FromDouble(piece->re);
	case NDPY_COMPLEX: return api.PyComplex_FromDoubles(piece->re, piece->im);
	case NDPY_STR: return api.PyUnicode_FromStringAndSize(bytes + piece->at, (ptrdiff_t)piece->n);
	case NDPY_BYTES: return api.PyBytes_FromStringAndSize(bytes + piece->at, (ptrdiff_t)piece->n);
	case NDPY_LIST: return api.PyList_New((ptrdiff_t)piece->n);
	case NDPY_TUPLE: return api.PyTuple_New((ptrdiff_t)piece->n);
	case NDPY_SET: return api.PySet_New(0);
	case NDPY_FROZENSET: return api.PyFrozenSet_New(0);
	case NDPY_DICT:
	case NDPY_RECORD: return api.PyDict_New();
	default: return again(piece->object);
	}
}

// Puts an item into a container, and takes it over.
static bool put(ndpy_frame *f, ndpy o) {
	ptrdiff_t i = (ptrdiff_t)f->i;
	int failed = 0;
	switch (f->kind) {
	case NDPY_LIST:
		failed = api.PyList_SetItem(f->o, i, o); // which takes it over
		break;
	case NDPY_TUPLE:
		failed = api.PyTuple_SetItem(f->o, i, o); // likewise
		break;
	case NDPY_DICT:
	case NDPY_RECORD:
		if (i % 2 == 0) {
			ndpy_decref(f->key);
			f->key = o;
			break;
		}
		failed = api.PyDict_SetItem(f->o, f->key, o);
		ndpy_decref(o);
		break;
	default:
		failed = api.PySet_Add(f->o, o);
		ndpy_decref(o);
	}
	if (!failed) f->i++;
	return !failed;
}

// Whether two keys of a dict, or items of a set, were the same.
static bool twice(const ndpy_frame *f) {
	switch (f->kind) {
	case NDPY_DICT:
	case NDPY_RECORD: return api.PyDict_Size(f->o) != f->n / 2;
	case NDPY_SET:
	case NDPY_FROZENSET: return api.PySet_Size(f->o) != f->n;
	default: return false;
	}
}

// Puts an object where it belongs, and takes it over; and then the containers that are whole with it.
static bool place(ndpy_plain *p, ndpy o) {
	while (p->depth > 0) {
		ndpy_frame *f = &p->frames[p->depth - 1];
		if (!put(f, o)) return p->status = NDPY_FAILED, false;
		if (f->i < f->n) return true;
		if (twice(f)) return p->status = NDPY_TWICE, false;
		o = f->o, f->o = 0;
		pop(p);
	}
	let_go(&p->result);
	p->result = o;
	return true;
}

size_t ndpy_make_plain(ndpy_plain *p, const ndpy_piece *pieces, size_t n, const char *bytes) {
	PYTHON;
	p->making = 1;
	for (size_t i = 0; i < n; i++) {
		const ndpy_piece *piece = &pieces[i];
		ndpy o = make_one(piece, bytes);
		if (!o) {
			p->status = NDPY_FAILED;
			return i;
		}
		bool begun = piece->kind >= NDPY_LIST && piece->n > 0;
		if (begun ? !push(p, piece->kind, o, 0, piece->n) : !place(p, o)) return i;
	}
	return n;
}
