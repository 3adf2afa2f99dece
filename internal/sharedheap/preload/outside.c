/*
 * Memory outside the heap that can become shared in place: what glibc's malloc maps for one request alone.
 *
 * Callers that are no array frameworks (Python's own bytes and bytearray, say) get their memory from the libc. Glibc maps
 * a large request separately: its pages hold the caller's bytes and nobody else's. This file knows each such *chunk* from
 * malloc to free, or from the moment at which it is asked for, where the library was loaded late. When a host looks at an array in one, the chunk becomes a block, whose addresses lie outside the range,
 * and is promoted like a block that a fork has made private (promote.c). From then on it is a block like others: a fork
 * freezes it, and pins keep it. What is freed goes back to the libc, which unmaps it.
 *
 * A chunk is promoted only if the array fills it, but for less than a page at either end, and only if its mapping is an
 * ordinary one: not locked, not of huge pages, nor with advice of the program's that a file would not follow.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heap.h"

/* As many chunks as are known at a time: all of them are compared with an address. */
enum { CHUNKS = 1024 };

/*
 * Written with outside_lock held. A place is free if to is 0. from is written before to. Who reads without the lock never
 * misses a chunk, but may take two that have had a place one after the other for a third.
 */
static struct chunk {
	_Atomic uintptr_t from, to; /* its pages */
	_Atomic uintptr_t user;     /* what malloc gave */
	_Atomic uint32_t block;     /* 0: none yet */
	_Atomic bool advised;       /* the program has said something of its pages that a file would not keep */
	uint32_t copies, due;       /* copies for hosts, and after how many the next promotion is tried */
} chunks[CHUNKS];

struct lock outside_lock;
_Atomic uint32_t outside_end, outside_age;
_Atomic uintptr_t outside_from = UINTPTR_MAX, outside_to;

static bool libc_malloc; /* the next malloc is glibc's */

void outside_start(const char *tunables) {
	libc_malloc = in_span(&libc_span, (uintptr_t)next.malloc) && (!tunables || !strstr(tunables, "glibc.malloc.hugetlb"));
}

/* Wants outside_lock. */
static struct chunk *chunk_with(uintptr_t at) {
	uint32_t end = atomic_load(&outside_end);
	for (struct chunk *c = chunks; c < chunks + end; c++) {
		if (at < c->to && at >= c->from)
			return c;
	}
	return NULL;
}

bool outside_knows(const void *p, size_t size) {
	uintptr_t from = (uintptr_t)p, to = from + size < from ? UINTPTR_MAX : from + size;
	fork_catch_up();
	uint32_t end = atomic_load(&outside_end);
	for (const struct chunk *c = chunks; c < chunks + end; c++) {
		if (from < atomic_load_explicit(&c->to, memory_order_acquire) && to > atomic_load_explicit(&c->from, memory_order_relaxed))
			return true;
	}
	return false;
}

/*
 * What glibc notes in front of a chunk that it has mapped: how far before the chunk the mapping begins, and the chunk's size, down to
 * the end of the mapping, or, from 2.43 on, to what would be the head of a next one.
 */
static bool understand_head(const size_t head[2], uintptr_t user, uintptr_t *from, uintptr_t *to) {
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), at = user - 2 * sizeof(size_t);
	*from = at - head[0];
	*to = at + (head[1] & ~(size_t)7);
	if (*to % page == page - sizeof(size_t[2]))
		*to += sizeof(size_t[2]);
	return head[1] & OUTSIDE_MAPPED && *from % page == 0 && *to % page == 0 && *from <= at && *to > user;
}

static bool read_head(uintptr_t user, uintptr_t *from, uintptr_t *to) {
	return understand_head((const size_t *)user - 2, user, from, to);
}

static void widen(uintptr_t from, uintptr_t to) {
	if (from < atomic_load(&outside_from))
		atomic_store(&outside_from, from);
	if (to > atomic_load(&outside_to))
		atomic_store(&outside_to, to);
}

void outside_advise(const void *p, size_t size) {
	uintptr_t from = (uintptr_t)p, to = from + size;
	lock(&outside_lock);
	for (struct chunk *c = chunks; c < chunks + outside_end; c++)
		if (from < c->to && to > c->from)
			atomic_store(&c->advised, true);
	unlock(&outside_lock);
}

/* Forgets a chunk. Wants outside_lock. */
static void forget(struct chunk *c) {
	uint32_t end = atomic_load(&outside_end);
	atomic_store(&c->to, 0);
	while (end && !atomic_load(&chunks[end - 1].to))
		end--;
	atomic_store(&outside_end, end);
}

