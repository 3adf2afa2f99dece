/*
 * The kernels of package stats, compiled from their own source: what CUDA adds to C are macros here. The threads of a block
 * are contexts that take turns at __syncthreads. They change by jumps, which need no call of the system.
 */
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "kernels.h"

enum { STACK = 64 << 10, SHARED = 48 << 10, MOST_THREADS = 256 };

struct index {
	unsigned x;
};
static volatile struct index threadIdx, blockIdx, blockDim, gridDim;

static jmp_buf scheduler, threads[MOST_THREADS];

/* Has the next thread run; whoever jumps to this thread comes back. */
static void __syncthreads(void) {
	if (!_setjmp(threads[threadIdx.x]))
		_longjmp(scheduler, 1);
}

static float as_float(unsigned bits) {
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

static double as_double(unsigned long long bits) {
	double x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

static unsigned long long bits_of(double x) {
	unsigned long long bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

static float half(unsigned bits) {
	unsigned rest = bits & 0x7fff;
	float x = rest < 0x7c00 ? ldexpf(as_float(rest << 13), 112) : as_float(rest << 13 | 0x7f800000);
	return bits >> 15 ? -x : x;
}

#define UNROLL
#define CALLED
#define INLINE
#define __device__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define DYNAMIC_SHARED(type, name) static type name[SHARED / sizeof(type)]
#define atomicAdd(to, value) (*(to) += (value))
#define ENTRY(blocks) static void
#include "../../stats/internal/kernels/kernels.cu"

/* One thread of the block that runs. makecontext passes no pointers. */
static struct {
	void (*kernel)(const char *data, const char *base, struct job *job);
	const char *data, *base;
	struct job *job;
} arguments;
static volatile enum { NEW, RUNS, ENDED } states[MOST_THREADS];

static void thread(void) {
	states[threadIdx.x] = RUNS;
	arguments.kernel(arguments.data, arguments.base, arguments.job);
	states[threadIdx.x] = ENDED;
	_longjmp(scheduler, 1);
}

static void start_thread(char *stack) {
	ucontext_t context;
	getcontext(&context);
	context.uc_stack.ss_sp = stack;
	context.uc_stack.ss_size = STACK;
	makecontext(&context, thread, 0);
	setcontext(&context);
}

static void run_thread(char *stacks) {
	if (_setjmp(scheduler))
		return;
	if (states[threadIdx.x] == NEW)
		start_thread(stacks + (size_t)threadIdx.x * STACK);
	_longjmp(threads[threadIdx.x], 1);
}

static void run_block(char *stacks) {
	for (unsigned i = 0; i < blockDim.x; i++)
		states[i] = NEW;
	for (bool runs = true; runs;) {
		runs = false;
		for (unsigned i = 0; i < blockDim.x; i++) {
			if (states[i] == ENDED)
				continue;
			threadIdx.x = i;
			run_thread(stacks);
			runs = runs || states[i] != ENDED;
		}
	}
}

/* The bytes that the elements of a walker touch, relative to the address that the kernel is given. */
static void span_of(const struct walker *w, i64 *lo, i64 *hi) {
	bool bits = w->format == PACKED;
	i64 first = w->first, last = w->first;
	for (unsigned i = 0; i < w->rank; i++) {
		i64 reach = (i64)(w->dim[i] - 1) * w->stride[i];
		*(reach < 0 ? &first : &last) += reach;
	}
	last += w->size;
	*lo = bits ? first >> 3 : first;
	*hi = bits ? (last + 7) >> 3 : last;
}

/* A copy of the elements, as read slowly, that lies as they do for those who load several at once. */
static char *elements(const struct launch *l, int argument, const struct walker *w, char **copy) {
	i64 lo, hi;
	span_of(w, &lo, &hi);
	uintptr_t address = (uintptr_t)l->arguments[argument] + (uintptr_t)lo;
	size_t size = (size_t)(hi - lo);
	struct area *area;
	lock();
	const char *from = pin(address, size, false, &area);
	unlock();
	if (!from)
		return NULL;
	void *read = read_slowly(&l->operation, from, size, 0);
	lock();
	unpin(area);
	unlock();
	*copy = must(malloc(size + 32));
	char *to = *copy + ((address - (uintptr_t)*copy) & 15);
	memcpy(to, read, size);
	free(read);
	return to - lo;
}

static CUresult run(const struct launch *l, void (*kernel)(const char *, const char *, struct job *)) {
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
	const size_t room = 1 << 20; /* at least that is behind a job */
	struct area *area;
	lock();
	struct job *job = (struct job *)pin(l->arguments[2], room, true, &area);
	unlock();
	if (!job)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	char *copies[2] = {NULL, NULL};
	char *data = elements(l, 0, &job->from, &copies[0]);
	char *base = job->subtract ? elements(l, 1, &job->base, &copies[1]) : data;
	CUresult result = data && base ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
	if (result == CUDA_SUCCESS) {
		pthread_mutex_lock(&one);
		char *stacks = must(malloc((size_t)STACK * MOST_THREADS));
		arguments.kernel = kernel;
		arguments.data = data;
		arguments.base = base;
		arguments.job = job;
		blockDim.x = l->block;
		gridDim.x = l->grid;
		for (unsigned i = 0; i < l->grid; i++) {
			blockIdx.x = i;
			run_block(stacks);
		}
		free(stacks);
		pthread_mutex_unlock(&one);
	}
	free(copies[0]);
	free(copies[1]);
	lock();
	unpin(area);
	unlock();
	return result;
}

CUresult stats_sum(const struct launch *l) {
	return run(l, ndbridge_stats_sum);
}

CUresult stats_bins(const struct launch *l) {
	return run(l, ndbridge_stats_bins);
}

CUresult stats_patterns(const struct launch *l) {
	return run(l, ndbridge_stats_patterns);
}
