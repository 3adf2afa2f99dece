/*
 * What the program itself does to the mappings of the heap's memory.
 *
 * Private memory from malloc can be mapped over, taken away and advised about. Here others see the pages through
 * the file, and the heap would give the addresses to the next array. So before the program maps something over blocks,
 * or takes something from them away, they become private, as by a fork, and are not used again when they are freed. And
 * advice that would act on the file acts as it does on private memory.
 *
 * Whoever makes the system call without the libc is not seen here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif

static uintptr_t page_end(uintptr_t at) {
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	return (at + page - 1) & ~(page - 1);
}

/* Whether the program may change the mappings there. False, and errno says so: not in memory that is not its own. */
static bool yield(const void *p, size_t size) {
	uintptr_t from = (uintptr_t)p;
	if (outside_touches(p, size ? size : 1)) {
		outside_advise(p, size ? size : 1); /* else it might be promoted before the program has changed it */
		if (!fork_yield_outside(from, page_end(from + (size ? size : 1))))
			return errno = ENOMEM, false;
	}
	if (!range_touches(p, size))
		return true;
	if (page_end(from) != from)
		return errno = EINVAL, false;
	if (!fork_yield(from, page_end(from + (size ? size : 1))))
		return errno = ENOMEM, false;
	return true;
}

/* Sees to it that nobody else's memory comes to lie among the heap's, after something was taken away there. */
static void close_gap(const void *p, size_t size) {
	int saved = errno;
	void *want = (void *)page_end((uintptr_t)p); /* the end of a mapping that has shrunk */
	if (range_touches(p, size)) {
		void *got = next.mmap(want, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		if (got != MAP_FAILED && got != want) /* Linux before 4.17 */
			next.munmap(got, size);
	}
	errno = saved;
}

static void *map(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
	if (likely(!(flags & MAP_FIXED)))
		return next.mmap(at, size, protection, flags, fd, offset);
	if (!yield(at, size))
		return MAP_FAILED;
	void *p = next.mmap(at, size, protection, flags, fd, offset);
	if (p == MAP_FAILED)
		close_gap(at, size);
	return p;
}

EXPORTED void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
	return map(at, size, protection, flags, fd, offset);
}

_Static_assert(sizeof(off_t) == sizeof(off64_t), "mmap64 is mmap");

EXPORTED void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset) {
	return map(at, size, protection, flags, fd, offset);
}

EXPORTED int munmap(void *p, size_t size) {
	if (size && !yield(p, size))
		return -1;
	if (!size || !range_touches(p, size))
		return next.munmap(p, size);
	return range_clear((uintptr_t)p, size) ? 0 : -1;
}

EXPORTED void *mremap(void *old, size_t old_size, size_t size, int flags, ...) {
	va_list rest;
	va_start(rest, flags);
	void *to = flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) ? va_arg(rest, void *) : NULL;
	va_end(rest);
	if (!yield(old, old_size) || (flags & MREMAP_FIXED && !yield(to, size)))
		return MAP_FAILED;
	char *p = next.mremap(old, old_size, size, flags, to);
	if (p == MAP_FAILED)
		close_gap(to, size);
	else if (p != old)
		close_gap(old, old_size);
	else if (size < old_size)
		close_gap(p + size, old_size - size);
	return p;
}

EXPORTED void *shmat(int id, const void *at, int flags) {
	struct shmid_ds memory;
	if (flags & SHM_REMAP && (shmctl(id, IPC_STAT, &memory) != 0 || !yield(at, memory.shm_segsz)))
		return (void *)-1;
	return (void *)syscall(SYS_shmat, id, at, flags);
}

/* Rearranges the pages of a shared mapping: private memory has none. */
EXPORTED int remap_file_pages(void *p, size_t size, int protection, size_t page, int flags) {
	if (!range_touches(p, size))
		return (int)syscall(SYS_remap_file_pages, p, size, protection, page, flags);
	errno = EINVAL;
	return -1;
}