/* Ends the blocks there that nobody outside sees, once they are private: what is left of them is memory like any other. False: some stay. */
static bool end_blocks(uintptr_t from, uintptr_t to) {
	bool all = true;
	lock(&supply_lock);
	for (uintptr_t at = from, next_at; at < to; at = next_at) {
		uint32_t index = outside_block_from(at, &next_at);
		if (index && (fork_is_open() || atomic_load(&blocks[index].state) != BLOCK_LIVE))
			all = false;
		else if (index)
			outside_end_block(index);
	}
	unlock(&supply_lock);
	return all;
}

/*
 * Takes chunks for gone at whose addresses there is another one now: somebody has called the libc's free itself, as ctypes
 * does. False: one is a block that somebody outside sees, and its addresses stay known as that block's.
 */
static bool forget_gone(uintptr_t from, uintptr_t to) {
	bool block = false;
	lock(&outside_lock);
	for (struct chunk *c = chunks; c < chunks + outside_end; c++) {
		if (from >= c->to || to <= c->from)
			continue;
		if (c->block)
			block = true;
		else
			forget(c);
	}
	unlock(&outside_lock);
	if (!block)
		return true;
	promote_halt(); /* or it might become shared again in between */
	bool none = fork_yield_outside(from, to) && end_blocks(from, to);
	promote_resume();
	return none;
}

/* Knows a chunk from now on, but for a place to note it in. */
static void know(uintptr_t user, uintptr_t from, uintptr_t to) {
	if (to - from <= GRANULE) /* such a one has been made smaller, and a copy is as good */
		return;
	if (outside_touches((void *)from, to - from) && !forget_gone(from, to))
		return;
	lock(&outside_lock);
	struct chunk *c = chunks;
	while (c < chunks + CHUNKS && atomic_load(&c->to))
		c++;
	if (c < chunks + CHUNKS) {
		widen(from, to);
		atomic_store(&c->user, user);
		atomic_store(&c->block, 0);
		atomic_store(&c->advised, false);
		c->copies = 0, c->due = 1; /* to copy what is looked at once is faster than to move it */
		atomic_store(&c->from, from);
		atomic_store(&c->to, to);
		if (c == chunks + atomic_load(&outside_end))
			atomic_fetch_add(&outside_end, 1);
	}
	unlock(&outside_lock);
}

void *outside_note(void *p) {
	uintptr_t from, to;
	if (p && libc_malloc && read_head((uintptr_t)p, &from, &to)) {
		fork_catch_up();
		know((uintptr_t)p, from, to);
	}
	return p;
}

/*
 * Learns of the chunk that an array fills, if it fills one, from what glibc has noted in front of it: whoever loads the library late was not
 * there when the chunk came. What looks so, down to the page at both ends, is nothing else.
 */
static void learn(uintptr_t at, size_t size) {
	enum { PART = 4096 }; /* what is read at a time lies in one page */
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t heads[PART / sizeof(size_t[2])][2];
	uintptr_t user = at & ~(uintptr_t)15, from, to;
	if (!libc_malloc || at < 2 * page || size + 2 * page <= GRANULE)
		return; /* no chunk lies there, or is so small */
	while (user + page > at) {
		uintptr_t part = (user - sizeof *heads) & ~(uintptr_t)(PART - 1);
		bool there = maps_read(heads, part, PART);
		for (; user > part && user + page > at; user -= sizeof *heads) {
			const size_t *head = heads[(user - part) / sizeof *heads - 1];
			if (there && understand_head(head, user, &from, &to) && at - from <= page && size <= to - at && to - at - size <= page) {
				know(user, from, to);
				return;
			}
		}
	}
}

/* Is outside_leave. last, if it is not NULL: the block has been given back, and whether for good. */
static uint32_t leave(const void *p, bool *last) {
	fork_catch_up();
	lock(&outside_lock);
	struct chunk *c = chunk_with((uintptr_t)p);
	bool known = c && atomic_load(&c->user) == (uintptr_t)p;
	uint32_t block = known ? atomic_load(&c->block) : 0;
	if (known && !block)
		forget(c);
	if (block && last) /* before end_gone could take the block for gone */
		*last = block_leave(block, p);
	unlock(&outside_lock);
	return block;
}

uint32_t outside_leave(const void *p) { return leave(p, NULL); }

bool outside_give(void *p) {
	bool last = false;
	uint32_t block = leave(p, &last);
	if (last)
		block_release(block);
	return block != 0;
}

uint32_t outside_block(const void *p) {
	if (!outside_touches(p, 1))
		return 0;
	lock(&outside_lock);
	const struct chunk *c = chunk_with((uintptr_t)p);
	uint32_t block = c ? atomic_load(&c->block) : 0;
	unlock(&outside_lock);
	return block;
}

