/*
 * Programs that close descriptors by number: daemons close all that they did not open, and Python's
 * os.closerange does it for them. For these calls the descriptors of the heap and of the plugin do not exist. Whoever makes
 * the system call without the libc still closes them: such memory can no longer be shared, but
 * nothing is lost (fork.c). Programs that put a file at such a number (dup2) are told that it is in use: what the plugin
 * writes would land in their file.
 *
 * All of this runs between vfork and exec, and in signal handlers: it takes no lock and writes nothing.
 */
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap.h"

#ifndef SYS_close_range
#define SYS_close_range 436 /* on all architectures */
#endif
#define CLOEXEC 4 /* CLOSE_RANGE_CLOEXEC: so are the heap's */

/* The plugin's: descriptors, as it gave them, by number. */
enum { HOLDS = 64 };
static struct {
	int fd;
	dev_t device;
	ino_t inode;
} holds[HOLDS];
static _Atomic unsigned holds_end;

static _Atomic pid_t holder; /* the process that they are of */

static bool is_held(unsigned at) {
	struct stat status;
	return syscall(SYS_fstat, holds[at].fd, &status) == 0 && status.st_dev == holds[at].device && status.st_ino == holds[at].inode;
}

EXPORTED void ndheap_hold_fd(int fd) {
	unsigned n = atomic_load(&holds_end);
	struct stat status;
	atomic_store(&holder, getpid());
	if (fd < 0)
		atomic_store(&holds_end, 0);
	if (fd < 0 || syscall(SYS_fstat, fd, &status) != 0)
		return;
	unsigned at = 0;
	while (at < n && is_held(at) && holds[at].fd != fd) /* what was closed makes room */
		at++;
	if (at == HOLDS)
		return;
	holds[at].inode = 0;
	holds[at].fd = fd, holds[at].device = status.st_dev, holds[at].inode = status.st_ino;
	if (at == n)
		atomic_store(&holds_end, n + 1);
}

static bool held(unsigned fd) {
	unsigned n = atomic_load_explicit(&holds_end, memory_order_acquire);
	for (unsigned i = 0; i < n; i++)
		if ((unsigned)holds[i].fd == fd && is_held(i))
			return true;
	return false;
}

static bool ours(unsigned fd) {
	if (held(fd) || listen_owns_fd((int)fd))
		return true;
	if (likely(fd >= atomic_load_explicit(&descriptor_end, memory_order_relaxed)))
		return false;
	uint64_t inode = atomic_load_explicit(&descriptor_held[fd], memory_order_relaxed);
	struct stat status;
	return inode && descriptor_is((int)fd, inode, &status);
}

EXPORTED int close(int fd) {
	if (!ours((unsigned)fd))
		return next.close(fd);
	errno = EBADF;
	return -1;
}

/* Whether a number cannot be given to another file: in a child it can. */
static bool busy(int fd) {
	if (!ours((unsigned)fd) || getpid() != atomic_load(&holder))
		return false;
	errno = EBUSY;
	return true;
}

EXPORTED int dup2(int from, int to) {
	if (unlikely(!next.dup2))
		next_resolve();
	return from != to && busy(to) ? -1 : next.dup2(from, to);
}

EXPORTED int dup3(int from, int to, int flags) {
	if (unlikely(!next.dup3))
		next_resolve();
	return from != to && busy(to) ? -1 : next.dup3(from, to, flags);
}

static int close_all(unsigned first, unsigned last, int flags) {
	return (int)syscall(SYS_close_range, first, last, flags);
}

EXPORTED int close_range(unsigned first, unsigned last, int flags) {
	unsigned end = flags & CLOEXEC ? 0 : atomic_load_explicit(&descriptor_end, memory_order_relaxed);
	if (!(flags & CLOEXEC))
		for (unsigned i = 0; i < atomic_load(&holds_end); i++)
			end = (unsigned)holds[i].fd >= end ? (unsigned)holds[i].fd + 1 : end;
	for (unsigned fd = first; fd <= last && fd < end; fd++) {
		if (!ours(fd))
			continue;
		if (fd > first && close_all(first, fd - 1, flags) != 0)
			return -1;
		first = fd + 1;
		if (fd == last)
			return 0;
	}
	return close_all(first, last, flags);
}

void closefrom(int low); /* of libcs from 2021 on */

EXPORTED void closefrom(int low) {
	if (close_range(low > 0 ? (unsigned)low : 0, ~0u, 0) == 0)
		return;
	if (next.closefrom) /* Linux before 5.9 */
		next.closefrom(low);
}
