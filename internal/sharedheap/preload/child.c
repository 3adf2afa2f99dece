/*
 * A forked child. It has no descriptor, no pin and no shared page of its parent's. What it has inherited is private to it,
 * and can be promoted there as in the parent.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heap.h"

/*
 * The thread that forks, or 0, in a program that has loaded the library late. There the library's handler is the first before
 * a fork and the last after it. Handlers of others run in between, and may wait for threads that use memory, which may wait
 * for our locks. So only fork_lock is held then. All that can be frozen is frozen, and until the fork is over nothing that is
 * known of blocks changes, but what the program does to single ones (FROZEN_OVER, BLOCK_PENDING), which is one write each.
 * A child can rely on that, whichever locks were taken in the parent.
 */
static _Atomic pthread_t forker;
static pid_t forks; /* its process */

void fork_open(bool yes) {
	forks = getpid();
	atomic_store(&forker, yes ? pthread_self() : 0);
}

bool fork_is_open(void) { return unlikely(atomic_load_explicit(&forker, memory_order_relaxed) != 0); }

/* Unmaps a file. False: its addresses are not the heap's any more. */
static bool unmap(const struct segment *s) {
	if (range_clear(s->base, s->size))
		return true;
	next.munmap((void *)s->base, s->size); /* beyond a limit; but it must go */
	return false;
}

/* Gives the child what was copied for it of a file that could not be frozen. */
static void take_copy(struct segment *s) {
	unmap(s);
	s->state = SEGMENT_FROZEN;
	if (s->copy && next.mremap(s->copy, s->size, s->size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)s->base) != MAP_FAILED)
		return;
	if (!range_owns((void *)s->base)) {
		blocks[outside_block((void *)s->base)].frozen = FROZEN_OVER;
		return;
	}
	for (uintptr_t at = s->base; at < s->base + s->size; at += GRANULE) /* nobody may look there */
		blocks[owner_of((void *)at)].frozen = FROZEN_OVER;
}

/* Lets go of the parent's shared memory and of its descriptors. */
static void leave_segments(void) {
	for (uint32_t i = 1; i < segment_count; i++) {
		struct segment *s = &segments[i];
		bool outside = !range_owns((void *)s->base); /* what its program has freed, leave_outside unmaps */
		bool ours = s->state != SEGMENT_SHARED || s->live || outside || unmap(s);
		segment_close_fd(s);
		if (s->state == SEGMENT_SHARED && s->live)
			take_copy(s);
		else if (s->state == SEGMENT_SHARED && !outside)
			supply_forget(i, ours);
		else if (s->state == SEGMENT_FROZEN && !s->live) /* open for the sake of the parent's hosts alone */
			segment_abandon(i);
		s->copy = NULL;
		s->pinned = s->elder = s->elder_pins = 0;
	}
}

/* A block outside the range stays the child's, who frees it, unless the parent has freed it already. */
static void leave_outside(uint32_t index) {
	struct block *b = &blocks[index];
	enum phase phase = phase_of(atomic_load(&b->state));
	if (phase == BLOCK_LIVE) {
		b->frozen = b->frozen ? b->frozen : FROZEN_BY_FORK;
		atomic_store(&b->state, phase);
		return;
	}
	outside_unmap(b);
	outside_end_block(index);
}

/* Pins are the parent's, and so are the calls of free that its other threads had begun. */
static void leave_blocks(void) {
	for (uint32_t i = 1; i < block_count; i++) {
		struct block *b = &blocks[i];
		uint32_t state = atomic_load(&b->state);
		enum phase phase = phase_of(state);
		if (phase != BLOCK_NONE && block_outside(b)) {
			leave_outside(i);
			continue;
		}
		if (segments[b->segment].state != SEGMENT_FROZEN)
			continue;
		b->frozen = b->frozen ? b->frozen : FROZEN_BY_FORK;
		atomic_store(&b->state, phase);
		if (phase == BLOCK_PENDING || phase == BLOCK_RELEASING) {
			next.madvise((void *)b->base, class_size(b->class), MADV_DONTNEED);
			supply_end_frozen(i);
		}
	}
}

static void begin_child(void) {
	int saved = errno;
	fork_open(false);
	lock_reset(&fork_lock);
	lock_reset(&outside_lock);
	lock_reset(&supply_lock);
	lock_reset(&trim_lock);
	captures_reset();
	for (unsigned i = 0; i < ARENAS; i++)
		lock_reset(&arenas[i].lock);
	memset(fork_counters, 0, sizeof fork_counters); /* the parent's */
	promote_forget();
	rights_forget();
	keeper_forget();
	gate_forget();
	trim_forget();
	range_inherit();
	if (fork_separates && range_in_use()) {
		arenas_forget();
		aside_forget();
		leave_segments();
		leave_blocks();
	}
	errno = saved;
}

void fork_child(void) {
	if (!heap_late || fork_is_open()) /* else handlers of others have used memory that was shared */
		begin_child();
}

void fork_catch_up(void) {
	if (fork_is_open() && atomic_load(&forker) == pthread_self() && getpid() != forks)
		begin_child();
}
