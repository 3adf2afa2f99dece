/*
 * Page tables that a fork has moved aside.
 *
 * Where a private mapping takes the place of a shared one, the kernel takes every page of the old one out of the page tables:
 * 50 ms for a GiB, for which the fork would wait. So the page tables are moved to other addresses first, at a hundredth of
 * that cost, and unmapped there when the fork is over: by the keeper if there is one, else by ndheap_trim if somebody calls
 * it, else by the thread that has forked. A thread that writes in between finds its page in the file.
 */
#include <sys/mman.h>
#include <sys/resource.h>

#include "heap.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4 /* of shared mappings from Linux 5.13 on */
#endif

enum { PLACES = 4096 };
static const size_t piece = 32 * MIB; /* unmapped at a time: who wants to map something waits for it */

static struct {
	uintptr_t base;
	size_t size;
} places[PLACES];
static uint32_t count;

/* Addresses at which nothing is mapped now, aligned as base is, so that page tables are moved as a whole. */
static void *hint(uintptr_t base, size_t size) {
	char *at = next.mmap(NULL, size + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	next.munmap(at, size + HUGE_PAGE);
	return at + (base - (uintptr_t)at) % HUGE_PAGE;
}

void aside_move(const struct segment *s) {
	struct rlimit limit;
	size_t part = range_owns((void *)s->base) ? 0 : OUTSIDE_PART; /* the kernel moves one mapping */
	uintptr_t base = s->base + part;
	size_t size = s->size - part;
	if (count == PLACES || getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY)
		return;
	void *at = next.mremap((void *)base, size, size, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, hint(base, size));
	if (at == MAP_FAILED)
		return;
	next.madvise(at, size, MADV_DONTFORK);
	places[count].base = (uintptr_t)at;
	places[count++].size = size;
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
