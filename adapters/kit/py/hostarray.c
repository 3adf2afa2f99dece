#define _GNU_SOURCE
#include "hostarray.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct _object PyObject;

// All are in the stable ABI.
#define FUNCTIONS(X)                                                                      \
	X(PyObject *, PyType_FromSpec, (void *))                                          \
	X(PyObject *, PyType_GenericAlloc, (PyObject *, ptrdiff_t))                       \
	X(void, PyObject_Free, (void *))                                                  \
	X(PyObject *, PyCapsule_New, (void *, const char *, void (*)(PyObject *)))        \
	X(void *, PyCapsule_GetPointer, (PyObject *, const char *))                       \
	X(int, PyCapsule_IsValid, (PyObject *, const char *))                             \
	X(int, PyArg_ParseTupleAndKeywords, (PyObject *, PyObject *, const char *, char **, ...)) \
	X(int, PyArg_ParseTuple, (PyObject *, const char *, ...))                         \
	X(PyObject *, Py_BuildValue, (const char *, ...))                                 \
	X(void, PyErr_SetString, (PyObject *, const char *))                              \
	X(PyObject *, PyLong_FromSsize_t, (ptrdiff_t))                                    \
	X(PyObject *, PyTuple_New, (ptrdiff_t))                                           \
	X(int, PyTuple_SetItem, (PyObject *, ptrdiff_t, PyObject *))

static struct {
#define X(result, name, arguments) result(*name) arguments;
	FUNCTIONS(X)
#undef X
	PyObject **PyExc_AttributeError, **PyExc_BufferError, **PyExc_TypeError;
} api;

static ndpy type;     // ndbridge.HostArray
static size_t header; // bytes with which every object begins

// How many forks lie between this process and the one that loaded the library. The parent goes on counting what a
// child has inherited.
static unsigned forks;

static void in_child(void) { forks++; }

struct ndpy_segment {
	atomic_uint users;
	uintptr_t address;
	size_t size;
};

ndpy_segment *ndpy_new_segment(uintptr_t address, size_t size) {
	ndpy_segment *s = malloc(sizeof *s);
	if (s) *s = (ndpy_segment){1, address, size};
	return s;
}

void ndpy_drop_segment(ndpy_segment *s) {
	if (atomic_fetch_sub(&s->users, 1) != 1) return;
	if (s->size) munmap((void *)s->address, s->size);
	free(s);
}

unsigned ndpy_segment_arrays(ndpy_segment *s) { return atomic_load(&s->users) - 1; }

// What an array is, for all that use it: a Python object, and tensors of DLPack.
typedef struct {
	atomic_uint users;
	unsigned forks; // when it was made
	ndpy_host_array is;
	int ndim;
	bool c_order, fortran_order;
	bool is_unsigned; // consumers need not understand that it is read-only
	ptrdiff_t *shape, *strides, *steps; // strides are in bytes, steps in elements
	ptrdiff_t axes[];
} array;

static void drop(array *a) {
	if (atomic_fetch_sub(&a->users, 1) != 1) return;
	if (a->is.held && a->forks == forks) atomic_fetch_sub((atomic_uint *)a->is.held, 1); // it may lie in the segment
	ndpy_drop_segment(a->is.segment);
	free(a);
}

// Whether the elements lie without gaps, the last axis first, or the first one.
static bool dense(const array *a, bool fortran) {
	ptrdiff_t want = (ptrdiff_t)a->is.itemsize;
	if (a->is.len == 0) return true;
	for (int i = 0; i < a->ndim; i++) {
		int axis = fortran ? i : a->ndim - 1 - i;
		if (a->shape[axis] != 1 && a->strides[axis] != want) return false;
		want *= a->shape[axis];
	}
	return true;
}

