/*
 * What a fork does to the heap, and to a part of it what the program maps over its blocks (mappings.c).
 *
 * Left alone, parent and child would go on writing into each other's arrays, since shared mappings
 * stay shared. So before each fork every file that holds live blocks is *frozen*: its mapping is
 * replaced, in one step, by a private one of the same file. Both processes then copy a page when
 * they first write to it, as after any fork, and what they write is their own.
 *
 * Another process that has mapped the file goes on seeing the memory as it was at the fork. What it
 * writes itself, if it may, is seen by the program in pages that the program did not write to since;
 * ndheap_grant prevents that.
 *
 * Parent and child (child.c) go on with new files, each with its own.
 *
 * Not covered: fork without its handlers (_Fork, a bare clone), and devices or kernel operations that
 * write to memory by physical page at the time of the fork.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heap.h"

uint64_t fork_count;
uint64_t *fork_counters[FORK_COUNTERS];

/* A test builds the heap without all this, to see that the tests of forks notice. */
#ifdef HEAP_TEST_SHARE_ACROSS_FORK
const bool fork_separates = false;
#else
const bool fork_separates = true;
#endif

/* Counts what keeps each shared segment alive. */
static void count_blocks(void) {
	for (uint32_t i = 1; i < segment_count; i++) {
		if (segments[i].state == SEGMENT_SHARED) {
			segments[i].live = segments[i].pinned = 0;
			segments[i].guarded = segments[i].granted = false;
		}
	}
	for (uint32_t i = 1; i < block_count; i++) {
		const struct block *b = &blocks[i];
		struct segment *s = &segments[b->segment];
		uint32_t state = atomic_load(&b->state);
		enum phase phase = phase_of(state);
		if (s->state != SEGMENT_SHARED)
			continue;
		/* The program has let go of the latter two: only as neighbours in a pool do they matter. */
		if (phase == BLOCK_LIVE || (s->pool && (phase == BLOCK_RELEASING || phase == BLOCK_PENDING))) {
			s->live++;
			s->pinned += supply_pins(b) != 0;
		}
		if (phase == BLOCK_LIVE) {
			s->guarded |= atomic_load(&b->guarded);
			s->granted |= (state & GRANTED) != 0;
		}
	}
}

/*
 * Copies the blocks of a segment whose descriptor was closed, for the child. The parent keeps its shared
 * mapping: its other threads may be writing, and what they wrote after the copy would be lost with it.
 */
static void copy_segment(struct segment *s) {
	char *copy = next.mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (copy == MAP_FAILED)
		return; /* out of the child's reach then: a fault there rather than wrong data */
	bool outside = !range_owns((void *)s->base);
	if (outside)
		memcpy(copy, (void *)s->base, s->size);
	for (uintptr_t at = s->base; !outside && at < s->base + s->size; at += GRANULE) {
		const struct block *b = &blocks[owner_of((void *)at)];
		if (b->base == at && phase_of(atomic_load(&b->state)) == BLOCK_LIVE)
			memcpy(copy + (at - s->base), (void *)at, b->hot);
	}
	s->copy = copy;
}

static bool map_segment(const void *segment) {
	const struct segment *s = segment;
	bool mapped = map_privately(s->base, s->size, PROT_READ | PROT_WRITE, s->fd, 0);
	if (mapped && !range_owns((void *)s->base))
		outside_part(s->base, MADV_NORMAL), touch(s->base);
	return mapped;
}

static bool make_private(struct segment *s, enum frozen why) {
	if (!segment_fd_valid(s))
		return false;
	if (outside_torn(s))
		return keeper_run(maps_separate, s), true; /* there is no other way */
	if (s->guarded && (s->kept ? keeper_run(maps_separate, s) : maps_separate(s)))
		return true;
	s->guarded = false;
	if (why == FROZEN_BY_FORK)
		aside_move(s);
	return s->kept ? keeper_run(map_segment, s) : map_segment(s);
}

/* False: it stays shared. */
static bool freeze_segment(struct segment *s, enum frozen why) {
	if (s->pool && s->used < s->size) {
		range_clear(s->base + s->used, s->size - s->used);
		range_give(s->base + s->used, s->size - s->used);
		s->size = s->used;
	}
	if (!make_private(s, why))
		return false;
	s->state = SEGMENT_FROZEN;
	if (!s->pinned)
		segment_close_fd(s);
	return true;
}

/* Copies every page of a block at once. */
static void copy_now(const struct block *b) {
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	maps_copy(b->user & ~(uintptr_t)(page - 1), b->user + atomic_load(&b->size));
}

/* Whether a segment has something to freeze, and lies in [from, to). */
static bool melted(const struct segment *s, uintptr_t from, uintptr_t to) {
	return s->state == SEGMENT_SHARED && s->live && s->base < to && s->base + s->size > from;
}

/*
 * Gives back the pages of free blocks whose file will stay open for the sake of others. Once it is
 * mapped privately only closing it would free them.
 */
static void drop_warm(uintptr_t from, uintptr_t to) {
	for (uint32_t i = 1; i < block_count; i++) {
		const struct block *b = &blocks[i];
		const struct segment *s = &segments[b->segment];
		if (phase_of(atomic_load(&b->state)) == BLOCK_WARM && melted(s, from, to))
			next.madvise((void *)b->base, class_size(b->class), MADV_REMOVE);
	}
}

static bool melted_anywhere(const struct segment *s) { return melted(s, 0, UINTPTR_MAX); }

