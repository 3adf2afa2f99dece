#define _GNU_SOURCE
#include "signals.h"

#include <pthread.h>
#include <signal.h>

static bool needed;

static _Thread_local struct {
	bool in_go;
	sigset_t before; // if it is in Go: what was blocked then
} thread;

void ndpy_guard_go(void) { needed = true; }

void ndpy_into_go(void) {
	if (!needed) return;
	sigset_t blocked;
	sigfillset(&blocked);
	// Go turns those faults into panics that it can recover from.
	sigdelset(&blocked, SIGSEGV);
	sigdelset(&blocked, SIGBUS);
	sigdelset(&blocked, SIGFPE);
	pthread_sigmask(SIG_BLOCK, &blocked, &thread.before);
	thread.in_go = true;
}

void ndpy_out_of_go(void) {
	if (!thread.in_go) return;
	thread.in_go = false;
	pthread_sigmask(SIG_SETMASK, &thread.before, NULL);
}

bool ndpy_into_python(void) {
	bool guarded = thread.in_go;
	ndpy_out_of_go();
	return guarded;
}

void ndpy_out_of_python(bool guarded) {
	if (guarded) ndpy_into_go();
}
