/*
 * Changes of the rights to pages, beside forks.
 *
 * A fork maps memory anew with the rights that it finds, so none may change in between. What changes them takes no lock: a
 * handler of signals may call mprotect, whatever the thread has locked that it interrupts. Both have all signals blocked meanwhile.
 */
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap.h"

enum { PAUSE_US = 20, LONGEST_US = 1000 * 1000 };

static _Atomic uint32_t changing; /* calls under way */
static _Atomic pid_t reader;      /* the thread that forks, or 0 */

static uint64_t block_signals(void) {
	uint64_t all = ~(uint64_t)0, mask = 0;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, sizeof mask);
	return mask;
}

static void restore_signals(uint64_t mask) { syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask); }

/* First say that it changes, then look: who reads does it the other way round. */
static bool begin(pid_t self) {
	atomic_fetch_add(&changing, 1);
	pid_t other = atomic_load(&reader);
	if (other == 0 || other == self)
		return true;
	atomic_fetch_sub(&changing, 1);
	return false;
}

uint64_t rights_change(void) {
	uint64_t mask = block_signals();
	pid_t self = (pid_t)syscall(SYS_gettid);
	while (!begin(self))
		usleep(PAUSE_US);
	return mask;
}

void rights_changed(uint64_t mask) {
	atomic_fetch_sub(&changing, 1);
	restore_signals(mask);
}

uint64_t rights_keep(void) {
	uint64_t mask = block_signals();
	atomic_store(&reader, (pid_t)syscall(SYS_gettid));
	/* A child of vfork that is killed in its call leaves it under way for ever. */
	for (int us = 0; atomic_load(&changing) && us < LONGEST_US; us += PAUSE_US)
		usleep(PAUSE_US);
	return mask;
}

void rights_let_change(uint64_t mask) {
	atomic_store(&reader, 0);
	restore_signals(mask);
}

void rights_forget(void) {
	atomic_store(&changing, 0);
	atomic_store(&reader, 0);
}
