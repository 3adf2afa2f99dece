/*
 * Limits that a program sets on itself.
 *
 * Reserved addresses count against RLIMIT_AS. A program that sets that limit after the heap reserved
 * its addresses ("use no more than 4 GiB") would be far beyond it at once, and could allocate nothing
 * more. So the calls that set it give up what is not in use first.
 *
 * And a fork must be able to map all blocks privately. Private memory counts against RLIMIT_DATA, and beyond RLIMIT_AS the
 * kernel maps nothing, not even in place of something else. So before such a limit stands, blocks become private.
 *
 * A child of vfork sets its own limits, but the memory is its parent's: nothing of it changes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap.h"

/* Whether the process has more addresses than that, or may have. */
static bool beyond(rlim_t limit) {
	char text[32] = "";
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : next.read(fd, text, sizeof text - 1);
	if (fd >= 0)
		next.close(fd);
	return length <= 0 || strtoull(text, NULL, 10) > limit / (rlim_t)sysconf(_SC_PAGESIZE);
}

static void prepare(int resource, const struct rlimit *limit) {
	if (!limit || limit->rlim_cur == RLIM_INFINITY || !range_in_use())
		return;
	int saved = errno;
	if (resource == RLIMIT_AS) {
		lock(&fork_lock);
		lock(&supply_lock);
		range_shrink(limit->rlim_cur);
		unlock(&supply_lock);
		unlock(&fork_lock);
		if (beyond(limit->rlim_cur))
			fork_separate();
	} else if (resource == RLIMIT_DATA && atomic_load(&heap_state) == NDHEAP_ON) {
		heap_off(NDHEAP_NO_ADDRESSES);
		fork_separate();
	}
	errno = saved;
}

/* On 64-bit systems struct rlimit64 is struct rlimit, and the libc's functions are this system call. */
_Static_assert(sizeof(struct rlimit) == 16 && sizeof(struct rlimit64) == 16, "prlimit64 is not setrlimit here");

static int set(pid_t pid, int resource, const void *new, void *old) {
	if ((pid == 0 || pid == getpid()) && !range_borrowed())
		prepare(resource, new);
	return (int)syscall(SYS_prlimit64, pid, resource, new, old);
}

EXPORTED int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit) {
	return set(0, (int)resource, limit, NULL);
}

EXPORTED int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit) {
	return set(0, (int)resource, limit, NULL);
}

EXPORTED int prlimit(pid_t pid, __rlimit_resource_t resource, const struct rlimit *new, struct rlimit *old) {
	return set(pid, (int)resource, new, old);
}

EXPORTED int prlimit64(pid_t pid, __rlimit_resource_t resource, const struct rlimit64 *new, struct rlimit64 *old) {
	return set(pid, (int)resource, new, old);
}
