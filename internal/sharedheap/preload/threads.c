/*
 * The plugin's threads, and Python's warning of forks in processes with threads.
 *
 * Since 3.12 Python warns of each fork if /proc/self/stat says that the process has several threads. A program
 * must not be warned of threads that it does not know of and that do its forks no harm. So what Python itself
 * reads there leaves the plugin's threads out. All others read the truth, and so does Python whenever it is not
 * certain which threads are whose.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap.h"

/* The plugin's threads. The id of one that has ended is no thread's of this process, and another one takes its place. */
enum {
	THREADS = 1024,
	STACK = 1 << 20, /* larger ones may lie in a huge page */
};
static struct {
	void *(*run)(void *);
	void *argument;
	_Atomic pid_t id; /* 0: there was none yet; BEGINS */
} threads[THREADS];
static _Atomic unsigned begun, known; /* threads, and those of them that have told their ids, or could not be */
static _Atomic unsigned places; /* that were ever taken */

enum { BEGINS = -1 };

static bool is_alive(pid_t id) { return id > 0 && syscall(SYS_tgkill, getpid(), id, 0) == 0; }

/* Takes a place that nobody has. THREADS: there is none. */
static unsigned take_place(void) {
	for (unsigned n = 0; n < THREADS; n++) {
		pid_t id = atomic_load(&threads[n].id);
		if (id == BEGINS || is_alive(id) || !atomic_compare_exchange_strong(&threads[n].id, &id, BEGINS))
			continue;
		for (unsigned most = atomic_load(&places); most <= n && !atomic_compare_exchange_weak(&places, &most, n + 1);) {
		}
		return n;
	}
	return THREADS;
}

static void *run_thread(void *place) {
	unsigned n = (unsigned)(uintptr_t)place;
	void *(*run)(void *) = threads[n].run, *argument = threads[n].argument;
	atomic_store(&threads[n].id, (pid_t)syscall(SYS_gettid));
	atomic_fetch_add(&known, 1);
	return run(argument);
}

EXPORTED int ndheap_create_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
	unsigned n = take_place();
	if (n == THREADS)
		return next.pthread_create(thread, attributes, run, argument);
	atomic_fetch_add(&begun, 1);
	threads[n].run = run, threads[n].argument = argument;
	int failed = next.pthread_create(thread, attributes, run_thread, (void *)(uintptr_t)n);
	if (failed) {
		atomic_store(&threads[n].id, 0);
		atomic_fetch_add(&known, 1);
	}
	return failed;
}

int threads_run(void *(*run)(void *), void *argument) {
	sigset_t all, before;
	pthread_attr_t attributes;
	pthread_t thread;
	if (!next.pthread_create)
		return ENOSYS;
	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	int (*set_size)(pthread_attr_t *, size_t);
	*(void **)&set_size = next_dlsym(RTLD_DEFAULT, "pthread_attr_setstacksize"); /* of another library in older libcs */
	if (set_size)
		set_size(&attributes, STACK);
	sigprocmask(SIG_SETMASK, &all, &before); /* signals are for the program's own threads */
	int failed = ndheap_create_thread(&thread, &attributes, run, argument);
	sigprocmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return failed;
}

/* In a forked child there is none: the ids are of its parent's threads. */
static int count_alive(void) {
	int alive = 0;
	for (unsigned n = 0, end = atomic_load(&places); n < end; n++) alive += is_alive(atomic_load(&threads[n].id));
	return alive;
}

#define STAT "/proc/self/stat"
enum { STAT_SIZE = 1024, THREADS_FIELD = 20, TRIES = 10000, PAUSE_US = 100 };

/* Reads the line and where in it the number of threads is; gives that number, or 0. */
static int read_stat(char line[STAT_SIZE], char **number, char **rest) {
	int fd = open(STAT, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, line, STAT_SIZE - 1);
	if (fd >= 0)
		close(fd);
	if (length < 0)
		return 0;
	line[length] = '\0';
	*number = strrchr(line, ')'); /* ends the second field, which may itself have spaces and parentheses */
	for (int field = 2; *number && field < THREADS_FIELD; field++) {
		*number = strchr(*number, ' ');
		*number += *number != NULL;
	}
	return *number ? (int)strtol(*number, rest, 10) : 0;
}

/* A stream of the line without the plugin's threads. NULL: it is not known which these are. */
static FILE *open_stat(void) {
	char line[STAT_SIZE], *number = line, *rest = line;
	for (int i = 0; i < TRIES; i++) {
		unsigned all = atomic_load(&known);
		int ours = count_alive(), others = read_stat(line, &number, &rest) - ours;
		/* If none came or went meanwhile, the numbers are of the same threads. */
		if (all != atomic_load(&begun) || ours != count_alive()) {
			usleep(PAUSE_US);
			continue;
		}
		FILE *stream = ours && others > 0 ? fmemopen(NULL, STAT_SIZE, "w+") : NULL;
		if (stream) {
			fprintf(stream, "%.*s%d%s", (int)(number - line), line, others, rest);
			rewind(stream);
		}
		return stream;
	}
	return NULL;
}

static struct span python; /* the program or the library that has Python's code */

static int find_python(struct dl_phdr_info *library, size_t size, void *function) {
	(void)size;
	struct span s = span_of(library, 0);
	if (!in_span(&s, *(uintptr_t *)function))
		return 0;
	python = s;
	return 1;
}

void threads_start(uintptr_t in_python) {
	if (in_python)
		dl_iterate_phdr(find_python, &in_python);
}

static FILE *open_for(const void *caller, const char *path, const char *mode) {
	bool asked = in_span(&python, (uintptr_t)caller) && strcmp(path, STAT) == 0 && strcmp(mode, "r") == 0;
	return asked ? open_stat() : NULL;
}

EXPORTED FILE *fopen(const char *restrict path, const char *restrict mode) {
	FILE *stream = open_for(CALLER, path, mode);
	return stream ? stream : next.fopen(path, mode);
}

EXPORTED FILE *fopen64(const char *restrict path, const char *restrict mode) {
	FILE *stream = open_for(CALLER, path, mode);
	return stream ? stream : next.fopen64(path, mode);
}
