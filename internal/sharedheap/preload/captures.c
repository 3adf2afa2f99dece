/*
 * Captures of CUDA graphs. A driver call that concerns a whole context destroys a capture that is under way
 * there, and the driver has no call that tells whether there is one. So this library stands in front of the
 * driver's functions that begin and end a capture. Whoever makes such a call holds captures off meanwhile:
 * ndheap_hold_captures. Frameworks find the driver's functions by dlsym (lookups.c) and cuGetProcAddress.
 */
#include <string.h>

#include "heap.h"

struct lock captures_lock;

enum { MOST = 256 };
static void *capturing[MOST]; /* streams; captures_lock */
static unsigned captures;

static void forget(const void *stream) {
	for (unsigned i = 0; i < captures; i++) {
		if (capturing[i] == stream) {
			capturing[i] = capturing[--captures];
			return;
		}
	}
}

void captures_reset(void) {
	lock_reset(&captures_lock);
	captures = 0;
}

EXPORTED int ndheap_hold_captures(void) {
	lock(&captures_lock);
	if (captures == 0)
		return 0;
	unlock(&captures_lock);
	return -1;
}

EXPORTED void ndheap_let_captures(void) { unlock(&captures_lock); }

/* --------------------------------------------------------------------- in front of the driver */

enum kind { BEGIN, BEGIN_TO_GRAPH, END, DESTROY, GET, KINDS };
static const char *const names[KINDS] = {
	"cuStreamBeginCapture", "cuStreamBeginCaptureToGraph", "cuStreamEndCapture", "cuStreamDestroy", "cuGetProcAddress",
};

/* The driver has several functions of one name: of other versions, and for other default streams. */
enum { VARIANTS = 4, WRONG_THREAD = 908 };
static void *_Atomic real[KINDS][VARIANTS];

static int began(void *stream, int result) {
	if (result == 0 && captures < MOST)
		capturing[captures++] = stream;
	unlock(&captures_lock);
	return result;
}

static int begin(void *f, void *stream, int mode) {
	lock(&captures_lock);
	return began(stream, ((int (*)(void *, int))f)(stream, mode));
}

static int begin_to_graph(void *f, void *stream, void *graph, const void *after, const void *data, size_t n, int mode) {
	lock(&captures_lock);
	return began(stream, ((int (*)(void *, void *, const void *, const void *, size_t, int))f)(stream, graph, after, data, n, mode));
}

static int end(void *f, void *stream, void *graph) {
	int result = ((int (*)(void *, void *))f)(stream, graph);
	if (result != WRONG_THREAD) {
		lock(&captures_lock);
		forget(stream);
		unlock(&captures_lock);
	}
	return result;
}

static int destroy(void *f, void *stream) {
	lock(&captures_lock);
	forget(stream);
	unlock(&captures_lock);
	return ((int (*)(void *))f)(stream);
}

/* An older version of it has no status. */
static int get(void *f, const char *name, void **out, int version, uint64_t flags, void *status) {
	int result = ((int (*)(const char *, void **, int, uint64_t, void *))f)(name, out, version, flags, status);
	if (result == 0 && out && *out)
		*out = captures_in_front(name, *out);
	return result;
}

#define VARIANT(v)                                                                                                         \
	static int begin_##v(void *s, int mode) { return begin(real[BEGIN][v], s, mode); }                                 \
	static int begin_to_graph_##v(void *s, void *g, const void *a, const void *d, size_t n, int mode) {                \
		return begin_to_graph(real[BEGIN_TO_GRAPH][v], s, g, a, d, n, mode);                                       \
	}                                                                                                                  \
	static int end_##v(void *s, void *g) { return end(real[END][v], s, g); }                                           \
	static int destroy_##v(void *s) { return destroy(real[DESTROY][v], s); }                                           \
	static int get_##v(const char *name, void **out, int version, uint64_t flags, void *status) {                      \
		return get(real[GET][v], name, out, version, flags, status);                                               \
	}
VARIANT(0)
VARIANT(1)
VARIANT(2)
VARIANT(3)

#define FOUR(f) {(void *)f##_0, (void *)f##_1, (void *)f##_2, (void *)f##_3}
static void *const ours[KINDS][VARIANTS] = {FOUR(begin), FOUR(begin_to_graph), FOUR(end), FOUR(destroy), FOUR(get)};

static bool is_variant(const char *suffix) {
	return !*suffix || !strcmp(suffix, "_v2") || !strcmp(suffix, "_ptsz") || !strcmp(suffix, "_v2_ptsz");
}

void *captures_in_front(const char *name, void *function) {
	for (enum kind k = 0; k < KINDS; k++) {
		if (strncmp(name, names[k], strlen(names[k])) != 0 || !is_variant(name + strlen(names[k])))
			continue;
		for (unsigned v = 0; v < VARIANTS; v++) {
			void *none = NULL;
			if (function == ours[k][v])
				return function;
			if (atomic_compare_exchange_strong(&real[k][v], &none, function) || none == function)
				return ours[k][v];
		}
	}
	return function;
}
