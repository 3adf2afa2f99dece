/*
 * Promotion: a block that is private becomes shared, in place, while the program goes on using it. A fork has made it
 * private, or it was so from the beginning (outside.c).
 *
 * The block gets a new file. Piece by piece, the right to write is taken away (userfaultfd), the piece is copied into
 * the file, and the file is mapped over it. A thread that writes there meanwhile waits in the kernel, for some 100 us,
 * and then writes into the file: no write is lost, and no signal is needed. The child keeps the old pages.
 *
 * A system call that writes into a protected piece would fail with EFAULT, unless the kernel lets it wait
 * (CAP_SYS_PTRACE, or vm.unprivileged_userfaultfd is 1). Where it does not, there is promotion only if the user asks for
 * it ("always"), and calls that fill memory go through a gate (gate.c): those that have begun end first.
 *
 * Everything that wants to change what is mapped at a private block (fork, free, mmap, mprotect, madvise) halts
 * promotion first: a fork that of any block, the others that of the blocks which they concern. A promotion that cannot be
 * finished is taken back: what was moved is mapped privately again. Where the kernel refuses that, since the program is at
 * its limit on data, promotion goes on to its end, whoever waits.
 *
 * Not covered by the gate: system calls that write into a block and were not made by the libc's functions in filling.c,
 * ioctl among them, and futex, where it writes (FUTEX_WAKE_OP, FUTEX_LOCK_PI). Not covered at all: devices or kernel
 * operations that write by physical page, which the caller sees to; and futexes without FUTEX_PRIVATE_FLAG, whose
 * waiters sleep on the old pages. Nobody has a use for such ones in private memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFDIO_WRITEPROTECT
#error "the headers of Linux 5.7 or newer are needed"
#endif
/* Pages of a file, mapped privately (Linux 5.19), and pages that are not there yet (6.4). */
#define FEATURES ((uint64_t)1 << 12 /* WP_HUGETLBFS_SHMEM */ | (uint64_t)1 << 13 /* WP_UNPOPULATED */)

/* A test builds the heap without waiting or without protection, to see that the tests of promotion notice. */
#ifdef HEAP_TEST_PROMOTE_UNPROTECTED
static const bool protects = false;
#else
static const bool protects = true;
#endif
#ifdef HEAP_TEST_USER_FAULTS
static const bool user_faults = true;
#else
static const bool user_faults = false;
#endif

enum { PIECE = 256 * 1024, GRAIN = 16 * 1024, PAUSE_US = 50, LONGEST_US = 1000 * 1000 };

static _Atomic bool busy;      /* a promotion is under way */
static _Atomic uint32_t halts; /* and must not be */
static _Atomic uint32_t halted; /* how often it must not have been */
static _Atomic uint32_t moving; /* the block that is promoted, or 0 */
static _Atomic uint32_t keeps; /* those who change what is mapped somewhere: no block's begins meanwhile */
static int faults = -1;
static enum ndheap_promotion configured = NDHEAP_SAFE;
static bool user_mode_will_do; /* for the promotion under way: "always" */

void promote_configure(const char *text) {
	if (text && strcmp(text, "always") == 0)
		configured = NDHEAP_ALWAYS;
	else if (text && strcmp(text, "never") == 0)
		configured = NDHEAP_NEVER;
}

bool promote_moves(uint32_t index) { return index && index == atomic_load(&moving); }

void promote_halt(void) {
	atomic_fetch_add(&halted, 1);
	atomic_fetch_add(&halts, 1);
	while (atomic_load(&busy))
		usleep(PAUSE_US);
}

void promote_resume(void) { atomic_fetch_sub(&halts, 1); }

void promote_keep_off(const void *p, size_t size) {
	atomic_fetch_add(&keeps, 1);
	uint32_t index = atomic_load(&moving);
	const struct block *b = &blocks[index];
	if (!index || b->base >= (uintptr_t)p + size || b->base + block_extent(b) <= (uintptr_t)p)
		return;
	atomic_fetch_add(&halted, 1);
	atomic_fetch_add(&halts, 1);
	while (promote_moves(index))
		usleep(PAUSE_US);
	atomic_fetch_sub(&halts, 1);
}

void promote_let_on(void) { atomic_fetch_sub(&keeps, 1); }

