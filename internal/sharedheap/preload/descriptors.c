/*
 * The heap's descriptors: how many there are, which numbers they have, and which file each one is.
 *
 * The program must not notice them. So they lie above the numbers that select(2) can handle, and a
 * program that closes all descriptors that it did not open leaves them open (closing.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap.h"

_Atomic uint64_t descriptor_held[DESCRIPTOR_NUMBERS];
_Atomic uint32_t descriptor_end;
static _Atomic uint32_t open_count;
static _Atomic uint64_t device; /* all memfds lie in the same file system */

/* The numbers [first, first + count) that the heap may use. */
struct budget {
	uint32_t first, count;
};

/*
 * Above the numbers of select(2) if the limit on open files leaves enough of them, a quarter of those
 * at most. Else the highest ones: the program can then open an eighth fewer files than without us.
 */
static struct budget budget(void) {
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return (struct budget){0};
	uint32_t end = limit.rlim_cur < DESCRIPTOR_NUMBERS ? (uint32_t)limit.rlim_cur : DESCRIPTOR_NUMBERS;
	if (end >= 2 * FD_SETSIZE) {
		uint32_t quarter = (end - FD_SETSIZE) / 4;
		/* The bound also limits the mappings, of which the kernel allows 65530. */
		return (struct budget){FD_SETSIZE, quarter < 4096 ? quarter : 4096};
	}
	return (struct budget){end - end / 8, end / 8};
}

uint32_t descriptor_count(void) { return atomic_load(&open_count) + keeper_count(); }

uint64_t descriptor_device(void) { return atomic_load(&device); }

/* Blocks that are not large leave a quarter to those that are, and all of them an eighth to pools. */
bool descriptor_spare(size_t size) {
	uint32_t count = budget().count;
	return descriptor_count() + 1 + count / (size < 64 * MIB ? 4 : 8) < count;
}

int descriptor_raise(int fd) {
	int high = fcntl(fd, F_DUPFD_CLOEXEC, (int)budget().first);
	syscall(SYS_close, fd);
	if (high >= (int)DESCRIPTOR_NUMBERS) {
		syscall(SYS_close, high);
		return -1;
	}
	uint32_t end = atomic_load(&descriptor_end);
	while (high >= (int)end && !atomic_compare_exchange_weak(&descriptor_end, &end, (uint32_t)high + 1))
		;
	return high;
}

int descriptor_take(int fd, bool kept, uint64_t *inode) {
	struct stat status;
	if (descriptor_count() >= budget().count || syscall(SYS_fstat, fd, &status) != 0) {
		syscall(SYS_close, fd);
		return -1;
	}
	*inode = status.st_ino;
	atomic_store(&device, status.st_dev);
	if (kept)
		return keeper_take(fd);
	int high = descriptor_raise(fd);
	if (high >= 0) {
		atomic_store(&descriptor_held[high], status.st_ino);
		atomic_fetch_add(&open_count, 1);
	}
	return high;
}

bool descriptor_is(int fd, uint64_t inode, struct stat *status) {
	/* The kernel's own call, since older libcs have no function of this name. */
	return syscall(SYS_fstat, fd, status) == 0 && status->st_ino == inode && status->st_dev == atomic_load(&device);
}

void descriptor_close(int fd, uint64_t inode) {
	struct stat status;
	atomic_fetch_sub(&open_count, 1);
	/* Else somebody closed it by a bare system call, and the number may be in use again. */
	if (atomic_load(&descriptor_held[fd]) == inode) {
		atomic_store(&descriptor_held[fd], 0);
		if (descriptor_is(fd, inode, &status))
			syscall(SYS_close, fd);
	}
}