static array *new_array(const ndpy_host_array *is, int ndim, const ptrdiff_t *shape, const ptrdiff_t *strides) {
	array *a = malloc(sizeof *a + 3 * (size_t)ndim * sizeof *a->axes);
	if (!a) return NULL;
	*a = (array){.users = 1, .forks = forks, .is = *is, .ndim = ndim};
	a->shape = a->axes, a->strides = a->shape + ndim, a->steps = a->strides + ndim;
	for (int i = 0; i < ndim; i++) {
		a->shape[i] = shape[i], a->strides[i] = strides[i];
		a->steps[i] = strides[i] / (ptrdiff_t)is->itemsize;
		if (a->steps[i] * (ptrdiff_t)is->itemsize != strides[i]) a->is.code = 3; // DLPack cannot say that
	}
	a->c_order = dense(a, false), a->fortran_order = dense(a, true);
	atomic_fetch_add(&is->segment->users, 1);
	if (is->held) atomic_fetch_add((atomic_uint *)is->held, 1);
	return a;
}

#define ARRAY(o) (*(array **)((char *)(o) + header))

static PyObject *refuse(const char *why) {
	api.PyErr_SetString(*api.PyExc_BufferError, why);
	return NULL;
}

static PyObject *make(PyObject *t, PyObject *args, PyObject *kw) {
	(void)t, (void)args, (void)kw;
	api.PyErr_SetString(*api.PyExc_TypeError, "only a host makes objects of ndbridge.HostArray");
	return NULL;
}

static void dealloc(PyObject *o) {
	array *a = ARRAY(o);
	if (a) drop(a);
	ndpy t = ndpy_class((ndpy)o);
	api.PyObject_Free(o);
	ndpy_decref(t); // each object of a type on the heap has a reference to it
}

static int get_buffer(PyObject *o, ndpy_buffer *view, int flags) {
	enum { WRITABLE = 1, FORMAT = 4, ND = 8, STRIDES = 0x10 | ND, C = 0x20, FORTRAN = 0x40, ANY = 0x80 };
	array *a = ARRAY(o);
	const char *why = NULL;
	if (a->is.gpu >= 0) why = "the array is on a GPU";
	if (flags & WRITABLE && a->is.readonly) why = "the host's memory is read-only";
	if (flags & FORMAT && !a->is.format) why = "the buffer protocol has no format for elements of this type";
	bool fits = flags & C ? a->c_order : flags & FORTRAN ? a->fortran_order
		  : flags & ANY ? a->c_order || a->fortran_order : (flags & STRIDES) == STRIDES || a->c_order;
	if (!fits) why = "the elements do not lie in that order without gaps";
	view->obj = 0;
	if (why) {
		refuse(why);
		return -1;
	}
	*view = (ndpy_buffer){
		.buf = (void *)a->is.data, .obj = (ndpy)o, .len = (ptrdiff_t)a->is.len, .itemsize = (ptrdiff_t)a->is.itemsize,
		.readonly = a->is.readonly, .ndim = a->ndim,
		.format = flags & FORMAT ? (char *)a->is.format : NULL,
		.shape = flags & ND && a->ndim ? a->shape : NULL,
		.strides = (flags & STRIDES) == STRIDES && a->ndim ? a->strides : NULL,
	};
	if (!(flags & ND)) view->ndim = 1, view->itemsize = 1; // bytes
	ndpy_incref(view->obj);
	return 0;
}

// DLTensor and the structs around it, as dlpack.h has them.
typedef struct {
	void *data;
	struct {
		int32_t type, id;
	} device;
	int32_t ndim;
	struct {
		uint8_t code, bits;
		uint16_t lanes;
	} dtype;
	int64_t *shape, *strides;
	uint64_t byte_offset;
} tensor;

typedef struct legacy {
	tensor t;
	void *context;
	void (*deleter)(struct legacy *);
} legacy;

typedef struct versioned {
	struct {
		uint32_t major, minor;
	} version;
	void *context;
	void (*deleter)(struct versioned *);
	uint64_t flags;
	tensor t;
} versioned;

enum { CPU = 1, CUDA = 2, HANDLE = 3 };

static void delete_legacy(legacy *m) {
	drop(m->context);
	free(m);
}

static void delete_versioned(versioned *m) {
	drop(m->context);
	free(m);
}

static const char legacy_name[] = "dltensor", versioned_name[] = "dltensor_versioned";

// Gives the tensor back if nobody has taken it, for whoever does gives the capsule another name.
static void end_legacy(PyObject *capsule) {
	if (api.PyCapsule_IsValid(capsule, legacy_name)) delete_legacy(api.PyCapsule_GetPointer(capsule, legacy_name));
}