void promote_forget(void) {
	atomic_store(&halts, 0);
	atomic_store(&keeps, 0);
	atomic_store(&busy, false); /* somebody may just have tried */
	atomic_store(&moving, 0);
}

/* Waits for the promotion under way: there is one at a time. */
static bool begin(void) {
	for (bool idle = false; !atomic_compare_exchange_strong(&busy, &idle, true); idle = false) {
		if (atomic_load(&halts))
			return false;
		usleep(PAUSE_US);
	}
	if (atomic_load(&halts) == 0)
		return true;
	atomic_store(&busy, false);
	return false;
}

/* A userfaultfd for which the program's system calls wait, too, or, with "always", one for its threads alone; or -1. */
static int userfaultfd(int flags, bool user_mode) {
	int fd = user_faults ? -1 : (int)syscall(SYS_userfaultfd, flags);
	return fd < 0 && user_mode ? (int)syscall(SYS_userfaultfd, flags | UFFD_USER_MODE_ONLY) : fd;
}

/* The kernel says whether it knows of the kind that is needed, and allows it, before it looks at a flag that there is not. */
EXPORTED int ndheap_promotes(enum ndheap_promotion how) {
	const int no_such_flag = 1 << 30;
	int saved = errno;
	how = how == NDHEAP_AS_CONFIGURED ? configured : how;
	bool may = how != NDHEAP_NEVER && userfaultfd(no_such_flag, how == NDHEAP_ALWAYS) < 0 && errno == EINVAL;
	errno = saved;
	return may;
}

static bool open_faults(void) {
	struct uffdio_api api = {.api = UFFD_API, .features = FEATURES};
	faults = userfaultfd(O_CLOEXEC, user_mode_will_do);
	return faults >= 0 && ioctl(faults, UFFDIO_API, &api) == 0;
}

static void close_faults(void) {
	if (faults >= 0)
		syscall(SYS_close, faults);
	faults = -1;
}

static bool protect(uintptr_t at, size_t size, bool yes) {
	struct uffdio_writeprotect how = {.range = {at, size}, .mode = yes ? UFFDIO_WRITEPROTECT_MODE_WP : 0};
	return !protects || ioctl(faults, UFFDIO_WRITEPROTECT, &how) == 0;
}

static bool zero(const char *p, size_t size) { return p[0] == 0 && memcmp(p, p + 1, size - 1) == 0; }

/* The part of a block from an offset on, to be read; of a chunk, a copy: the libc's own free may take it away. NULL: it is gone. */
static const char *part_of(const struct block *b, size_t from, size_t size) {
	static char piece[PIECE];
	if (!block_outside(b))
		return (const char *)b->base + from;
	return maps_read(piece, b->base + from, size) ? piece : NULL;
}

/* Copies a part of a block to the same place of a file, but for what is zero there anyway. sparse: some was. */
static bool copy(const struct block *b, size_t from, size_t to, int fd, bool *sparse) {
	const char *part = from < to ? part_of(b, from, to - from) : NULL;
	if (from < to && !part)
		return false;
	for (size_t at = from, end; at < to; at = end) {
		end = to - at < GRAIN ? to : at + GRAIN;
		if (zero(part + at - from, end - at)) {
			*sparse = true;
			continue;
		}
		while (end < to) { /* as much at once as there is */
			size_t more = to - end < GRAIN ? to - end : GRAIN;
			if (zero(part + end - from, more))
				break;
			end += more;
		}
		if (pwrite(fd, part + at - from, end - at, (off_t)at) != (ssize_t)(end - at))
			return false;
	}
	return true;
}

/* How far a block has been used. Asked for while a piece is protected: who uses more of it says so first. */
static size_t used(const struct block *b) {
	size_t hot = __atomic_load_n(&b->hot, __ATOMIC_SEQ_CST);
	return (hot + 4095) & ~(size_t)4095;
}

/* Maps the pages of a piece that has been used: the kernel maps many at once, where faults would come page by page. */
static void populate(uintptr_t from, size_t at, size_t size, const struct block *b) {
#ifdef MADV_POPULATE_READ
	if (at + size <= used(b))
		next.madvise((void *)from, size, MADV_POPULATE_READ);
#endif
}

