// The plugin's threads: those of Go's runtime, and the guard. Where the shared heap is preloaded, it creates them, and Python
// does not warn the program of them when it forks.
#define _GNU_SOURCE
#include "lifecycle.h"
#include "process.h"

#include <dlfcn.h>
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>

static int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

// Runs before Go's own constructor, which creates the first thread: to look names up in threads while the library
// is being loaded would make them wait for each other.
__attribute__((constructor(101))) static void find_create(void) {
	*(void **)&create = dlsym(RTLD_DEFAULT, "ndheap_create_thread");
	if (!create) *(void **)&create = dlsym(RTLD_DEFAULT, "pthread_create");
}

HIDDEN int nd_create_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
	return create ? create(thread, attributes, run, argument) : ENOSYS;
}

// Stands for the libc's in this library alone, for Go's runtime: hidden, it takes nobody else's calls. Go ends the process, which is
// the program's, if there is no thread for it. The process may have used up its limit: Go waits until there is one.
HIDDEN int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*run)(void *),
                          void *restrict argument) {
	const struct timespec while_none = {.tv_nsec = 10000000};
	int failed;
	while ((failed = nd_create_thread(thread, attributes, run, argument)) == EAGAIN) nanosleep(&while_none, NULL);
	return failed;
}

HIDDEN int nd_run_thread(void *(*run)(void *)) {
	sigset_t all, before;
	pthread_attr_t attributes;
	pthread_t thread;
	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before); // signals are for the program's own threads
	int failed = nd_create_thread(&thread, &attributes, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return failed;
}

static void *stay(void *until) {
	while (sem_wait(until) < 0) {} // a signal came
	return NULL;
}

bool nd_threads_left(int n) {
	enum { MOST = 8 };
	pthread_t threads[MOST];
	sigset_t all, before;
	sem_t until;
	int made = 0;
	sem_init(&until, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); // signals are for the program's own threads
	while (made < n && made < MOST && nd_create_thread(&threads[made], NULL, stay, &until) == 0) made++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	for (int i = 0; i < made; i++) sem_post(&until);
	for (int i = 0; i < made; i++) pthread_join(threads[i], NULL);
	sem_destroy(&until);
	return made == n;
}
