/*
 * Which callers of malloc are array frameworks.
 *
 * The address that malloc returns to says which library asked. A function that ends in a tail call
 * to malloc counts as its own caller, which for a framework's internal helpers is the framework
 * again; memory that C++ asks for by operator new is asked for by the C++ library and stays out.
 */
#include <errno.h>
#include <link.h>
#include <string.h>

#include "heap.h"

/*
 * Parts of the file names of the libraries that allocate array data. NDBRIDGE_HEAP_LIBRARIES, a
 * list separated by commas, adds to them; if it begins with "=", it replaces them. The entry "*"
 * stands for every caller.
 */
static const char default_libraries[] =
	"_multiarray_umath,"                   /* NumPy, and all that makes its arrays through NumPy */
	"libc10,libtorch_cpu,"                 /* PyTorch */
	"libjax_common,xla_extension,_jax.,"   /* JAX; the name has changed twice */
	"libtensorflow,_pywrap_tensorflow,"    /* TensorFlow */
	"warp.so,"                             /* Warp */
	"_nrt_python,"                         /* Numba's compiled functions */
	"libmxnet,libpaddle,libdali,libmlx.,"  /* MXNet, PaddlePaddle, DALI, MLX */
	"onnxruntime_pybind,"                  /* ONNX Runtime */
	"libarrow.";                           /* Arrow, where its pool is the system's malloc */

static char libraries[4096];
static bool every_caller;

static bool append_list(const char *list) {
	size_t used = strlen(libraries), length = strlen(list);
	if (used + length + 2 > sizeof libraries)
		return false;
	if (used)
		libraries[used++] = ',';
	memcpy(libraries + used, list, length + 1);
	return true;
}

void callers_configure(const char *list) {
	bool replaces = list && *list == '=';
	if (!replaces)
		append_list(default_libraries);
	if (list && !append_list(list + replaces)) { /* too long: as if it were not set */
		libraries[0] = '\0';
		append_list(default_libraries);
	}
	for (const char *p = libraries; *p;) {
		size_t length = strcspn(p, ",");
		if (length == 1 && *p == '*')
			every_caller = true;
		p += length + (p[length] == ',');
	}
}

/* Whether the file name of a path has one of the configured parts. */
static bool library_in_scope(const char *path) {
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	for (const char *p = libraries; *p;) {
		size_t length = strcspn(p, ",");
		if (length && memmem(name, strlen(name), p, length))
			return true;
		p += length + (p[length] == ',');
	}
	return false;
}

struct question {
	uintptr_t address;
	bool answer;
};

static int ask_library(struct dl_phdr_info *library, size_t size, void *data) {
	(void)size;
	struct question *q = data;
	struct span s = span_of(library, 0);
	if (!in_span(&s, q->address))
		return 0;
	q->answer = library->dlpi_name && library_in_scope(library->dlpi_name);
	return 1;
}

/*
 * Verdicts by return address: a set-associative cache of one cache line a set, read and written
 * without a lock. An entry is the address with the verdict in its top bit. It goes stale only if a
 * library is unloaded and another comes to lie in its place, and then merely shares too much or too
 * little. A process has a few dozen such addresses.
 */
#define SETS 512
#define WAYS 8
#define IN_SCOPE ((uintptr_t)1 << 63)
static struct {
	_Alignas(64) _Atomic uintptr_t way[WAYS];
} verdicts[SETS];

static void remember(_Atomic uintptr_t *set, uintptr_t address, uintptr_t verdict) {
	for (int i = 0; i < WAYS; i++) {
		uintptr_t empty = 0;
		if (atomic_compare_exchange_strong_explicit(&set[i], &empty, address | verdict, memory_order_relaxed,
							    memory_order_relaxed))
			return;
	}
	atomic_store_explicit(&set[address / 16 % WAYS], address | verdict, memory_order_relaxed);
}

bool caller_in_scope(const void *return_address) {
	if (every_caller)
		return true;
	uintptr_t address = (uintptr_t)return_address & ~IN_SCOPE;
	_Atomic uintptr_t *set = verdicts[(address ^ address >> 12) % SETS].way;
	for (int i = 0; i < WAYS; i++) {
		uintptr_t entry = atomic_load_explicit(&set[i], memory_order_relaxed);
		if ((entry & ~IN_SCOPE) == address)
			return entry & IN_SCOPE;
	}
	int saved = errno;
	struct question q = {.address = address};
	dl_iterate_phdr(ask_library, &q);
	remember(set, address, q.answer ? IN_SCOPE : 0);
	errno = saved;
	return q.answer;
}