static void end_versioned(PyObject *capsule) {
	if (api.PyCapsule_IsValid(capsule, versioned_name))
		delete_versioned(api.PyCapsule_GetPointer(capsule, versioned_name));
}

static tensor tensor_of(const array *a) {
	return (tensor){
		(void *)a->is.data, {a->is.gpu < 0 ? CPU : CUDA, a->is.gpu < 0 ? 0 : a->is.gpu}, a->ndim, {a->is.code, a->is.bits, a->is.lanes}, (int64_t *)a->shape, (int64_t *)a->steps, 0,
	};
}

static PyObject *capsule_of(array *a, bool with_version) {
	if (a->is.code == HANDLE) return refuse("DLPack has no such elements, or no such strides");
	void *m = NULL;
	if (with_version) {
		versioned *v = m = malloc(sizeof *v);
		if (v) *v = (versioned){{1, 0}, a, delete_versioned, a->is.readonly ? 1 : 0, tensor_of(a)};
	} else {
		legacy *l = m = malloc(sizeof *l);
		if (l) *l = (legacy){tensor_of(a), a, delete_legacy};
	}
	if (!m) return refuse("no memory");
	PyObject *capsule = with_version ? api.PyCapsule_New(m, versioned_name, end_versioned)
					 : api.PyCapsule_New(m, legacy_name, end_legacy);
	if (capsule) atomic_fetch_add(&a->users, 1);
	else free(m);
	return capsule;
}

ndpy ndpy_host_array_capsule(ndpy o, int with_version) {
	return (ndpy)capsule_of(ARRAY(o), with_version);
}

void ndpy_host_array_unsigned(ndpy o) { ARRAY(o)->is_unsigned = true; }

static PyObject *dlpack(PyObject *o, PyObject *args, PyObject *kw) {
	static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
	PyObject *none = (PyObject *)ndpy_none(), *stream = none, *max = none, *device = none, *copy = none;
	array *a = ARRAY(o);
	bool on_gpu = a->is.gpu >= 0;
	int major = 0, minor = 0, kind = on_gpu ? CUDA : CPU, id = on_gpu ? a->is.gpu : 0;
	const int where = kind, which = id;
	if (!api.PyArg_ParseTupleAndKeywords(args, kw, "|$OOOO:__dlpack__", names, &stream, &max, &device, &copy)) return NULL;
	if (max != none && !api.PyArg_ParseTuple(max, "ii:max_version", &major, &minor)) return NULL;
	if (device != none && !api.PyArg_ParseTuple(device, "ii:dl_device", &kind, &id)) return NULL;
	// Nothing has to be done for a stream: on a GPU, too, all work before the call is over.
	if (stream != none && !on_gpu) return refuse("the array is in host memory, where stream must be None");
	if (kind != where || id != which) return refuse(on_gpu ? "the array is on another device" : "the array is in host memory only");
	if (copy != none && copy != (PyObject *)ndpy_false()) return refuse("the array makes no copies of itself");
	if (major < 1 && a->is.readonly && !a->is_unsigned) return refuse("only DLPack 1.0 (max_version) can say that memory is read-only");
	return capsule_of(a, major >= 1);
}

static PyObject *dlpack_device(PyObject *o, PyObject *unused) {
	(void)unused;
	int gpu = ARRAY(o)->is.gpu;
	return gpu < 0 ? api.Py_BuildValue("(ii)", CPU, 0) : api.Py_BuildValue("(ii)", CUDA, gpu);
}

ndpy ndpy_new_ints(const ptrdiff_t *v, int n) {
	PyObject *t = api.PyTuple_New(n);
	for (int i = 0; t && i < n; i++) {
		PyObject *item = api.PyLong_FromSsize_t(v[i]);
		if (!item || api.PyTuple_SetItem(t, i, item) < 0) {
			ndpy_decref((ndpy)t);
			return 0;
		}
	}
	return (ndpy)t;
}

