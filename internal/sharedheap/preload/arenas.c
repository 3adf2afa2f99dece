/*
 * Freed blocks that are kept warm, with their pages, for the next request of their class. Fresh pages
 * cost far more than anything else here, so recycling decides how fast the heap is.
 *
 * Each thread has one of a few arenas, so that threads seldom wait for each other. In each arena the
 * blocks of a class form a stack (the last one freed is taken first: the caches still know it), and
 * all blocks together a list by age, from whose end the trimmer takes.
 */
#include <time.h>

#include "heap.h"

struct arena arenas[ARENAS];
_Atomic int64_t total_live, total_warm;

/* Arenas add what they counted to the totals in lumps, since the totals are shared by all threads. */
#define LUMP ((int64_t)MIB)

/* ms; older than any block can be. */
#define AGES ((uint32_t)1 << 30)

static struct arena *arena_of_thread(void) {
	static _Atomic uint32_t threads;
	static _Thread_local struct arena *mine;
	if (unlikely(!mine))
		mine = &arenas[atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % ARENAS];
	return mine;
}

static void count(int64_t *here, _Atomic int64_t *total, int64_t bytes) {
	*here += bytes;
	if (*here >= LUMP || *here <= -LUMP) {
		atomic_fetch_add_explicit(total, *here, memory_order_relaxed);
		*here = 0;
	}
}

uint32_t now_ms(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint32_t)((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000);
}

void arena_remove(struct arena *a, uint32_t index) {
	struct block *b = &blocks[index];
	if (b->above)
		blocks[b->above].below = b->below;
	else
		atomic_store_explicit(&a->top[b->class], b->below, memory_order_relaxed);
	if (b->below)
		blocks[b->below].above = b->above;
	if (b->newer)
		blocks[b->newer].older = b->older;
	else
		a->newest = b->older;
	if (b->older)
		blocks[b->older].newer = b->newer;
	else
		atomic_store_explicit(&a->oldest, b->newer, memory_order_relaxed);
	count(&a->warm, &total_warm, -(int64_t)b->hot);
}

static int32_t age(uint32_t index, uint32_t now) {
	return (int32_t)(now - atomic_load_explicit(&blocks[index].released, memory_order_relaxed));
}

/* Puts a block into the list by age, at one of its ends. */
static void insert_by_age(struct arena *a, uint32_t index, uint32_t released) {
	struct block *b = &blocks[index];
	uint32_t oldest = atomic_load_explicit(&a->oldest, memory_order_relaxed);
	bool last = oldest && age(oldest, released) < 0;
	b->newer = last ? oldest : 0;
	b->older = last ? 0 : a->newest;
	if (b->newer)
		blocks[b->newer].older = index;
	else
		a->newest = index;
	if (b->older)
		blocks[b->older].newer = index;
	else
		atomic_store_explicit(&a->oldest, index, memory_order_relaxed);
	atomic_store_explicit(&b->released, released, memory_order_relaxed);
}

static void insert(struct arena *a, uint32_t index, uint32_t released) {
	struct block *b = &blocks[index];
	b->above = 0;
	b->below = atomic_load_explicit(&a->top[b->class], memory_order_relaxed);
	if (b->below)
		blocks[b->below].above = index;
	atomic_store_explicit(&a->top[b->class], index, memory_order_relaxed);
	insert_by_age(a, index, released);
	b->arena = (uint8_t)(a - arenas);
	count(&a->warm, &total_warm, (int64_t)b->hot);
}

/* Takes the top of a class of one arena. */
static uint32_t take_from(struct arena *a, unsigned class, size_t size, size_t align, uint64_t *dirty) {
	lock(&a->lock);
	uint32_t index = atomic_load_explicit(&a->top[class], memory_order_relaxed);
	if (index) {
		arena_remove(a, index);
		*dirty = block_begin(&blocks[index], size, align);
		count(&a->live, &total_live, (int64_t)size);
		a->taken++;
		a->reused++;
	}
	unlock(&a->lock);
	return index;
}

uint32_t arena_take(unsigned class, size_t size, size_t align, uint64_t *dirty) {
	struct arena *mine = arena_of_thread();
	uint32_t index = take_from(mine, class, size, align, dirty);
	/* What one thread frees, another may want: a glance at the others is cheaper than fresh pages. */
	for (unsigned i = 0; !index && i < ARENAS; i++) {
		if (&arenas[i] != mine && atomic_load_explicit(&arenas[i].top[class], memory_order_relaxed))
			index = take_from(&arenas[i], class, size, align, dirty);
	}
	return index;
}

void arena_count_fresh(size_t size) {
	struct arena *a = arena_of_thread();
	lock(&a->lock);
	count(&a->live, &total_live, (int64_t)size);
	a->taken++;
	unlock(&a->lock);
}

bool arena_give(uint32_t index) {
	struct block *b = &blocks[index];
	struct arena *a = arena_of_thread();
	/* What is too large to be kept must not drive others out: it is the next to go. */
	uint32_t released = (int64_t)b->hot > trim_keep() ? now_ms() - AGES : now_ms();
	lock(&a->lock);
	count(&a->live, &total_live, -(int64_t)atomic_load_explicit(&b->size, memory_order_relaxed));
	a->given++;
	bool frozen = b->frozen; /* a fork holds this lock while it sets it */
	if (!frozen) {
		insert(a, index, released);
		atomic_store_explicit(&b->state, BLOCK_WARM, memory_order_relaxed);
	}
	unlock(&a->lock);
	return !frozen;
}

void arena_resize(struct block *b, size_t size) {
	struct arena *a = arena_of_thread();
	lock(&a->lock);
	count(&a->live, &total_live, (int64_t)size - (int64_t)atomic_load_explicit(&b->size, memory_order_relaxed));
	atomic_store_explicit(&b->size, size, memory_order_relaxed);
	uint64_t end = b->user - b->base + size;
	if (end > b->hot)
		__atomic_store_n(&b->hot, end, __ATOMIC_SEQ_CST); /* who promotes the block reads it without the lock */
	unlock(&a->lock);
}

uint32_t arena_take_oldest(uint32_t now, uint32_t idle_ms) {
	struct arena *a = NULL;
	int32_t most = INT32_MIN, least = idle_ms < INT32_MAX ? (int32_t)idle_ms : INT32_MAX;
	for (unsigned i = 0; i < ARENAS; i++) { /* without their locks: a hint, checked below */
		uint32_t index = atomic_load_explicit(&arenas[i].oldest, memory_order_relaxed);
		if (index && age(index, now) > most) {
			most = age(index, now);
			a = &arenas[i];
		}
	}
	if (!a)
		return 0;
	lock(&a->lock);
	uint32_t index = atomic_load_explicit(&a->oldest, memory_order_relaxed);
	if (index && age(index, now) >= least) {
		arena_remove(a, index);
		atomic_store_explicit(&blocks[index].state, BLOCK_DROPPING, memory_order_relaxed);
	} else {
		index = 0;
	}
	unlock(&a->lock);
	return index;
}

void arenas_forget(void) {
	for (unsigned i = 0; i < ARENAS; i++) {
		struct arena *a = &arenas[i];
		for (unsigned class = 0; class < CLASSES; class++)
			atomic_store_explicit(&a->top[class], 0, memory_order_relaxed);
		a->newest = 0;
		atomic_store_explicit(&a->oldest, 0, memory_order_relaxed);
		a->warm = 0;
	}
	atomic_store(&total_warm, 0);
}
