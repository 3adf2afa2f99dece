// The plugin's threads: those of Go's runtime, and the guard. Where the shared heap is preloaded, it creates them, and Python
// does not warn the program of them when it forks.
#define _GNU_SOURCE
#include "process.h"

#include <dlfcn.h>
#include <errno.h>

static int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

// Runs before Go's own constructor, which creates the first thread: to look names up in threads while the library
// is being loaded would make them wait for each other.
__attribute__((constructor(101))) static void find_create(void) {
	*(void **)&create = dlsym(RTLD_DEFAULT, "ndheap_create_thread");
	if (!create) *(void **)&create = dlsym(RTLD_DEFAULT, "pthread_create");
}

// Stands for the libc's in this library alone, Go's runtime included: hidden, it takes nobody else's calls.
HIDDEN int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*run)(void *),
                          void *restrict argument) {
	return create ? create(thread, attributes, run, argument) : ENOSYS;
}