// The closure of a getter says whether it is for a GPU.
static PyObject *array_interface(PyObject *o, void *for_gpu) {
	array *a = ARRAY(o);
	if ((a->is.gpu >= 0) != (for_gpu != NULL)) {
		api.PyErr_SetString(*api.PyExc_AttributeError, for_gpu ? "__cuda_array_interface__: the array is in host memory"
								       : "__array_interface__: the array is on a GPU");
		return NULL;
	}
	ndpy shape = ndpy_new_ints(a->shape, a->ndim), strides = shape ? ndpy_new_ints(a->strides, a->ndim) : 0;
	if (!strides) {
		ndpy_decref(shape); // which passes over 0
		return NULL;
	}
	return api.Py_BuildValue("{s:i,s:s,s:N,s:N,s:(KO)}", "version", 3, "typestr", a->is.typestr, "shape", shape, "strides",
	    strides, "data", (unsigned long long)a->is.data, a->is.readonly ? ndpy_true() : ndpy_false());
}

// What describes the type: the structs are a part of the stable ABI.
typedef struct {
	const char *name;
	void *function;
	int flags;
	const char *doc;
} method;

typedef struct {
	const char *name;
	void *get, *set;
	const char *doc;
	void *closure;
} getter;

typedef struct {
	int slot;
	void *value;
} slot;

typedef struct {
	const char *name;
	int basicsize, itemsize;
	unsigned flags;
	slot *slots;
} spec;

// Python 3.8 has no slot for the buffer protocol. Its type objects, whose struct every extension module of 3.8 has
// compiled in, get it as those of such modules do.
static void add_buffer(spec *s) {
	enum { SIZE = 4, BUFFER = 20, FLAGS = 21 }; // words of the struct
	const uintptr_t *words = (const uintptr_t *)type;
	if (words[SIZE] == (uintptr_t)s->basicsize && words[FLAGS] == ndpy_type_flags(type) && words[BUFFER])
		*(void **)words[BUFFER] = get_buffer;
}

int ndpy_open_host_arrays(size_t object_header) {
	enum { GET_BUFFER = 1, DEALLOC = 52, METHODS = 64, NEW = 65, GETSET = 73 };
	enum { ARGS = 1, KEYWORDS = 2, NO_ARGS = 4, DEFAULT = 1 << 18 };
	static method methods[] = {
		{"__dlpack__", dlpack, ARGS | KEYWORDS, NULL},
		{"__dlpack_device__", dlpack_device, NO_ARGS, NULL},
		{NULL, NULL, 0, NULL},
	};
	static getter getters[] = {
		{"__array_interface__", array_interface, NULL, NULL, NULL},
		{"__cuda_array_interface__", array_interface, NULL, NULL, &type},
		{NULL, NULL, NULL, NULL, NULL},
	};
	slot slots[] = {
		{DEALLOC, dealloc}, {NEW, make}, {METHODS, methods}, {GETSET, getters}, {GET_BUFFER, get_buffer}, {0, NULL},
	};
	spec s = {"ndbridge.HostArray", (int)(object_header + sizeof(array *)), 0, DEFAULT, slots};
	if (type) return 0;
#define X(result, name, arguments) *(void **)&api.name = dlsym(RTLD_DEFAULT, #name);
	FUNCTIONS(X)
#undef X
	api.PyExc_AttributeError = dlsym(RTLD_DEFAULT, "PyExc_AttributeError");
	api.PyExc_BufferError = dlsym(RTLD_DEFAULT, "PyExc_BufferError");
	api.PyExc_TypeError = dlsym(RTLD_DEFAULT, "PyExc_TypeError");
	header = object_header;
	bool no_slot = strncmp(ndpy_version(), "3.8.", 4) == 0;
	if (no_slot) slots[4] = (slot){0, NULL};
	pthread_atfork(NULL, NULL, in_child);
	type = (ndpy)api.PyType_FromSpec(&s);
	if (type && no_slot) add_buffer(&s);
	return type ? 0 : -1;
}

ndpy ndpy_new_host_array(const ndpy_host_array *is, int ndim, const ptrdiff_t *shape, const ptrdiff_t *strides) {
	PyObject *o = api.PyType_GenericAlloc((PyObject *)type, 0);
	if (!o) return 0;
	if (!(ARRAY(o) = new_array(is, ndim, shape, strides))) {
		ndpy_decref((ndpy)o);
		return (ndpy)refuse("no memory");
	}
	return (ndpy)o;
}

void ndpy_read_segment(uintptr_t from, void *to, size_t n) { memcpy(to, (const void *)from, n); }