/* The block at an address, or 0. to: where to look for the next one. */
static uint32_t block_from(uintptr_t at, uintptr_t *to) {
	if (!range_owns((void *)at)) {
		uint32_t index = outside_block_from(at, to);
		if (at < range.base && *to > range.base)
			*to = range.base;
		return index;
	}
	uint32_t index = owner_of((void *)at);
	uintptr_t end = index ? blocks[index].base + class_size(blocks[index].class) : 0;
	*to = end > at ? end : (at / GRANULE + 1) * GRANULE;
	return index;
}

static int call_guard(uintptr_t p, size_t size, long call, long how, long more) {
	return call == SYS_mprotect ? next.mprotect((void *)p, size, (int)how) : (int)syscall(call, p, size, how, more);
}

/* Changes what may be done with pages, while none is being promoted: it would lose that. */
static int guard(uintptr_t p, size_t size, long call, long how, long more) {
	if (likely(!gate_guards((void *)p, size)))
		return call_guard(p, size, call, how, more);
	int saved = errno;
	promote_keep_off((void *)p, size);
	uint64_t mask = rights_change();
	for (uintptr_t at = p, end = at + size, to; at < end; at = to) {
		uint32_t index = block_from(at, &to);
		if (index)
			atomic_store_explicit(&blocks[index].guarded, true, memory_order_relaxed);
	}
	errno = saved;
	int result = call_guard(p, size, call, how, more);
	saved = errno;
	rights_changed(mask);
	promote_let_on();
	errno = saved;
	return result;
}

EXPORTED int mprotect(void *p, size_t size, int rights) { return guard((uintptr_t)p, size, SYS_mprotect, rights, 0); }

/* Of the libc from 2.27 on, as mlock2. */
int pkey_mprotect(void *p, size_t size, int rights, int key);
EXPORTED int pkey_mprotect(void *p, size_t size, int rights, int key) {
	return key == -1 ? mprotect(p, size, rights) : guard((uintptr_t)p, size, SYS_pkey_mprotect, rights, key);
}

EXPORTED int mlock(const void *p, size_t size) { return guard((uintptr_t)p, size, SYS_mlock, 0, 0); }

int mlock2(const void *p, size_t size, unsigned flags);
EXPORTED int mlock2(const void *p, size_t size, unsigned flags) { return guard((uintptr_t)p, size, SYS_mlock2, (long)flags, 0); }

/* Makes a part of a segment's file empty, of whose descriptor the keeper's table may be. Wants supply_lock. */
static bool punch(const struct segment *s, uintptr_t from, size_t size) {
	char name[64];
	int fd = s->fd;
	if (s->kept) {
		snprintf(name, sizeof name, "/proc/self/task/%d/fd/%d", keeper_task(), fd);
		fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC);
	} else if (!segment_fd_valid(s)) {
		return errno = EINVAL, false;
	}
	bool done = fd >= 0 && fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(from - s->base), (off_t)size) == 0;
	if (s->kept && fd >= 0)
		syscall(SYS_close, fd);
	return done;
}

/* Whether what is mapped at a block is to be asked for before a part of it is discarded: a frozen block with other rights, or other mappings. */
static bool is_mixed(const struct block *b) {
	return b->frozen == FROZEN_OVER || (b->frozen && atomic_load_explicit(&b->guarded, memory_order_relaxed));
}