uint32_t outside_block_from(uintptr_t at, uintptr_t *to) {
	uint32_t end = atomic_load(&outside_end);
	*to = UINTPTR_MAX;
	for (const struct chunk *c = chunks; c < chunks + end; c++) {
		uint32_t block = atomic_load(&c->block);
		uintptr_t from = atomic_load(&c->from), last = atomic_load(&c->to);
		if (!block || last <= at)
			continue;
		if (from <= at) {
			*to = last;
			return block;
		}
		*to = from < *to ? from : *to;
	}
	return 0;
}

uint32_t outside_adopt(const void *p) {
	uint32_t index = outside_block(p);
	if (index)
		return index;
	lock(&outside_lock);
	struct chunk *c = chunk_with((uintptr_t)p);
	if (c && (index = supply_outside(c->from, c->to, c->user)) != 0)
		atomic_store(&c->block, index);
	unlock(&outside_lock);
	return index;
}

void outside_release(uint32_t index) {
	struct block *b = &blocks[index];
	void *p = (void *)b->user;
	promote_keep_off((void *)b->base, block_extent(b));
	lock(&supply_lock);
	bool later = fork_is_open();
	if (later) /* its end comes with that of the fork */
		atomic_store(&b->state, BLOCK_PENDING);
	else
		outside_end_block(index);
	unlock(&supply_lock);
	promote_let_on();
	if (!later)
		next.free(p);
}

void outside_end_block(uint32_t index) {
	lock(&outside_lock);
	struct chunk *c = chunk_with(blocks[index].base);
	if (c)
		forget(c);
	unlock(&outside_lock);
	supply_end_outside(index);
}

/* Ends blocks whose memory somebody has freed by a way that leads around us: their files would stay for nobody. */
static bool end_gone(const void *unused) {
	(void)unused;
	lock(&supply_lock);
	bool counted = maps_count();
	for (uint32_t i = 1; counted && i < block_count; i++) {
		const struct block *b = &blocks[i];
		if (atomic_load(&b->state) == BLOCK_LIVE && block_outside(b) && !b->frozen && !segments[b->segment].seen)
			outside_end_block(i);
	}
	unlock(&supply_lock);
	return counted;
}

void outside_tidy(void) {
	uint32_t age = atomic_fetch_add(&outside_age, 1);
	if (keeper_count() && !(age & (age - 1)))
		promote_run(end_gone, NULL);
}

void outside_unmap(const struct block *b) {
	uintptr_t from, to;
	if (read_head(b->user, &from, &to)) /* the libc may have made it smaller */
		next.munmap((void *)from, to - from);
}

void outside_part(uintptr_t base, int advice) {
	next.madvise((void *)base, OUTSIDE_PART, advice == MADV_RANDOM ? MADV_SEQUENTIAL : MADV_RANDOM);
}

EXPORTED void ndheap_refuse(const void *p) {
	lock(&outside_lock);
	struct chunk *c = chunk_with((uintptr_t)p);
	if (c)
		c->due = c->copies ? 2 * c->copies : 1;
	unlock(&outside_lock);
}

EXPORTED void ndheap_copied(const void *p) {
	if (!outside_touches(p, 1))
		return;
	lock(&outside_lock);
	struct chunk *c = chunk_with((uintptr_t)p);
	if (c)
		c->copies += c->copies < UINT32_MAX / 4;
	unlock(&outside_lock);
}

EXPORTED size_t ndheap_outside(const void *p, size_t size, int due) {
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t at = (uintptr_t)p;
	size_t found = 0;
	if (heap_late && !outside_touches(p, 1))
		learn(at, size);
	if (!outside_touches(p, 1))
		return 0;
	lock(&outside_lock);
	struct chunk *c = chunk_with(at);
	/* Whoever maps the file sees all of the chunk. */
	if (c && at - c->from <= page && size <= c->to - at && c->to - at - size <= page && (!due || c->copies >= c->due || promote_moves(c->block)))
		found = c->to - c->from;
	unlock(&outside_lock);
	return found;
}

bool outside_stands(const struct block *b) {
	uintptr_t from, to;
	size_t head[2];
	return maps_read(head, b->user - sizeof head, sizeof head) && understand_head(head, b->user, &from, &to) && from == b->base &&
	       to == b->base + b->hot;
}

bool outside_ordinary(const struct block *b) {
	lock(&outside_lock);
	const struct chunk *c = chunk_with(b->base);
	bool plain = c && !atomic_load(&c->advised);
	unlock(&outside_lock);
	return plain && maps_ordinary(b->base, b->base + b->hot) && outside_stands(b);
}
