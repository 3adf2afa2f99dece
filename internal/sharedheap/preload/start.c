/* The constructor: reads the configuration, cleans the environment, asks to be told of forks. */
#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap.h"

EXPORTED const uint32_t ndheap_abi = NDHEAP_ABI;

_Atomic size_t heap_threshold = SIZE_MAX;
size_t heap_threshold_configured = DEFAULT_THRESHOLD;
_Atomic uint32_t heap_state = NDHEAP_IDLE;

void heap_off(enum ndheap_state why) {
	atomic_store(&heap_threshold, SIZE_MAX);
	atomic_store(&heap_state, why);
}

/* Bytes in decimal; anything else leaves the default. 0 switches the heap off. */
static void configure_threshold(const char *text) {
	if (!text || *text < '0' || *text > '9')
		return;
	char *end;
	unsigned long long value = strtoull(text, &end, 10);
	if (*end)
		return;
	heap_threshold_configured = value && value < SMALLEST_THRESHOLD ? SMALLEST_THRESHOLD : value;
}

/*
 * Whether this process is a Python interpreter. Other programs only pass the library on: a shell
 * script that stands for python, env, a launcher.
 */
static bool in_python(void) {
	return next_dlsym(RTLD_DEFAULT, "Py_BytesMain") || next_dlsym(RTLD_DEFAULT, "Py_Main") ||
	       next_dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
}

/* From here on the heap is of use to a program that has loaded it late. The environment is the program's, which may be changing it. */
EXPORTED int ndheap_join(void *self, const char *promote, const char *tunables) {
	static bool joined; /* by the parent, in a forked child */
	if (!heap_late || (!joined && (!links_to_libc(self) || pthread_atfork(fork_prepare, fork_parent, fork_child) != 0)))
		return -1;
	if (!joined)
		callers_configure(NULL);
	joined = true;
	promote_configure(promote);
	outside_start(tunables);
	return 0;
}

/* Early, so that among the fork handlers ours runs last before a fork and first after it. */
__attribute__((constructor(101))) static void heap_start(void) {
	lookups_start();
	next_resolve();
	if (heap_late)
		return;
	configure_threshold(getenv("NDBRIDGE_HEAP_THRESHOLD"));
	callers_configure(getenv("NDBRIDGE_HEAP_LIBRARIES"));
	promote_configure(getenv("NDBRIDGE_HEAP_PROMOTE"));
	outside_start(getenv("GLIBC_TUNABLES"));
	if (in_python()) {
		threads_start((uintptr_t)next_dlsym(RTLD_DEFAULT, "PyOS_AfterFork_Parent"));
		const char *directory = getenv("NDBRIDGE_HEAP_LISTEN"), *name = getenv("NDBRIDGE_HEAP_NAME"), *say = getenv("NDBRIDGE_HEAP_SAY");
		const char *host = getenv("NDBRIDGE_HEAP_HOST"); /* "1": this process has one; "0": the one that has started it */
		if (!directory || host) /* else what it starts shall have all this in its environment, too */
			starts_keep();
		listen_start(directory, name, say, host && *host == '1');
	}
	if (heap_threshold_configured == 0) {
		heap_off(NDHEAP_OFF);
		return;
	}
	if (pthread_atfork(fork_prepare, fork_parent, fork_child) != 0) {
		heap_off(NDHEAP_OFF); /* without them a fork would be wrong */
		return;
	}
	atomic_store(&heap_threshold, heap_threshold_configured);
}

static char *append_hex(char *to, uintptr_t value) {
	int shift = 60;
	while (shift > 0 && (value >> shift) == 0)
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		*to++ = "0123456789abcdef"[value >> shift & 15];
	return to;
}

_Noreturn void die(const char *text, const void *p) {
	char message[256] = "libndbridge-heap.so: ";
	char *to = message + strlen(message);
	for (; *text && to < message + 200; text++)
		*to++ = *text;
	if (p) {
		memcpy(to, ": 0x", 4);
		to = append_hex(to + 4, (uintptr_t)p);
	}
	*to++ = '\n';
	ssize_t written = write(STDERR_FILENO, message, (size_t)(to - message));
	(void)written; /* there is nobody left to tell */
	abort();
}

void lock_slow(struct lock *l) {
	while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0)
		syscall(SYS_futex, &l->word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

void unlock_slow(struct lock *l) { syscall(SYS_futex, &l->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }
