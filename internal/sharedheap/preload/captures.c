/*
 * Captures of CUDA graphs. A driver call that concerns a whole context destroys a capture that is under way
 * there, and the driver has no call that tells whether there is one. So this library stands in front of the
 * driver's functions that begin and end a capture. Whoever makes such a call holds captures off meanwhile:
 * ndheap_hold_captures. Frameworks find the driver's functions by dlsym and cuGetProcAddress.
 */
#include <dlfcn.h>
#include <string.h>

#include "heap.h"

#if defined(__GLIBC__) && defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
__asm__(".symver dlvsym,dlvsym@GLIBC_2.2.5");
#elif defined(__GLIBC__) && defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
__asm__(".symver dlvsym,dlvsym@GLIBC_2.17");
#else
#error "say which version of dlsym is the oldest one here, and how to jump to it"
#endif

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

static void *in_front(const char *name, void *function);

/* An older version of it has no status. */
static int get(void *f, const char *name, void **out, int version, uint64_t flags, void *status) {
	int result = ((int (*)(const char *, void **, int, uint64_t, void *))f)(name, out, version, flags, status);
	if (result == 0 && out && *out)
		*out = in_front(name, *out);
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

/* What the caller gets instead of the driver's function. */
static void *in_front(const char *name, void *function) {
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

/* ------------------------------------------------------------------------------------- dlsym */

/*
 * For RTLD_DEFAULT and RTLD_NEXT (0 and -1), the libc's dlsym looks at where it will return to. So ours is a jump to
 * it, whatever the compiler's options are. Only names that begin with "cu", of a library's handle, take another way.
 */
void first_dlsym(void);
void *(*next_dlsym)(void *, const char *) = (void *(*)(void *, const char *))(void (*)(void))first_dlsym;

/* ThreadSanitizer asks for functions before it has begun itself. */
__attribute__((used, no_sanitize("thread"))) static void resolve_dlsym(void) {
	void *found = dlvsym(RTLD_NEXT, "dlsym", OLDEST);
	if (!found)
		die("the libc lacks dlsym", NULL);
	next_dlsym = (void *(*)(void *, const char *))found;
}

__attribute__((used, no_sanitize("thread"))) static void *dlsym_cuda(void *library, const char *name) {
	void *found = next_dlsym(library, name);
	return found ? in_front(name, found) : NULL;
}

#if defined(__x86_64__)
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, @function\n"
	"dlsym:\n"
	"	lea 1(%rdi), %rax\n"
	"	cmp $1, %rax\n"
	"	jbe 1f\n"
	"	cmpb $'c', (%rsi)\n"
	"	jne 1f\n"
	"	cmpb $'u', 1(%rsi)\n"
	"	je dlsym_cuda\n"
	"1:	jmp *next_dlsym(%rip)\n"
	".size dlsym, .-dlsym\n"
	".hidden first_dlsym\n"
	".globl first_dlsym\n"
	".type first_dlsym, @function\n"
	"first_dlsym:\n"
	"	push %rdi\n"
	"	push %rsi\n"
	"	sub $8, %rsp\n"
	"	call resolve_dlsym\n"
	"	add $8, %rsp\n"
	"	pop %rsi\n"
	"	pop %rdi\n"
	"	jmp *next_dlsym(%rip)\n"
	".size first_dlsym, .-first_dlsym\n");
#else
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, %function\n"
	"dlsym:\n"
	"	add x2, x0, #1\n"
	"	cmp x2, #1\n"
	"	b.ls 1f\n"
	"	ldrb w2, [x1]\n"
	"	cmp w2, #'c'\n"
	"	b.ne 1f\n"
	"	ldrb w2, [x1, #1]\n"
	"	cmp w2, #'u'\n"
	"	b.ne 1f\n"
	"	b dlsym_cuda\n"
	"1:	adrp x16, next_dlsym\n"
	"	ldr x16, [x16, #:lo12:next_dlsym]\n"
	"	br x16\n"
	".size dlsym, .-dlsym\n"
	".hidden first_dlsym\n"
	".globl first_dlsym\n"
	".type first_dlsym, %function\n"
	"first_dlsym:\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	stp x0, x1, [sp, #16]\n"
	"	bl resolve_dlsym\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	b 1b\n"
	".size first_dlsym, .-first_dlsym\n");
#endif
