/* Loads libcuda.so.1 at the first call of a driver function. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "stub.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const char library_name[] = "libcuda.so.1";

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *library;
static char reason[512];

/* The library is never closed: the driver does not support that. */
static void load(void) {
	library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char *text = dlerror();
		snprintf(reason, sizeof reason, "%s", text ? text : "libcuda.so.1: not found");
	}
}

void *ndbridge_cuda_find(void *_Atomic *slot, const char *name) {
	void *f = atomic_load_explicit(slot, memory_order_acquire);
	if (f)
		return f;
	pthread_once(&once, load);
	if (!library)
		return NULL;
	f = dlsym(library, name);
	atomic_store_explicit(slot, f, memory_order_release);
	return f;
}

CUresult ndbridge_cuda_missing(void) {
	pthread_once(&once, load);
	return library ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_STUB_LIBRARY;
}

const char *ndbridge_cuda_reason(void) {
	pthread_once(&once, load);
	return reason;
}

/*
 * gorgonia.org/cu calls this when its package is initialised and ends the process if it fails. A
 * plugin must not even touch CUDA then: its program may be about to fork, and an initialised CUDA
 * does not survive that.
 */
CUresult cuInit(unsigned int flags) {
	(void)flags;
	return CUDA_SUCCESS;
}

/* What is loaded, for ndbridge_cuda_active. */
struct loaded {
	unsigned long long absent; /* the driver was not among the first so many libraries */
	unsigned long long adds;   /* how many this process has ever loaded */
	int driver;
};

/* Wherever the driver's file lies, it is called libcuda.so, with a version. */
static int look(struct dl_phdr_info *info, size_t size, void *found) {
	(void)size;
	struct loaded *l = found;
	l->adds = info->dlpi_adds;
	l->driver = strstr(info->dlpi_name, "libcuda.so") != NULL;
	return l->driver || l->adds == l->absent;
}

int ndbridge_cuda_active(void) {
	static atomic_bool seen;
	static atomic_ullong absent;
	if (atomic_load(&seen))
		return 1;
	struct loaded l = {.absent = atomic_load(&absent)};
	dl_iterate_phdr(look, &l);
	/* dlopen would search folders for it, which takes half a millisecond. */
	void *lib = l.driver ? dlopen(library_name, RTLD_NOW | RTLD_NOLOAD) : NULL;
	if (!lib) {
		atomic_store(&absent, l.adds);
		return 0;
	}
	__typeof__(cuDeviceGetCount) *count = dlsym(lib, "cuDeviceGetCount");
	int n;
	int active = count && count(&n) == CUDA_SUCCESS;
	dlclose(lib); /* gives back our reference only */
	if (active)
		atomic_store(&seen, 1);
	return active;
}
