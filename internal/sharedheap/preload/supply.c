/* New blocks, cut from files, and what becomes of emptied ones. */
#include <sys/mman.h>

#include "heap.h"

struct lock supply_lock;
uint64_t refused_count;

static uint32_t unused;          /* list of unused block records */
static uint32_t cold[CLASSES];   /* lists of pool blocks without pages */
static uint32_t pools[2];        /* the segments that small blocks are cut from, and large ones */

bool supply_ready(void) {
	uint32_t state = atomic_load(&heap_state);
	if (state == NDHEAP_IDLE) {
		state = range_reserve();
		if (state == NDHEAP_ON)
			atomic_store(&heap_state, state);
		else
			heap_off(state);
	}
	return state == NDHEAP_ON;
}

static uint32_t new_record(void) {
	if (unused) {
		uint32_t index = unused;
		unused = blocks[index].below;
		return index;
	}
	if (block_count == UINT32_MAX || !blocks_grow(block_count + 1))
		return 0;
	return block_count++;
}

/* Field by field: somebody with a stale pointer, or with a hint, may be looking at the record. */
static void write_record(uint32_t index, uint32_t segment, uintptr_t base, unsigned class) {
	struct block *b = &blocks[index];
	atomic_store_explicit(&b->state, BLOCK_NONE, memory_order_relaxed);
	atomic_store_explicit(&b->user, 0, memory_order_relaxed);
	atomic_store_explicit(&b->size, 0, memory_order_relaxed);
	atomic_store_explicit(&b->released, 0, memory_order_relaxed);
	b->segment = segment;
	b->base = base;
	b->class = (uint8_t)class;
	b->hot = 0;
	b->frozen = NOT_FROZEN;
}

static void free_record(uint32_t index) {
	write_record(index, 0, 0, 0);
	blocks[index].below = unused;
	unused = index;
}

static uint32_t own_block(unsigned class) {
	uint32_t index = new_record();
	uint32_t segment = index ? segment_open(class_size(class), false) : 0;
	if (!segment) {
		if (index)
			free_record(index);
		return 0;
	}
	struct segment *s = &segments[segment];
	write_record(index, segment, s->base, class);
	owners_set(s->base, s->size, index);
	return index;
}

/* From which size on blocks get a file of their own. Where addresses are scarce pools of large ones would take too many. */
static size_t own_file_min(void) { return range.size < PLENTY ? LARGE_MIN : OWN_FILE_MIN; }

/* Whether blocks of that size, if they get no file of their own, lie in pools for large ones. */
static bool in_large_pool(size_t size) { return size >= LARGE_MIN && size < own_file_min(); }

/* Opens another pool. Where addresses are scarce a smaller one serves; where descriptors are, it serves for long. */
static uint32_t pool_open(size_t size) {
	size_t most = !descriptor_spare(MIB) ? SCARCE_POOL_SIZE : in_large_pool(size) ? LARGE_POOL_SIZE : POOL_SIZE;
	uint32_t pool = 0;
	for (size_t goal = most; !pool && goal >= size && goal >= 4 * MIB; goal /= 4)
		pool = segment_open(goal, true);
	return pool;
}

static uint32_t pool_block(unsigned class) {
	size_t size = class_size(class);
	uint32_t *pool = &pools[in_large_pool(size)];
	if (!*pool || segments[*pool].used + size > segments[*pool].size) {
		uint32_t other = pool_open(size);
		if (!other)
			return 0;
		*pool = other;
	}
	uint32_t index = new_record();
	if (!index)
		return 0;
	struct segment *s = &segments[*pool];
	/* Without a gap, however large: it would have to be the pool's own until that is closed, and keep the file until then. */
	write_record(index, *pool, s->base + s->used, class);
	owners_set(s->base + s->used, size, index);
	s->used += size;
	return index;
}

uint32_t supply_take(unsigned class, size_t size, size_t align, uint64_t *dirty) {
	uint32_t index = 0;
	bool refused = size >= LARGE_MIN && !affordable(size);
	lock(&supply_lock);
	if (refused) {
		range_yield(size); /* so that malloc gets what it would get without us */
	} else if (supply_ready()) {
		if (class_size(class) >= own_file_min() && descriptor_spare(class_size(class)))
			index = own_block(class);
		if (!index && cold[class]) {
			index = cold[class];
			cold[class] = blocks[index].below;
		}
		if (!index)
			index = pool_block(class);
	}
	if (index) {
		segments[blocks[index].segment].taken++;
		*dirty = block_begin(&blocks[index], size, align);
		trim_made(class, size);
	} else {
		refused_count++;
	}
	unlock(&supply_lock);
	if (index)
		arena_count_fresh(size);
	return index;
}

