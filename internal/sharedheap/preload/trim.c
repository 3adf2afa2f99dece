/*
 * Which warm blocks go back to the system, and when: those beyond what should be kept, the oldest
 * first, and those that nobody wanted for some seconds.
 *
 * Giving pages back takes long (a 64 MiB block: 5 ms), so it is done with trim_lock alone, which
 * nobody needs in order to allocate; only a fork waits for it.
 */
#include <errno.h>
#include <sys/mman.h>

#include "heap.h"

struct lock trim_lock;
_Atomic uint64_t dropped_count;

/* Warm memory that is worth keeping: a share of what is live, which keeps loops over large arrays fast. */
static int64_t keep(void) {
	int64_t live = atomic_load_explicit(&total_live, memory_order_relaxed);
	return live > (int64_t)HEAP_KEEP ? live : (int64_t)HEAP_KEEP;
}

static bool excess(void) { return atomic_load_explicit(&total_warm, memory_order_relaxed) > keep(); }

/* Gives a DROPPING block's pages back. Answers with their bytes. Wants trim_lock. */
static uint64_t drop(uint32_t index) {
	struct block *b = &blocks[index];
	uint64_t bytes = b->hot;
	if (segments[b->segment].pool) {
		/* MADV_REMOVE rather than fallocate: it cannot hit a file that took the descriptor's number. */
		if (madvise((void *)b->base, class_size(b->class), MADV_REMOVE) == 0)
			b->hot = 0;
		else
			bytes = 0; /* forbidden here: the block stays dirty, and calloc must know */
	} else {
		range_clear(b->base, class_size(b->class));
		segment_close_fd(&segments[b->segment]);
		b->hot = 0;
	}
	lock(&supply_lock);
	supply_return(index);
	unlock(&supply_lock);
	atomic_fetch_add_explicit(&dropped_count, 1, memory_order_relaxed);
	return bytes;
}

void trim_excess(uint32_t now) {
	/* Whoever trims already goes on until there is no excess: no need to wait for it. */
	if (likely(!excess()) || !lock_try(&trim_lock))
		return;
	uint32_t index;
	while (excess() && (index = arena_take_oldest(now, 0))) {
		drop(index);
		now = now_ms();
	}
	unlock(&trim_lock);
}

static uint64_t trim_older(uint32_t now, uint32_t idle_ms, uint64_t limit) {
	uint64_t bytes = 0;
	uint32_t index;
	while (bytes < limit && (index = arena_take_oldest(now, idle_ms)))
		bytes += drop(index);
	return bytes;
}

/*
 * The heap has no thread of its own. So now and then a call of free looks for idle blocks, and gives
 * back a few, so that no single call takes long.
 */
void trim_idle(uint32_t now) {
	static _Atomic uint32_t last;
	if (likely(now - atomic_load_explicit(&last, memory_order_relaxed) < HEAP_IDLE_MS / 8) || !lock_try(&trim_lock))
		return;
	if (trim_older(now, HEAP_IDLE_MS, 16 * MIB) < 16 * MIB)
		atomic_store_explicit(&last, now, memory_order_relaxed);
	unlock(&trim_lock);
}

EXPORTED uint64_t ndheap_trim(uint32_t idle_ms) {
	int saved = errno;
	lock(&trim_lock);
	uint64_t bytes = trim_older(now_ms(), idle_ms, UINT64_MAX);
	unlock(&trim_lock);
	errno = saved;
	return bytes;
}
