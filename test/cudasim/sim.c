/* The lock, initialisation, and which handles exist. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"

static pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t sim_changed = PTHREAD_COND_INITIALIZER;
unsigned sim_delay_us;

static _Atomic pid_t initialised_in;
static unsigned seed;

void lock(void) {
	pthread_mutex_lock(&sim_lock);
}

void unlock(void) {
	pthread_mutex_unlock(&sim_lock);
}

void wait_for_change(void) {
	pthread_cond_wait(&sim_changed, &sim_lock);
}

static unsigned from_environment(const char *name, unsigned otherwise) {
	const char *value = getenv(name);
	return value && *value ? (unsigned)strtoul(value, NULL, 0) : otherwise;
}

CUresult cuInit(unsigned flags) {
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	pid_t here = initialised_in;
	if (here)
		return here == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
	lock();
	CUresult result = CUDA_SUCCESS;
	if (!initialised_in) {
		seed = from_environment("CUDASIM_SEED", 1);
		sim_delay_us = from_environment("CUDASIM_DELAY_US", 200);
		faults_start();
		if (device_count())
			initialised_in = getpid();
		else
			result = CUDA_ERROR_NO_DEVICE;
	}
	unlock();
	return result;
}

static bool closed_to_others; /* while a call waits for all streams */

/* A child of fork must not touch the lock either: another thread may have held it. */
CUresult enter(void) {
	if (initialised_in != getpid())
		return CUDA_ERROR_NOT_INITIALIZED;
	lock();
	while (closed_to_others)
		wait_for_change();
	return CUDA_SUCCESS;
}

void settle_context(struct context *c) {
	closed_to_others = true;
	context_finish(c);
	closed_to_others = false;
	pthread_cond_broadcast(&sim_changed);
}

void wait_closed(const struct context *c, const uint64_t *done, uint64_t least) {
	closed_to_others = true;
	while (*done < least && context_state(c) == CUDA_SUCCESS)
		wait_for_change();
	closed_to_others = false;
	pthread_cond_broadcast(&sim_changed);
}

void settle_device(CUdevice device) {
	for (struct context *c = contexts_all(); c; c = c->next) {
		if (c->live && c->device == device)
			settle_context(c);
	}
}

CUresult enter_context(struct context **current) {
	TRY(enter());
	*current = context_current();
	CUresult result = *current ? context_state(*current) : CUDA_ERROR_INVALID_CONTEXT;
	return result == CUDA_SUCCESS ? result : leave(result);
}

unsigned seeded(unsigned a, unsigned b, unsigned n) {
	uint64_t x = ((uint64_t)seed << 32 | a) * 0x9e3779b97f4a7c15u + b; /* splitmix64 */
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return n ? (unsigned)((x ^ x >> 31) % n) : 0;
}

uint64_t now_us(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void pause_us(unsigned us) {
	nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000L}, NULL);
}

void *must(void *allocated) {
	if (!allocated) {
		fputs("cudasim: out of host memory\n", stderr);
		abort();
	}
	return allocated;
}

/* ------------------------------------------------------------------------------------- handles */

struct handle {
	enum kind kind;
	const void *object;
	struct handle *next;
};

static struct handle *handles[1024];

static struct handle **handle_place(const void *object) {
	struct handle **p = &handles[((uintptr_t)object >> 5) % (sizeof handles / sizeof *handles)];
	while (*p && (*p)->object != object)
		p = &(*p)->next;
	return p;
}

void handle_add(enum kind kind, const void *object) {
	struct handle *h = must(malloc(sizeof *h));
	*h = (struct handle){kind, object, NULL};
	*handle_place(object) = h;
}

bool handle_is(enum kind kind, const void *object) {
	struct handle *h = *handle_place(object);
	return h && h->kind == kind;
}

void handle_remove(const void *object) {
	struct handle **p = handle_place(object), *h = *p;
	*p = h->next;
	free(h);
}
