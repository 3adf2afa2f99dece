/* A block's life: taken, resized, given back, found again by a pointer into it. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap.h"

struct block *blocks;
uint32_t block_count = 1;

/*
 * Sizes of 1 to 8 granules, then four classes a doubling: a block is at most a quarter larger than it
 * must be, in addresses; pages that are not touched cost nothing.
 */
unsigned class_of(size_t bytes) {
	size_t granules = bytes / GRANULE + (bytes % GRANULE != 0);
	if (granules <= 8)
		return granules ? (unsigned)granules - 1 : 0;
	unsigned doubling = 63 - (unsigned)__builtin_clzll(granules - 1);
	unsigned quarter = (granules - 1) >> (doubling - 2) & 3;
	return 8 + (doubling - 3) * 4 + quarter;
}

size_t class_size(unsigned class) {
	if (class < 8)
		return (class + 1) * GRANULE;
	unsigned doubling = (class - 8) / 4 + 3, quarter = (class - 8) % 4;
	return (((size_t)1 << doubling) + ((quarter + (size_t)1) << (doubling - 2))) * GRANULE;
}

/* Bytes of a block that its alignment may cost; its base is aligned to a granule. */
static size_t alignment_cost(size_t align) {
	if (align <= SKEW)
		return SKEW;
	return align > GRANULE ? align - GRANULE : 0;
}

uint64_t block_begin(struct block *b, size_t size, size_t align) {
	uint64_t dirty = b->hot;
	uintptr_t user = align <= SKEW ? b->base + SKEW : (b->base + align - 1) & ~(align - 1);
	atomic_store_explicit(&b->user, user, memory_order_relaxed);
	atomic_store_explicit(&b->size, size, memory_order_relaxed);
	uint64_t end = user - b->base + size;
	if (end > b->hot)
		b->hot = end;
	atomic_store_explicit(&b->state, BLOCK_LIVE, memory_order_release);
	return dirty;
}

/*
 * Makes what a reused block's last owner left read as zero. Memory that may never have been touched
 * goes back to the system instead: writing to it could cost far more than the program ever used.
 */
static void wipe(const struct block *b, size_t size, uint64_t dirty) {
	uint64_t from = b->user - b->base;
	if (dirty <= from)
		return;
	uint64_t length = dirty - from < size ? dirty - from : size;
	if (length >= 4 * MIB) {
		const struct segment *s = &segments[b->segment];
		bool sparse = s->pool || segment_resident(s) < dirty / 2;
		if (sparse && next.madvise((void *)b->base, class_size(b->class), MADV_REMOVE) == 0)
			return;
	}
	memset((void *)b->user, 0, length);
}

void *block_take(size_t size, size_t align, bool zero, size_t reserve) {
	size_t cost = alignment_cost(align), wanted = reserve > size ? reserve : size;
	if (wanted > SIZE_MAX / 4 || cost > SIZE_MAX / 4)
		return NULL;
	unsigned class = class_of(wanted + cost);
	if (class >= CLASSES || atomic_load_explicit(&heap_state, memory_order_relaxed) > NDHEAP_ON)
		return NULL;
	int saved = errno;
	uint64_t dirty = 0;
	uint32_t index = arena_take(class, size, align, &dirty);
	if (!index) {
		trim_for(size);
		index = supply_take(class, size, align, &dirty);
	}
	void *p = NULL;
	if (index) {
		const struct block *b = &blocks[index];
		if (zero)
			wipe(b, size, dirty);
		p = (void *)b->user;
	}
	errno = saved;
	return p;
}

/* The block that begins at p. */
static uint32_t block_at(const void *p, const char *complaint) {
	uint32_t index = owner_of(p);
	if (!index || blocks[index].user != (uintptr_t)p)
		die(complaint, p);
	return index;
}

bool block_leave(uint32_t index, const void *p) {
	struct block *b = &blocks[index];
	uint32_t state = atomic_load_explicit(&b->state, memory_order_relaxed), after;
	do {
		if (phase_of(state) != BLOCK_LIVE)
			die("free(): block is free already", p);
		after = (state & ~PHASE_MASK) | (pins_of(state) ? BLOCK_PENDING : BLOCK_RELEASING);
	} while (!atomic_compare_exchange_weak_explicit(&b->state, &state, after, memory_order_acq_rel,
							memory_order_relaxed));
	return phase_of(after) == BLOCK_RELEASING;
}

void block_give(void *p) {
	uint32_t index = block_at(p, "free(): not the start of a shared block");
	if (block_leave(index, p))
		block_release(index);
}

void block_release(uint32_t index) {
	int saved = errno;
	struct block *b = &blocks[index];
	if (block_outside(b)) {
		outside_release(index);
		errno = saved;
		return;
	}
	if (unlikely(atomic_load_explicit(&b->guarded, memory_order_relaxed))) {
		/* The next owner may write to it, as after malloc has unmapped a block. */
		uint64_t mask = rights_change();
		next.mprotect((void *)b->base, class_size(b->class), PROT_READ | PROT_WRITE);
		syscall(SYS_munlock, b->base, class_size(b->class));
		atomic_store_explicit(&b->guarded, false, memory_order_relaxed);
		rights_changed(mask);
	}
	bool warm;
	while (!(warm = arena_give(index)) && !supply_release_frozen(index))
		; /* it was promoted in between */
	if (warm)
		trim_excess();
	errno = saved;
}

size_t block_usable(const void *p) {
	struct block *b = &blocks[block_at(p, "not the start of a shared block")];
	if (phase_of(atomic_load_explicit(&b->state, memory_order_relaxed)) != BLOCK_LIVE)
		die("use of a block that was freed", p);
	return atomic_load_explicit(&b->size, memory_order_relaxed);
}

void *block_resize(void *p, size_t size) {
	uint32_t index = owner_of(p);
	struct block *b = &blocks[index];
	size_t room = b->base + class_size(b->class) - b->user, old = atomic_load_explicit(&b->size, memory_order_relaxed);
	/* What shrinks to a small part moves: its addresses are of more use to others. */
	if (size < room / 8 || size < heap_threshold_configured)
		return NULL;
	if (size > old && size - old >= LARGE_MIN && !affordable(size - old))
		return NULL;
	/* A block that grew once will grow again: room costs addresses only. */
	if (size > room && !supply_grow(index, 2 * size) && !supply_grow(index, size))
		return NULL;
	if (size < old)
		supply_shrink(index, size);
	arena_resize(b, size);
	return (void *)b->user;
}

uint32_t block_find(const void *p) {
	uint32_t index = range_owns(p) ? owner_of(p) : outside_block(p);
	if (!index)
		return 0;
	const struct block *b = &blocks[index];
	uint64_t size = atomic_load_explicit(&b->size, memory_order_relaxed);
	return (uintptr_t)p - b->user < size ? index : 0;
}