/* How large the piece at an offset is. The first one of a chunk is a mapping of its own, so that for no moment all of it is one. */
static size_t piece_at(const struct block *b, size_t at, size_t size) {
	size_t n = block_outside(b) && at == 0 ? OUTSIDE_PART : PIECE;
	return size - at < n ? size - at : n;
}

/*
 * Moves the piece at an offset of a block into the file, and maps the file there. False: the piece is as it was. It does
 * not wait for calls that write there once *give_up is not 0.
 */
static bool move_piece(const struct block *b, size_t at, size_t size, int fd, const _Atomic uint32_t *give_up) {
	uintptr_t from = b->base + at;
	bool sparse = false, moved = false;
	populate(from, at, size, b);
	if (!gate_close(from, size, give_up))
		return false;
	if (protect(from, size, true)) {
		size_t end = used(b) < at + size ? used(b) : at + size;
		moved = copy(b, at, end, fd, &sparse) && protect(from, size, true) /* else it is another mapping by now */ &&
			next.mmap((void *)from, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd,
				  (off_t)at) != MAP_FAILED;
		if (moved && block_outside(b) && at == 0)
			outside_part(b->base, MADV_NORMAL);
		struct uffdio_range piece = {from, size};
		if (moved)
			ioctl(faults, UFFDIO_WAKE, &piece);
	}
	if (!moved)
		protect(from, size, false);
	gate_open();
	if (moved && !sparse)
		populate(from, at, size, b);
	return moved;
}

/* Moves pieces from an offset on, until the end, a halt or a failure, and answers with the offset of what is left. */
static size_t move_pieces(const struct block *b, size_t done, size_t size, int fd) {
	for (size_t n; done < size && !atomic_load(&halts); done += n) {
		n = piece_at(b, done, size);
		if (!move_piece(b, done, n, fd, &halts))
			break;
	}
	return done;
}

/*
 * A mapping that nothing is joined with, to be given up where the program has as many as it may: the kernel then maps
 * nothing any more, not even in place of something else.
 */
struct spare {
	void *page;
	size_t size;
};

static struct spare spare_map(void) {
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	return (struct spare){next.mmap(NULL, size, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), size};
}

static void spare_give(struct spare *s) {
	if (s->page != MAP_FAILED)
		next.munmap(s->page, s->size);
	s->page = MAP_FAILED;
}

/* Maps privately what was moved of a block. False: the kernel refuses. */
static bool take_back(const struct block *b, size_t done, const struct segment *s) {
	return block_outside(b) ? maps_separate(s) : map_privately(b->base, done, PROT_READ | PROT_WRITE, s->fd, 0);
}

/* Moves a block's pages into a segment. False: they are private, as before. */
static bool move(const struct block *b, size_t size, const struct segment *s) {
	static const _Atomic uint32_t never;
	struct uffdio_register all = {.range = {b->base, size}, .mode = UFFDIO_REGISTER_MODE_WP};
	struct spare spare = spare_map();
	size_t done = 0;
	if (spare.page != MAP_FAILED && open_faults() && ioctl(faults, UFFDIO_REGISTER, &all) == 0)
		done = move_pieces(b, 0, size, s->fd);
	while (done && done < size && !take_back(b, done, s)) {
		spare_give(&spare);
		if (take_back(b, done, s))
			break;
		/* A part of a block cannot stay shared: a fork could not tell. */
		size_t n = piece_at(b, done, size);
		if (move_piece(b, done, n, s->fd, &never))
			done += n;
		else
			usleep(PAUSE_US); /* for memory, or a call that writes there */
	}
	close_faults();
	spare_give(&spare);
	return done == size;
}

/* The block that p points into, if it is one to promote. Wants supply_lock. */
static uint32_t find(const void *p) {
	/* Of what is off, a fork could not make private again what is shared now. */
	if (!supply_ready())
		return 0;
	uint32_t index = range_owns(p) ? block_find(p) : outside_adopt(p);
	struct block *b = &blocks[index];
	bool can = index && phase_of(atomic_load(&b->state)) == BLOCK_LIVE && !atomic_load(&b->guarded) &&
		   (b->frozen == FROZEN_BY_FORK || b->frozen == FROZEN_OUTSIDE);
	return can ? index : 0;
}

/*
 * Finds the block to promote, and says that it is being moved: whoever wants to change what is mapped there waits from then on.
 * Whoever has begun to change something, perhaps there, ends first, which takes no time.
 */
