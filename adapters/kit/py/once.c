#define _GNU_SOURCE
#include "capi.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// The child has one thread, this one, and nobody to return to: in Go nothing works any more. It ends as a process
// whose last thread does.
ndpy ndpy_call_once(ndpy f, ndpy args, ndpy kw, const uint64_t *blocked) {
	pid_t self = getpid();
	bool ours = blocked && syscall(SYS_gettid) != self;
	sigset_t own, its;
	if (ours) {
		sigemptyset(&its);
		memcpy(&its, blocked, sizeof *blocked); // it begins with the kernel's bits
		pthread_sigmask(SIG_SETMASK, &its, &own);
	}
	ndpy result = ndpy_call(f, args, kw);
	if (getpid() != self) _exit(0);
	if (ours) pthread_sigmask(SIG_SETMASK, &own, NULL);
	return result;
}
