/*
 * The keeper: a thread that has a table of descriptors of its own, and shares all else with the program.
 *
 * Promotion opens files while the program's threads run. Whatever opens a file in the program's table has the lowest free
 * number for a moment, on which the program may count, wherever the file is moved to. So promotion runs on the keeper, and
 * the files of promoted blocks stay in its table. Others in the process reach them by /proc/self/task. The program cannot
 * close them.
 *
 * It begins with the first promotion that the kernel may allow. Whoever has something for it to do is the only one: either
 * it has begun a promotion, or it has halted promotion and has all locks.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap.h"

#ifndef SYS_close_range
#define SYS_close_range 436 /* on all architectures */
#endif
#define UNSHARE 2 /* CLOSE_RANGE_UNSHARE */

enum { NOT_BEGUN, REFUSED, RUNS };
static _Atomic uint32_t begun;
static pid_t thread; /* if it RUNS */

enum { NOTHING, GIVEN };
static _Atomic uint32_t order;
static struct {
	bool (*run)(const void *);
	const void *argument;
	bool result;
} job;

static _Atomic uint32_t bell; /* rung for an order, for what is to be closed, and after a fork */
static _Atomic bool forked;
static _Atomic uint64_t unwanted[DESCRIPTOR_NUMBERS / 64];
static _Atomic uint32_t kept; /* files */

static void wait_while(const _Atomic uint32_t *word, uint32_t value) {
	while (atomic_load(word) == value)
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(const _Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }

static void close_unwanted(void) {
	for (int i = 0; i < (int)(DESCRIPTOR_NUMBERS / 64); i++)
		for (uint64_t bits = atomic_exchange(&unwanted[i], 0); bits; bits &= bits - 1)
			syscall(SYS_close, i * 64 + __builtin_ctzll(bits));
}

static void *keep(void *unused) {
	thread = (pid_t)syscall(SYS_gettid);
	bool alone = syscall(SYS_close_range, 0, ~0u, UNSHARE) == 0; /* Linux 5.9 */
	atomic_store(&begun, alone ? RUNS : REFUSED);
	wake(&begun);
	while (alone) {
		uint32_t heard = atomic_load(&bell);
		close_unwanted();
		if (atomic_load(&order) == GIVEN) {
			job.result = job.run(job.argument);
			atomic_store(&order, NOTHING);
			wake(&order);
		}
		if (atomic_exchange(&forked, false))
			trim_aside();
		wait_while(&bell, heard);
	}
	return unused;
}

static void ring(void) {
	atomic_fetch_add(&bell, 1);
	wake(&bell);
}

/* Whether the keeper is a thread of this process: a child of a bare system call has none, and has run no handler of forks. */
static bool here(void) { return syscall(SYS_tgkill, syscall(SYS_getpid), thread, 0) == 0; }

bool keeper_run(bool (*run)(const void *), const void *argument) {
	if (atomic_load(&begun) == NOT_BEGUN) {
		if (threads_run(keep, NULL) != 0)
			return false;
		wait_while(&begun, NOT_BEGUN);
	}
	if (atomic_load(&begun) == REFUSED || !here())
		return false;
	job.run = run, job.argument = argument;
	atomic_store(&order, GIVEN);
	ring();
	wait_while(&order, GIVEN);
	return job.result;
}

bool keeper_tidies(void) {
	if (atomic_load(&begun) != RUNS || !here())
		return false;
	atomic_store(&forked, true);
	ring();
	return true;
}

int keeper_task(void) { return thread; }

uint32_t keeper_count(void) { return atomic_load(&kept); }

int keeper_take(int fd) {
	int number = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); /* where nobody writes a message */
	syscall(SYS_close, fd);
	if (number >= (int)DESCRIPTOR_NUMBERS) {
		syscall(SYS_close, number);
		return -1;
	}
	atomic_fetch_add(&kept, number >= 0);
	return number;
}

void keeper_close(int fd) {
	atomic_fetch_sub(&kept, 1);
	if (atomic_load(&begun) != RUNS)
		return; /* it was the parent's */
	atomic_fetch_or(&unwanted[fd / 64], (uint64_t)1 << fd % 64);
	ring();
}

void keeper_forget(void) {
	atomic_store(&begun, NOT_BEGUN);
	atomic_store(&order, NOTHING);
	atomic_store(&forked, false);
	memset(unwanted, 0, sizeof unwanted);
}