/* Freezes the segments that have addresses in [from, to). Wants all locks. */
static void freeze(uintptr_t from, uintptr_t to, enum frozen why) {
	if (fork_is_open())
		return;
	uint64_t mask = rights_keep();
	count_blocks();
	drop_warm(from, to);
	maps_find_torn();
	if (why == FROZEN_BY_FORK)
		aside_open(melted_anywhere);
	for (uint32_t i = 1; i < segment_count; i++) {
		if (melted(&segments[i], from, to) && !freeze_segment(&segments[i], why) && why == FROZEN_BY_FORK)
			copy_segment(&segments[i]);
	}
	if (why == FROZEN_BY_FORK)
		aside_close();
	for (uint32_t i = 1; i < block_count; i++) {
		struct block *b = &blocks[i];
		uint32_t state = atomic_load(&b->state);
		if (b->frozen || segments[b->segment].state != SEGMENT_FROZEN)
			continue;
		b->frozen = outside_torn(&segments[b->segment]) ? FROZEN_OVER : (uint8_t)why;
		if (phase_of(state) == BLOCK_WARM) {
			arena_remove(&arenas[b->arena], i);
			atomic_store(&b->state, BLOCK_NONE);
		} else if (phase_of(state) == BLOCK_LIVE && (state & GRANTED) && b->frozen != FROZEN_OVER &&
			   !segments[b->segment].guarded) { /* what is was copied by maps_separate */
			copy_now(b);
		}
	}
	rights_let_change(mask);
	supply_forget_frozen();
}

struct lock fork_lock;

void lock_all(void) {
	atomic_store(&trim_hurry, true);
	lock(&trim_lock);
	atomic_store(&trim_hurry, false);
	for (unsigned i = 0; i < ARENAS; i++)
		lock(&arenas[i].lock);
	lock(&supply_lock);
	lock(&outside_lock);
}

void unlock_all(void) {
	unlock(&outside_lock);
	unlock(&supply_lock);
	for (unsigned i = ARENAS; i-- > 0;)
		unlock(&arenas[i].lock);
	unlock(&trim_lock);
}

/* Tells those who have mapped the files. */
static void count_separation(void) {
	for (unsigned i = 0; i < FORK_COUNTERS; i++)
		if (fork_counters[i])
			__atomic_fetch_add(fork_counters[i], 1, __ATOMIC_SEQ_CST);
}

void fork_prepare(void) {
	int saved = errno;
	promote_halt();
	lock(&fork_lock);
	lock_all();
	if (range_in_use()) {
		fork_count++;
		count_separation();
		if (fork_separates)
			freeze(0, UINTPTR_MAX, FROZEN_BY_FORK);
	}
	if (heap_late) {
		fork_open(true);
		unlock_all();
	}
	errno = saved;
}

/* The block of the program's that an address lies in, or NULL. */
static struct block *live_block(uintptr_t at) {
	struct block *b = range_owns((void *)at) ? &blocks[owner_of((void *)at)] : NULL;
	return b && phase_of(atomic_load(&b->state)) == BLOCK_LIVE ? b : NULL;
}

static uintptr_t end_of(const struct block *b) { return b->base + block_extent(b); }

bool fork_yield(uintptr_t from, uintptr_t to) {
	bool can = from < to, shared = false;
	struct block *b;
	promote_halt();
	lock_all();
	for (uintptr_t at = from; can && at < to; at = end_of(b)) {
		can = (b = live_block(at)) != NULL && (b->frozen || segment_fd_valid(&segments[b->segment]));
		shared |= can && !b->frozen;
		if (!can)
			break;
	}
	if (can && shared) {
		count_separation();
		freeze(from, to, FROZEN_BESIDE);
	}
	for (uintptr_t at = from; can && at < to; at = end_of(b)) {
		b = live_block(at);
		can = b->frozen; /* else the kernel has refused */
		if (can)
			b->frozen = FROZEN_OVER;
	}
	unlock_all();
	promote_resume();
	return can;
}

bool fork_yield_outside(uintptr_t from, uintptr_t to) {
	bool can = true;
	uintptr_t next_at;
	promote_halt();
	lock_all();
	for (uintptr_t at = from; can && at < to; at = next_at) {
		uint32_t index = outside_block_from(at, &next_at);
		if (!index)
			continue;
		struct block *b = &blocks[index];
		if (!b->frozen) {
			count_separation();
			freeze(b->base, end_of(b), FROZEN_BESIDE);
		}
		can = b->frozen; /* else the kernel has refused, or the program has closed the file */
		if (can && b->frozen != FROZEN_OUTSIDE)
			b->frozen = FROZEN_OVER;
	}
	unlock_all();
	promote_resume();
	return can;
}

void fork_separate(void) {
	promote_halt();
	lock_all();
	if (fork_separates && range_in_use()) {
		count_separation();
		freeze(0, UINTPTR_MAX, FROZEN_BESIDE);
	}
	unlock_all();
	promote_resume();
}

static void forget_copies(void) {
	for (uint32_t i = 1; i < segment_count; i++) {
		if (segments[i].copy)
			next.munmap(segments[i].copy, segments[i].size);
		segments[i].copy = NULL;
	}
}

/* Ends the blocks that the program has freed while it forked. Wants no lock. */
static void release_freed(void) {
	for (uint32_t i = 1; i < block_count; i++) {
		uint32_t freed = BLOCK_PENDING; /* without a pin */
		if (block_outside(&blocks[i]) && atomic_compare_exchange_strong(&blocks[i].state, &freed, BLOCK_RELEASING))
			block_release(i);
	}
}

void fork_parent(void) {
	int saved = errno;
	if (heap_late)
		lock_all();
	fork_open(false);
	forget_copies();
	unlock_all();
	unlock(&fork_lock);
	promote_resume();
	if (heap_late)
		release_freed();
	trim_after_fork();
	errno = saved;
}
