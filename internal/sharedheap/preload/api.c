/* ndheap.h: what the plugin in this process asks the heap. */
#include <errno.h>
#include <string.h>

#include "heap.h"

/* Adds a pin to a live block. */
static bool pin(struct block *b) {
	uint32_t state = atomic_load_explicit(&b->state, memory_order_relaxed);
	do {
		if (phase_of(state) != BLOCK_LIVE || pins_of(state) >= UINT32_MAX / PIN)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&b->state, &state, state + PIN, memory_order_acq_rel,
							memory_order_relaxed));
	return true;
}

/* Takes a pin back; with the last one GRANTED goes. Answers with the state after, or 0 if there was no pin. */
static uint32_t unpin(struct block *b) {
	uint32_t state = atomic_load_explicit(&b->state, memory_order_relaxed), after;
	do {
		if (!pins_of(state))
			return 0;
		after = state - PIN;
		if (!pins_of(after)) {
			after &= ~GRANTED;
			if (phase_of(after) == BLOCK_PENDING)
				after = BLOCK_RELEASING;
		}
	} while (!atomic_compare_exchange_weak_explicit(&b->state, &state, after, memory_order_acq_rel,
							memory_order_relaxed));
	return after;
}

static void describe(const struct block *b, uintptr_t p, struct ndheap_block *out) {
	const struct segment *s = &segments[b->segment];
	*out = (struct ndheap_block){.fd = -1};
	out->available = b->user + atomic_load(&b->size) - p;
	if (b->frozen) {
		out->flags = b->frozen == FROZEN_BY_FORK ? NDHEAP_FROZEN : 0;
		out->offset = p - b->base;
	} else if (segment_fd_valid(s)) {
		out->fd = s->fd;
		out->task = s->kept ? keeper_task() : 0;
		out->device = descriptor_device();
		out->inode = s->inode;
		out->flags = NDHEAP_SHAREABLE;
		out->segment = s->id;
		out->segment_size = s->size;
		out->offset = p - s->base;
	}
}

EXPORTED int ndheap_pin(const void *p, struct ndheap_block *out) {
	bool outside = !range_owns(p);
	if (outside && !outside_touches(p, 1))
		return -1;
	int saved = errno, result = -2;
	uint32_t state = 0;
	lock(&supply_lock);
	uint32_t index = block_find(p);
	struct block *b = &blocks[index];
	bool stands = !outside || (index && b->frozen != FROZEN_OUTSIDE && outside_stands(b));
	if (index && stands && pin(b)) {
		/* Now that it cannot go away: is it still the block that p points into? */
		if (block_find(p) == index) {
			describe(b, (uintptr_t)p, out);
			result = 0;
		}
		if (result != 0 || !(out->flags & NDHEAP_SHAREABLE))
			state = unpin(b);
	}
	/* A chunk that nobody has promoted yet, or somebody is about to; or something else has come where one was. */
	uint32_t known = outside ? outside_block(p) : 0;
	if (outside && (!known || !stands || blocks[known].frozen == FROZEN_OUTSIDE)) {
		*out = (struct ndheap_block){.fd = -1, .flags = NDHEAP_OUTSIDE};
		result = 0;
	}
	unlock(&supply_lock);
	if (phase_of(state) == BLOCK_RELEASING)
		block_release(index);
	errno = saved;
	return result;
}

/* Finds the block by the owner map alone: it may have been freed since it was pinned. Wants supply_lock. */
static struct block *find_pinned(const void *p) {
	uint32_t index = range_owns(p) ? owner_of(p) : outside_block(p);
	return index && pins_of(atomic_load(&blocks[index].state)) ? &blocks[index] : NULL;
}

EXPORTED int ndheap_unpin(const void *p, uint64_t segment) {
	int saved = errno;
	lock(&fork_lock);
	lock(&supply_lock);
	struct block *b = find_pinned(p);
	uint32_t state = b ? unpin(b) : 0;
	if (state)
		supply_unpinned(b, segment);
	unlock(&supply_lock);
	unlock(&fork_lock);
	if (phase_of(state) == BLOCK_RELEASING)
		block_release((uint32_t)(b - blocks));
	errno = saved;
	return state ? 0 : -1;
}

EXPORTED int ndheap_repin(const void *p, uint64_t segment, struct ndheap_block *out) {
	int saved = errno, result = -1;
	lock(&fork_lock);
	lock(&supply_lock);
	struct block *b = find_pinned(p);
	if (b && phase_of(atomic_load(&b->state)) == BLOCK_LIVE) {
		describe(b, (uintptr_t)p, out);
		if (out->flags & NDHEAP_FROZEN)
			result = 1;
		else if (out->flags & NDHEAP_SHAREABLE && supply_repin(b, segment))
			result = 0;
	}
	unlock(&supply_lock);
	unlock(&fork_lock);
	errno = saved;
	return result;
}

EXPORTED int ndheap_grant(const void *p) {
	lock(&supply_lock);
	struct block *b = find_pinned(p);
	uint32_t state = b ? atomic_load(&b->state) : 0;
	while (pins_of(state) && !atomic_compare_exchange_weak(&b->state, &state, state | GRANTED))
		;
	unlock(&supply_lock);
	return pins_of(state) ? 0 : -1;
}

EXPORTED void ndheap_count_forks(uint64_t *count, int on) {
	const uint64_t *from = on ? NULL : count;
	lock(&supply_lock);
	for (unsigned i = 0; i < FORK_COUNTERS; i++)
		if (fork_counters[i] == from) {
			fork_counters[i] = on ? count : NULL;
			break;
		}
	unlock(&supply_lock);
}

static void count_blocks(struct ndheap_stats *out) {
	for (uint32_t i = 1; i < block_count; i++) {
		uint32_t state = atomic_load(&blocks[i].state);
		enum phase phase = phase_of(state);
		out->live_blocks += phase == BLOCK_LIVE;
		out->warm_blocks += phase == BLOCK_WARM;
		out->pinned_blocks += pins_of(state) != 0;
		out->frozen_blocks += phase == BLOCK_LIVE && blocks[i].frozen;
	}
}

EXPORTED int ndheap_stats(struct ndheap_stats *out) {
	memset(out, 0, sizeof *out);
	for (unsigned i = 0; i < ARENAS; i++)
		lock(&arenas[i].lock);
	lock(&supply_lock);
	int64_t live = atomic_load(&total_live), warm = atomic_load(&total_warm);
	for (unsigned i = 0; i < ARENAS; i++) {
		live += arenas[i].live;
		warm += arenas[i].warm;
		out->taken += arenas[i].taken;
		out->reused += arenas[i].reused;
		out->given += arenas[i].given;
	}
	out->live_bytes = live > 0 ? (uint64_t)live : 0;
	out->warm_bytes = warm > 0 ? (uint64_t)warm : 0;
	out->state = atomic_load(&heap_state);
	out->threshold = heap_threshold_configured;
	out->descriptors = descriptor_count();
	out->refused = refused_count;
	out->dropped = atomic_load(&dropped_count);
	out->forks = fork_count;
	if (range_in_use())
		count_blocks(out);
	unlock(&supply_lock);
	for (unsigned i = ARENAS; i-- > 0;)
		unlock(&arenas[i].lock);
	return 0;
}
