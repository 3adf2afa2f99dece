/* Files: memfds that can neither shrink nor grow, mapped where the blocks lie. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

struct segment *segments;
uint32_t segment_count = 1;
_Atomic uint32_t descriptor_count;

static uint32_t unused; /* list of unused records */
static uint64_t last_id;

/* The kernel's own call, since older libcs have no function of this name. */
static int file_status(int fd, struct stat *status) { return (int)syscall(SYS_fstat, fd, status); }

/* A quarter of what the process may open, so that the program hardly notices. */
static uint32_t descriptor_budget(void) {
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 64;
	if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > 16384)
		return 4096; /* also bounds the number of mappings, which the kernel limits to 65530 */
	return (uint32_t)limit.rlim_cur / 4;
}

/* The last eighth of the budget is for pools. */
bool segment_own_allowed(void) {
	uint32_t budget = descriptor_budget();
	return atomic_load(&descriptor_count) + budget / 8 + 1 < budget;
}

/* memfd_create, or -1. Notices if it is forbidden for good. */
static int new_memfd(void) {
	int fd = (int)syscall(SYS_memfd_create, "ndbridge-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL) /* Linux before 6.3 */
		fd = (int)syscall(SYS_memfd_create, "ndbridge-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0) {
		if (errno == EPERM || errno == EACCES || errno == ENOSYS)
			heap_off(NDHEAP_NO_MEMFD);
		return -1;
	}
	int high = fd < FIRST_DESCRIPTOR ? fcntl(fd, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR) : -1;
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	return fd;
}

/* A file of that size, sealed from birth: whoever maps it can never be hit by SIGBUS. */
static int new_file(uint64_t size) {
	struct rlimit limit;
	/* Beyond this limit ftruncate would raise SIGXFSZ, which ends a process. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < size)
		return -1;
	if (atomic_load(&descriptor_count) >= descriptor_budget())
		return -1;
	int fd = new_memfd();
	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)size) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static uint32_t new_record(void) {
	if (unused) {
		uint32_t index = unused;
		unused = segments[index].next;
		return index;
	}
	if (!segments_grow(segment_count + 1))
		return 0;
	return segment_count++;
}

static bool map(struct segment *s, int fd) {
	struct stat status;
	if (file_status(fd, &status) != 0)
		return false;
	void *at = mmap((void *)s->base, s->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0);
	if (at == MAP_FAILED)
		return false;
	if (s->size >= HUGE_PAGE)
		madvise(at, s->size, MADV_HUGEPAGE); /* has effect where shmem_enabled is "advise" */
	s->fd = fd;
	s->device = status.st_dev;
	s->inode = status.st_ino;
	return true;
}

uint32_t segment_open(uint64_t size, bool pool) {
	uintptr_t base = range_take(size, size >= HUGE_PAGE ? HUGE_PAGE : GRANULE);
	if (!base)
		return 0;
	uint32_t index = new_record();
	int fd = index ? new_file(size) : -1;
	if (fd < 0)
		goto no_file;
	struct segment *s = &segments[index];
	*s = (struct segment){.base = base, .size = size, .pool = pool, .state = SEGMENT_SHARED};
	if (!map(s, fd))
		goto no_map;
	s->id = ++last_id;
	atomic_fetch_add(&descriptor_count, 1);
	return index;

no_map:
	close(fd);
no_file:
	if (index) {
		segments[index] = (struct segment){.next = unused, .fd = -1, .state = SEGMENT_UNUSED};
		unused = index;
	}
	range_give(base, size);
	return 0;
}

bool segment_fd_valid(const struct segment *s) {
	struct stat status;
	return s->fd >= 0 && file_status(s->fd, &status) == 0 && status.st_dev == s->device &&
	       status.st_ino == s->inode;
}

uint64_t segment_resident(const struct segment *s) {
	struct stat status;
	if (s->fd < 0 || file_status(s->fd, &status) != 0 || status.st_dev != s->device || status.st_ino != s->inode)
		return UINT64_MAX;
	return (uint64_t)status.st_blocks * 512;
}

void segment_close_fd(struct segment *s) {
	if (s->fd < 0)
		return;
	if (segment_fd_valid(s)) /* else somebody closed it, and perhaps it is another file by now */
		close(s->fd);
	s->fd = -1;
	atomic_fetch_sub(&descriptor_count, 1);
}

void segment_forget(uint32_t index) {
	struct segment *s = &segments[index];
	segment_close_fd(s);
	owners_set(s->base, s->size, 0);
	range_give(s->base, s->size);
	*s = (struct segment){.next = unused, .fd = -1, .state = SEGMENT_UNUSED};
	unused = index;
}
