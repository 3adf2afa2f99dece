/* Files: memfds that cannot shrink, mapped where the blocks lie. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

struct segment *segments;
uint32_t segment_count = 1;

static uint32_t unused; /* list of unused records */
static uint64_t last_id;

/* memfd_create, or -1. Notices if it is forbidden for good. */
static int new_memfd(bool kept, uint64_t *inode) {
	int fd = (int)syscall(SYS_memfd_create, "ndbridge-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL) /* Linux before 6.3 */
		fd = (int)syscall(SYS_memfd_create, "ndbridge-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS))
		heap_off(NDHEAP_NO_MEMFD);
	return fd < 0 ? -1 : descriptor_take(fd, kept, inode);
}

/* ftruncate, but without the SIGXFSZ that ends a process beyond RLIMIT_FSIZE. */
static bool set_size(int fd, uint64_t size) {
	struct rlimit limit;
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < size)
		return false;
	return ftruncate(fd, (off_t)size) == 0;
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

static bool map(uintptr_t base, uint64_t size, int fd) {
	void *at = next.mmap((void *)base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0);
	if (at != MAP_FAILED && size >= HUGE_PAGE)
		next.madvise(at, size, MADV_HUGEPAGE); /* has effect where shmem_enabled is "advise" */
	return at != MAP_FAILED;
}

static uintptr_t take_addresses(uint64_t size) { return range_take(size, size >= HUGE_PAGE ? HUGE_PAGE : GRANULE); }

void segment_close_fd(struct segment *s) {
	if (s->fd >= 0 && s->kept)
		keeper_close(s->fd);
	else if (s->fd >= 0)
		descriptor_close(s->fd, s->inode);
	s->fd = -1;
}

void segment_abandon(uint32_t index) {
	struct segment *s = &segments[index];
	segment_close_fd(s);
	*s = (struct segment){.next = unused, .fd = -1, .state = SEGMENT_UNUSED};
	unused = index;
}

uint32_t segment_adopt(uintptr_t base, uint64_t size, bool kept) {
	uint32_t index = new_record();
	if (!index)
		return 0;
	struct segment *s = &segments[index];
	*s = (struct segment){.base = base, .size = size, .state = SEGMENT_SHARED, .kept = kept};
	s->fd = new_memfd(kept, &s->inode);
	/* Sealed from birth: whoever maps it can never be hit by SIGBUS. */
	if (s->fd < 0 || !set_size(s->fd, size) || fcntl(s->fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
		segment_abandon(index);
		return 0;
	}
	s->id = ++last_id;
	return index;
}

uint32_t segment_open(uint64_t size, bool pool) {
	uintptr_t base = take_addresses(size);
	uint32_t index = base ? segment_adopt(base, size, false) : 0;
	if (index && !map(base, size, segments[index].fd)) {
		segment_abandon(index);
		index = 0;
	}
	if (index)
		segments[index].pool = pool;
	else if (base)
		range_give(base, size);
	return index;
}

bool segment_grow(struct segment *s, uint64_t size) {
	uintptr_t base = !s->kept && segment_fd_valid(s) ? take_addresses(size) : 0;
	if (!base)
		return false;
	if (!set_size(s->fd, size) || !map(base, size, s->fd)) {
		range_give(base, size);
		return false;
	}
	/*
	 * The same pages are there now. Not by mremap: it would leave a hole, and what another thread maps
	 * into it before it is closed would lie among the addresses that are taken for the heap's.
	 */
	range_clear(s->base, s->size);
	range_give(s->base, s->size);
	s->base = base;
	s->size = size;
	s->id = ++last_id; /* who has mapped the file before has not mapped all of it */
	return true;
}

bool segment_fd_valid(const struct segment *s) {
	struct stat status;
	return s->fd >= 0 && (s->kept || descriptor_is(s->fd, s->inode, &status));
}

uint64_t segment_resident(const struct segment *s) {
	struct stat status;
	if (s->fd < 0 || s->kept || !descriptor_is(s->fd, s->inode, &status))
		return UINT64_MAX;
	return (uint64_t)status.st_blocks * 512;
}

void segment_forget(uint32_t index) {
	struct segment *s = &segments[index];
	owners_set(s->base, s->size, 0);
	range_give(s->base, s->size);
	segment_abandon(index);
}
