/* Memory outside the heap that somebody frees by the libc's own free, as ctypes.CDLL("libc.so.6").free does, once it is shared. */
#include <dlfcn.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>

#include "stress.h"

static const size_t size = 4 * MIB;

/* What comes to lie where shared memory was is not the heap's, which neither changes it nor shows it. */
void test_outside_gone(void) {
	void (*libc_free)(void *);
	*(void **)&libc_free = dlsym(dlopen("libc.so.6", RTLD_NOW), "free");
	CHECK(mallopt(M_MMAP_THRESHOLD, 128 * KIB) == 1);
	for (int pinned = 0; pinned < 2; pinned++) {
		struct ndheap_block b;
		char *p = opaque(malloc(size)), *page = (char *)((uintptr_t)p & ~4095ul);
		fill(p, size, 1);
		CHECK(heap.promote(p) == 0 && (!pinned || (heap.pin(p, &b) == 0 && heap.grant(p) == 0)));
		char *seen = pinned ? map_outside(&b, PROT_READ) : NULL;
		libc_free(p);
		char *other = mmap(page, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		CHECK(other == page);
		fill(other, size, 2);
		fork_once();
		CHECK(filled(other, size, 2), "it was replaced by what lay there before");
		CHECK(!shared(p) && heap.promote(p) == -1);
		CHECK(!pinned || (filled(seen, size, 1) && heap.unpin(p, b.segment) == 0));
		CHECK(munmap(other, size) == 0 && mmap(other, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
	}
	/* The libc may serve the next request there. */
	int same = 0;
	for (int round = 0; round < 20; round++) {
		char *p = opaque(malloc(size));
		fill(p, size, 1);
		bool promoted = heap.promote(p) == 0;
		libc_free(p);
		char *next = opaque(malloc(size));
		same += promoted && next == p;
		fill(next, size, 2);
		CHECK(!shared(next) || next != p, "it is taken for what was freed");
		fork_once();
		CHECK(filled(next, size, 2));
		libc_free(next);
		CHECK((next = opaque(malloc(100 * MIB)))); /* so that the addresses are others' next time */
	}
	CHECK(same > 0);
}
