/*
 * Which warm blocks go back to the system, and when. A program should take no more memory than with a
 * malloc that gives large blocks back at once. But fresh pages of a file cost far more than anything else
 * here, and more than malloc's, so it should seldom need them.
 *
 * - A block that is freed goes back at once until the program asks for its like again. From then on that
 *   much is kept, but no more than is live: a loop finds its temporaries where it left them.
 * - Fresh blocks take the place of warm ones: live and warm blocks together stay below an eighth more
 *   than was ever live.
 * - Whatever nobody took for a while goes back when ndheap_trim is called. The heap has no thread of its
 *   own for that, since the program would see it. The plugin has threads, and calls. While it does, the
 *   heap keeps up to 256 MiB at first without being asked again: a function that is called returns a fresh
 *   array, which is freed before the next call, for whose result it is there.
 *
 * Giving pages back takes long (a 64 MiB block: 5 ms). It needs trim_lock alone, which nobody needs in
 * order to allocate; only a fork waits for it.
 */
#include <errno.h>
#include <sys/mman.h>

#include "heap.h"

struct lock trim_lock;
_Atomic bool trim_hurry;
_Atomic uint64_t dropped_count;

static uint32_t parted[CLASSES]; /* blocks that went back and were not asked for since; supply_lock */
static _Atomic int64_t missed;   /* bytes that went back and were asked for again */
static _Atomic int64_t most_live;
static _Atomic bool tended;      /* somebody calls ndheap_trim */

static int64_t keep_min(void) {
	return atomic_load_explicit(&tended, memory_order_relaxed) ? KEEP_MIN_TENDED : KEEP_MIN;
}

/* Gives a DROPPING block's pages back. Answers with their bytes. Wants trim_lock. */
static uint64_t drop(uint32_t index) {
	struct block *b = &blocks[index];
	uint64_t bytes = b->hot;
	/* Even if the file is closed next: a host may still have it mapped. */
	bool removed = next.madvise((void *)b->base, class_size(b->class), MADV_REMOVE) == 0;
	if (!segments[b->segment].pool) {
		range_clear(b->base, class_size(b->class));
		segment_close_fd(&segments[b->segment]);
	} else if (removed) {
		b->hot = 0;
	} else {
		bytes = 0; /* forbidden here: the block stays dirty, and calloc must know */
	}
	lock(&supply_lock);
	parted[b->class]++;
	supply_return(index);
	unlock(&supply_lock);
	atomic_fetch_add_explicit(&dropped_count, 1, memory_order_relaxed);
	return bytes;
}

/* Gives warm blocks back, the oldest first, until no more than limit bytes of them are left. */
static void trim_to(int64_t limit) {
	/* Whoever trims already looks at the same total: no need to wait for it. */
	if (likely(atomic_load_explicit(&total_warm, memory_order_relaxed) <= limit) || !lock_try(&trim_lock))
		return;
	uint32_t index;
	while (atomic_load_explicit(&total_warm, memory_order_relaxed) > limit && !atomic_load(&trim_hurry) &&
	       (index = arena_take_oldest(now_ms(), 0)))
		drop(index);
	unlock(&trim_lock);
}

int64_t trim_keep(void) {
	int64_t live = atomic_load_explicit(&total_live, memory_order_relaxed);
	int64_t wanted = atomic_load_explicit(&missed, memory_order_relaxed);
	int64_t keep = live < wanted ? live : wanted;
	if (keep < KEEP_TENDED && atomic_load_explicit(&tended, memory_order_relaxed))
		keep = KEEP_TENDED;
	return keep + keep_min();
}

void trim_excess(void) { trim_to(trim_keep()); }

/* What will be live with so much more. */
static int64_t live_with(size_t size) {
	return atomic_load_explicit(&total_live, memory_order_relaxed) + (int64_t)size;
}

void trim_for(size_t size) {
	int64_t live = live_with(size), most = atomic_load_explicit(&most_live, memory_order_relaxed);
	if (live > most)
		most = live;
	trim_to(most + most / 8 + keep_min() - live);
}

void trim_made(unsigned class, size_t size) {
	int64_t live = live_with(size);
	if (live > atomic_load_explicit(&most_live, memory_order_relaxed))
		atomic_store_explicit(&most_live, live, memory_order_relaxed);
	if (!parted[class])
		return;
	parted[class]--;
	atomic_fetch_add_explicit(&missed, (int64_t)class_size(class), memory_order_relaxed);
}

void trim_aside(void) {
	if (!lock_try(&trim_lock))
		return;
	aside_clear();
	unlock(&trim_lock);
}

void trim_after_fork(void) {
	if (keeper_tidies() || atomic_load(&tended))
		return;
	lock(&trim_lock);
	aside_clear();
	unlock(&trim_lock);
}

void trim_forget(void) {
	atomic_store(&tended, false);
	atomic_store(&trim_hurry, false); /* another thread may have been about to fork */
}

EXPORTED uint64_t ndheap_trim(uint32_t idle_ms) {
	int saved = errno;
	uint64_t bytes = 0;
	uint32_t index;
	atomic_store(&tended, idle_ms != NDHEAP_UNTENDED);
	lock(&trim_lock);
	aside_clear();
	while (!atomic_load(&trim_hurry) && (index = arena_take_oldest(now_ms(), idle_ms)))
		bytes += drop(index);
	int64_t wanted = atomic_load(&missed); /* it only grows meanwhile */
	atomic_fetch_sub(&missed, (int64_t)bytes < wanted ? (int64_t)bytes : wanted);
	unlock(&trim_lock);
	if (idle_ms == NDHEAP_UNTENDED)
		trim_excess();
	outside_tidy();
	errno = saved;
	return bytes;
}