static uint32_t claim(const void *p) {
	uint32_t index;
	for (int us = 0;; us += PAUSE_US) {
		lock(&supply_lock);
		atomic_store(&moving, index = find(p));
		bool alone = !atomic_load(&keeps) && find(p) == index;
		if (!alone)
			atomic_store(&moving, 0);
		unlock(&supply_lock);
		if (alone || !index)
			return index;
		if (us >= LONGEST_US || atomic_load(&halts))
			return 0;
		usleep(PAUSE_US);
	}
}

/* What promote_halt keeps out cannot happen to the block meanwhile; it may be freed, which then waits. For the keeper. */
static bool promote(const void *p) {
	if (heap_late && !links_take()) /* or others would not wait */
		return false;
	uint32_t index = claim(p), segment = 0;
	struct block *b = &blocks[index];
	if (!index || (block_outside(b) && !outside_ordinary(b)))
		return false;
	size_t size = block_extent(b);
	lock(&supply_lock);
	if (descriptor_spare(size) && affordable(size))
		segment = segment_adopt(b->base, size, true);
	unlock(&supply_lock);
	if (!segment)
		return false;
	bool moved = move(b, size, &segments[segment]);
	if (moved && size >= HUGE_PAGE)
		next.madvise((void *)b->base, size, MADV_HUGEPAGE);
	lock_all();
	if (moved)
		supply_melt(index, segment), atomic_store(&outside_age, 1);
	else
		segment_abandon(segment);
	unlock_all();
	return moved;
}

/* Small blocks that are promoted in one turn, and how far away they are looked for. */
enum { TOGETHER = 256, NEIGHBOURS = 2048 };

/* Whether a block is such a one. It may be another by the time that it is claimed, which sees to what matters. */
static bool follows(const struct block *b) {
	uint32_t state = atomic_load(&b->state);
	return phase_of(state) == BLOCK_LIVE && pins_of(state) && b->frozen == FROZEN_BY_FORK && block_extent(b) <= PIECE;
}

/* Promotes a block, and those that follow. For the keeper. */
static bool promote_together(const void *p) {
	uint32_t index = range_owns(p) ? owner_of(p) : 0, at = index > NEIGHBOURS ? index - NEIGHBOURS : 1;
	bool moved = promote(p);
	for (int n = 1; moved && index && at < block_count && at < index + NEIGHBOURS && n < TOGETHER && !atomic_load(&halts); at++)
		n += follows(&blocks[at]) && promote((void *)atomic_load(&blocks[at].user));
	return moved;
}

/* Runs something on the keeper, and lets others begin again. */
static bool run_alone(bool (*run)(const void *), const void *argument) {
	/*
	 * A signal's handler would be the program's code. If it forks, or changes what is mapped, it waits for the end of this
	 * promotion, which this thread must see to. Two signals are the libc's own.
	 */
	uint64_t blocked = ~((uint64_t)3 << 31), before; /* bit n - 1 is signal n */
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, &before, sizeof blocked);
	bool done = keeper_run(run, argument);
	atomic_store(&moving, 0);
	atomic_store(&busy, false);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
	return done;
}

bool promote_run(bool (*run)(const void *), const void *argument) { return begin() && run_alone(run, argument); }

static bool promote_once(const void *p, enum ndheap_promotion how, bool together) {
	if (!begin())
		return false;
	user_mode_will_do = how == NDHEAP_ALWAYS;
	return run_alone(together ? promote_together : promote, p);
}

EXPORTED int ndheap_promote(const void *p, enum ndheap_promotion how, int together) {
	enum { TRIES = 4 };
	int saved = errno;
	how = how == NDHEAP_AS_CONFIGURED ? configured : how;
	bool can = gate_guards(p, 1) && ndheap_promotes(how), promoted = false;
	for (int tries = 0; can && !promoted && tries < TRIES; tries++) {
		for (int us = 0; atomic_load(&halts) && us < LONGEST_US; us += PAUSE_US)
			usleep(PAUSE_US);
		uint32_t before = atomic_load(&halted);
		promoted = promote_once(p, how, together);
		can = atomic_load(&halts) || atomic_load(&halted) != before; /* a fork, for instance, came in between */
	}
	errno = saved;
	return promoted ? 0 : -1;
}