/* Whether nobody outside sees the block, so that its pages may be changed under supply_lock. */
static bool unseen(const struct block *b) { return !b->frozen && !pins_of(atomic_load(&b->state)); }

bool supply_grow(uint32_t index, size_t size) {
	struct block *b = &blocks[index];
	struct segment *s = &segments[b->segment];
	unsigned class = class_of(b->user - b->base + size);
	lock(&supply_lock);
	uintptr_t old = s->base;
	uint64_t old_size = s->size;
	bool grown = class < CLASSES && !s->pool && unseen(b) && segment_grow(s, class_size(class));
	if (grown) {
		owners_set(old, old_size, 0);
		owners_set(s->base, s->size, index);
		atomic_store_explicit(&b->user, b->user - b->base + s->base, memory_order_relaxed);
		b->base = s->base;
		b->class = (uint8_t)class;
	}
	unlock(&supply_lock);
	return grown;
}

void supply_shrink(uint32_t index, size_t size) {
	struct block *b = &blocks[index];
	uintptr_t from = (b->user + size + GRANULE - 1) & ~(GRANULE - 1);
	if (from + MIB > b->base + b->hot)
		return;
	lock(&supply_lock);
	if (unseen(b) && next.madvise((void *)from, b->base + b->hot - from, MADV_REMOVE) == 0)
		b->hot = from - b->base;
	unlock(&supply_lock);
}

void supply_return(uint32_t index) {
	struct block *b = &blocks[index];
	struct segment *s = &segments[b->segment];
	if (s->pool) {
		atomic_store_explicit(&b->state, BLOCK_COLD, memory_order_relaxed);
		b->below = cold[b->class];
		cold[b->class] = index;
		if (--s->taken == 0 && s->size <= LARGE_POOL_SIZE) { /* there are many such files */
			range_clear(s->base, s->size);
			supply_forget(b->segment, true);
		}
	} else {
		segment_forget(b->segment);
		free_record(index);
	}
}

/* Gives addresses of a frozen segment back. */
static void give(uintptr_t from, uintptr_t to) {
	range_clear(from, to - from);
	owners_set(from, to - from, 0);
	range_give(from, to - from);
}

/*
 * Ends a frozen segment with all the records of its blocks. What was promoted is not in it any more, and others may be
 * there by now. The file stays for those who have pinned it.
 */
static void close_frozen(uint32_t segment) {
	struct segment *s = &segments[segment];
	uintptr_t at = s->base, end = s->base + s->size;
	while (at < end) {
		uintptr_t from = at;
		for (uint32_t index; at < end && (index = owner_of((void *)at)) && blocks[index].segment == segment;) {
			at = blocks[index].base + class_size(blocks[index].class);
			free_record(index);
		}
		if (at > from)
			give(from, at);
		else
			at += GRANULE;
	}
	s->size = 0;
	if (!s->pinned)
		segment_abandon(segment);
}

uint32_t supply_pins(const struct block *b) {
	uint32_t pins = pins_of(atomic_load(&b->state));
	for (const struct segment *s = &segments[b->segment]; s->elder; s = &segments[s->elder])
		pins -= s->elder_pins;
	return pins;
}

/* Takes a pin off an earlier file that the block lay in. False: there is none on it. */
static bool unpin_elder(struct segment *s, uint64_t id) {
	while (s->elder && segments[s->elder].id != id)
		s = &segments[s->elder];
	uint32_t index = s->elder;
	if (!index)
		return false;
	if (--s->elder_pins)
		return true;
	struct segment *elder = &segments[index];
	s->elder = elder->elder;
	s->elder_pins = elder->elder_pins;
	elder->elder = elder->elder_pins = 0;
	if (--elder->pinned == 0)
		segment_close_fd(elder);
	if (!elder->pinned && !elder->live)
		segment_abandon(index);
	return true;
}

bool supply_repin(const struct block *b, uint64_t id) {
	struct segment *s = &segments[b->segment];
	return id == s->id ? supply_pins(b) != 0 : unpin_elder(s, id);
}

