/*
 * Python's lock at once. Up to 3.12 a thread that wants it waits for 5 ms (sys.setswitchinterval) before it asks the thread that has it, and
 * waits with pthread_cond_timedwait. The first such wait of a thread that hurries is over at once: so it asks first, and waits then.
 */
#include <pthread.h>

#include "heap.h"

static __thread bool hurries;

void hurry(bool on) { hurries = on; }

EXPORTED int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, const struct timespec *restrict end) {
	static const struct timespec past;
	if (unlikely(hurries)) {
		hurries = false;
		end = &past;
	}
	return next.pthread_cond_timedwait(condition, mutex, end);
}
