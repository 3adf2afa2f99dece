/* Loads libcuda.so.1 at the first call of a driver function. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "stub.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

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

/* Takes from the first library how many this process has ever loaded. */
static int first_library(struct dl_phdr_info *info, size_t size, void *adds) {
	(void)size;
	*(unsigned long long *)adds = info->dlpi_adds;
	return 1;
}

int ndbridge_cuda_active(void) {
	static atomic_bool seen;
	static atomic_ullong absent; /* the driver was not among so many libraries; looking searches folders */
	if (atomic_load(&seen))
		return 1;
	unsigned long long adds = 0;
	dl_iterate_phdr(first_library, &adds);
	if (adds == atomic_load(&absent))
		return 0;
	void *lib = dlopen(library_name, RTLD_NOW | RTLD_NOLOAD);
	if (!lib) {
		atomic_store(&absent, adds);
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
