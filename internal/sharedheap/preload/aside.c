/*
 * Page tables that a fork has moved aside.
 *
 * Where a private mapping takes the place of a shared one, the kernel takes every page of the old one out of the page tables:
 * 50 ms for a GiB, for which the fork would wait. So the page tables are moved to other addresses first, at a hundredth of
 * that cost, and unmapped there when the fork is over: by the keeper if there is one, else by ndheap_trim if somebody calls
 * it, else by the thread that has forked. A thread that writes in between finds its page in the file.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "heap.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4 /* of shared mappings from Linux 5.13 on */
#endif

enum { PLACES = 64 };
static const size_t piece = 32 * MIB; /* unmapped at a time: who wants to map something waits for it */

/* What forks have moved aside and nobody has unmapped yet, each in a mapping of its own, so that nothing else is between. */
static struct {
	uintptr_t base;
	size_t size;
} places[PLACES];
static uint32_t count;

static uintptr_t room, end; /* the addresses that are left in the last place, during a fork */
static bool refused;        /* by the kernel */

/* How many addresses a segment takes. Page tables of whole huge pages are moved as a whole, if they keep their place in them. */
static size_t room_for(const struct segment *s) { return s->size < HUGE_PAGE ? s->size : s->size + HUGE_PAGE; }

void aside_open(bool (*moves)(const struct segment *)) {
	struct rlimit limit;
	size_t size = 0;
	for (uint32_t i = 1; i < segment_count; i++)
		size += moves(&segments[i]) ? room_for(&segments[i]) : 0;
	room = end = 0;
	if (!size || refused || count == PLACES || getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY)
		return;
	void *p = next.mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return;
	room = (uintptr_t)p;
	end = room + size;
	places[count++].base = room;
}

void aside_move(const struct segment *s) {
	size_t part = range_owns((void *)s->base) ? 0 : OUTSIDE_PART; /* the kernel moves one mapping */
	uintptr_t base = s->base + part, at = room;
	size_t size = s->size - part;
	if (size >= HUGE_PAGE)
		at += (base - room) % HUGE_PAGE;
	if (end - room < at - room + size)
		return;
	const int how = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
	if (next.mremap((void *)base, size, size, how, (void *)at) != MAP_FAILED) {
		room = at + size;
		return;
	}
	/* The kernel may have unmapped what was there, and somebody may have mapped something: it is no part of the place. */
	refused = errno == EINVAL;
	next.munmap((void *)(at + size), end - at - size);
	end = room = at;
}

void aside_close(void) {
	if (!end)
		return;
	if (room < end)
		next.munmap((void *)room, end - room);
	uintptr_t base = places[count - 1].base;
	places[count - 1].size = room - base;
	if (room == base)
		count--;
	else
		next.madvise((void *)base, room - base, MADV_DONTFORK);
	room = end = 0;
}

void aside_clear(void) {
	while (count && !atomic_load(&trim_hurry)) {
		uintptr_t base = places[count - 1].base;
		size_t size = places[count - 1].size, left = size > piece ? size - piece : 0;
		places[count - 1].size = left;
		count -= !left;
		next.munmap((void *)(base + left), size - left);
	}
}

void aside_forget(void) { count = 0; }