void supply_unpinned(const struct block *b, uint64_t id) {
	struct segment *s = &segments[b->segment];
	if (id && id != s->id)
		unpin_elder(s, id);
	else if (b->frozen && !supply_pins(b) && s->pinned && --s->pinned == 0)
		segment_close_fd(s);
}

void supply_melt(uint32_t index, uint32_t segment) {
	struct block *b = &blocks[index];
	uint32_t before = b->segment;
	struct segment *old = &segments[before], *s = &segments[segment];
	if (supply_pins(b)) { /* by which the old file is pinned, too */
		s->elder = before;
		s->elder_pins = supply_pins(b);
	} else {
		s->elder = old->elder;
		s->elder_pins = old->elder_pins;
		old->elder = old->elder_pins = 0;
	}
	b->segment = segment;
	b->frozen = NOT_FROZEN;
	if (!old->pool)
		old->size = 0; /* the addresses are the new one's */
	if (before && --old->live == 0)
		close_frozen(before);
}

uint32_t supply_outside(uintptr_t from, uintptr_t to, uintptr_t user) {
	uint32_t index = new_record();
	if (!index)
		return 0;
	struct block *b = &blocks[index];
	write_record(index, 0, from, CLASS_OUTSIDE);
	atomic_store_explicit(&b->user, user, memory_order_relaxed);
	atomic_store_explicit(&b->size, to - user, memory_order_relaxed);
	b->hot = to - from;
	b->frozen = FROZEN_OUTSIDE;
	atomic_store_explicit(&b->guarded, false, memory_order_relaxed);
	atomic_store_explicit(&b->state, BLOCK_LIVE, memory_order_release);
	return index;
}

void supply_end_outside(uint32_t index) {
	uint32_t segment = blocks[index].segment;
	free_record(index);
	if (segment)
		segment_abandon(segment);
}

void supply_end_frozen(uint32_t index) {
	struct block *b = &blocks[index];
	struct segment *s = &segments[b->segment];
	atomic_store_explicit(&b->state, BLOCK_NONE, memory_order_relaxed);
	if (--s->live == 0)
		close_frozen(b->segment);
}

bool supply_release_frozen(uint32_t index) {
	struct block *b = &blocks[index];
	promote_keep_off((void *)b->base, block_extent(b));
	if (!b->frozen) {
		promote_let_on();
		return false;
	}
	/*
	 * Its private pages are of no use any more. The file's pages stay until the whole segment is
	 * done: the other side of the fork may still read them.
	 */
	if (b->frozen == FROZEN_OVER)
		range_clear(b->base, class_size(b->class));
	else
		next.madvise((void *)b->base, class_size(b->class), MADV_DONTNEED);
	lock(&supply_lock);
	supply_end_frozen(index);
	unlock(&supply_lock);
	promote_let_on();
	return true;
}

/* Takes the blocks of a file out of the lists of cold ones. */
static void forget_cold(uint32_t segment) {
	for (unsigned class = 0; class < CLASSES; class++)
		for (uint32_t *link = &cold[class]; *link;)
			if (blocks[*link].segment == segment)
				*link = blocks[*link].below;
			else
				link = &blocks[*link].below;
}

void supply_forget(uint32_t segment, bool ours) {
	struct segment *s = &segments[segment];
	if (s->pool)
		forget_cold(segment);
	for (int i = 0; i < 2; i++)
		pools[i] = pools[i] == segment ? 0 : pools[i];
	uint32_t last = 0;
	for (uintptr_t at = s->base; at < s->base + s->size; at += GRANULE) {
		uint32_t index = owner_of((void *)at);
		if (index && index != last)
			free_record(index);
		last = index;
	}
	if (ours) {
		segment_forget(segment);
		return;
	}
	owners_set(s->base, s->size, 0);
	segment_abandon(segment);
}

void supply_forget_frozen(void) {
	for (unsigned class = 0; class < CLASSES; class++) {
		uint32_t index = cold[class], kept = 0, following;
		for (; index; index = following) {
			struct block *b = &blocks[index];
			following = b->below;
			if (segments[b->segment].state == SEGMENT_FROZEN) {
				atomic_store_explicit(&b->state, BLOCK_NONE, memory_order_relaxed);
				continue;
			}
			b->below = kept;
			kept = index;
		}
		cold[class] = kept;
	}
	for (int i = 0; i < 2; i++)
		pools[i] = segments[pools[i]].state == SEGMENT_FROZEN ? 0 : pools[i];
}
