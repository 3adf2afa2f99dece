/*
 * Programs that close descriptors by number: daemons close all that they did not open, and Python's
 * os.closerange does it for them. For these calls the heap's descriptors do not exist. Whoever makes
 * the system call without the libc still closes them: such memory can no longer be shared, but
 * nothing is lost (fork.c).
 *
 * All of this runs between vfork and exec, and in signal handlers: it takes no lock and writes nothing.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap.h"

#ifndef SYS_close_range
#define SYS_close_range 436 /* on all architectures */
#endif
#define CLOEXEC 4 /* CLOSE_RANGE_CLOEXEC: so are the heap's */

static bool ours(unsigned fd) {
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

static int close_all(unsigned first, unsigned last, int flags) {
	return (int)syscall(SYS_close_range, first, last, flags);
}

EXPORTED int close_range(unsigned first, unsigned last, int flags) {
	unsigned end = flags & CLOEXEC ? 0 : atomic_load_explicit(&descriptor_end, memory_order_relaxed);
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
	void (*next_closefrom)(int) = (void (*)(int))dlsym(RTLD_NEXT, "closefrom"); /* Linux before 5.9 */
	if (next_closefrom)
		next_closefrom(low);
}