/* Makes a part of a block read as zero, and its pages the system's, with the rights that it has. Wants supply_lock. */
static bool discard(const struct block *b, uintptr_t from, size_t size) {
	bool guarded = atomic_load_explicit(&b->guarded, memory_order_relaxed);
	/* The file still has what was there when the block was frozen, or when promotion was given up. */
	if (is_mixed(b))
		return maps_empty(from, from + size);
	if (b->frozen)
		return next.mmap((void *)from, size, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
	if (next.madvise((void *)from, size, MADV_REMOVE) == 0)
		return true;
	if (guarded) /* perhaps nobody may write there */
		return punch(&segments[b->segment], from, size);
	memset((void *)from, 0, size); /* forbidden here, or the pages are locked */
	return true;
}

/* The live block at an address, or NULL. to: where it ends, or where to look for the next one, and end at most. */
static const struct block *live_from(uintptr_t at, uintptr_t end, uintptr_t *to) {
	const struct block *b = &blocks[block_from(at, to)];
	*to = *to < end ? *to : end;
	return b != blocks && phase_of(atomic_load(&b->state)) == BLOCK_LIVE ? b : NULL;
}

static int discard_all(void *p, size_t size, int advice) {
	int saved = errno;
	bool done = true;
	const struct block *b;
	uintptr_t end = page_end((uintptr_t)p + size), to;
	promote_keep_off(p, size);
	lock(&supply_lock);
	lock(&outside_lock);
	/* What cannot be done later is not begun: the program would lose what it has written. */
	for (uintptr_t at = (uintptr_t)p; done && at < end; at = to)
		done = !(b = live_from(at, end, &to)) || !is_mixed(b) || maps_known();
	/* The kernel says whether it would do it to private memory, and does it to what is the program's own. */
	done = done && next.madvise(p, size, advice == MADV_FREE ? MADV_DONTNEED : advice) == 0;
	for (uintptr_t at = (uintptr_t)p; done && at < end; at = to)
		done = !(b = live_from(at, end, &to)) || discard(b, at, to - at);
	unlock(&outside_lock);
	unlock(&supply_lock);
	promote_let_on();
	errno = done ? saved : errno;
	return done ? 0 : -1;
}

/* Says in which order pages will be read: the heap says so, too, for an end of its own (outside_part). */
static int advise_order(void *p, size_t size, int advice) {
	int result = next.madvise(p, size, advice), saved = errno;
	lock(&outside_lock);
	for (uintptr_t at = (uintptr_t)p, end = at + size, to; at < end; at = to) {
		uint32_t index = outside_block_from(at, &to);
		if (index && blocks[index].frozen != FROZEN_OUTSIDE)
			outside_part(blocks[index].base, advice);
	}
	unlock(&outside_lock);
	errno = saved;
	return result;
}

/* Whether some of the memory is, or was, that of a file. */
static bool is_filed(uintptr_t p, size_t size) {
	bool filed = false;
	lock(&outside_lock);
	for (uintptr_t at = p, end = at + size, to; !filed && at < end; at = to) {
		uint32_t index = block_from(at, &to);
		filed = index && blocks[index].frozen != FROZEN_OUTSIDE;
	}
	unlock(&outside_lock);
	return filed;
}

EXPORTED int madvise(void *p, size_t size, int advice) {
	if (likely(!gate_guards(p, size)))
		return next.madvise(p, size, advice);
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_DONTNEED_LOCKED:
	case MADV_FREE: /* the kernel may do so at once */
		return discard_all(p, size, advice);
	case MADV_GUARD_REMOVE:
		if (!is_filed((uintptr_t)p, size))
			return next.madvise(p, size, advice);
		/* fall through */
	case MADV_GUARD_INSTALL: /* older kernels know neither; a file would keep what was there */
	case MADV_REMOVE: /* private memory has no file */
		errno = EINVAL;
		return -1;
	case MADV_WILLNEED:
		return next.madvise(p, size, advice);
	case MADV_NORMAL:
	case MADV_RANDOM:
	case MADV_SEQUENTIAL:
		return advise_order(p, size, advice);
	default:;
		int saved = errno;
		promote_keep_off(p, size); /* what is being promoted would lose it */
		if (advice != MADV_HUGEPAGE || !caller_in_scope(CALLER)) /* else a framework speaks, which does so with the heap's memory, too */
			outside_advise(p, size);
		errno = saved;
		int result = next.madvise(p, size, advice);
		promote_let_on();
		return result;
	}
}
