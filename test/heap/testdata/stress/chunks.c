/* What is known of memory outside the heap, beside threads that take and free such memory. */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

#include "stress.h"

enum { CHUNKS = 200, TURNS = 100 * CHUNKS };
static const size_t small = 256 * KIB, room = 2 * CHUNKS * 256 * KIB, large = 3 * CHUNKS * 256 * KIB;
static char *chunks[CHUNKS];
static _Atomic uint32_t turns;

/* Takes memory above that of the test, and below it, by turns. */
static void *take_by_turns(void *unused) {
	for (; turns < TURNS; turns++) {
		char **c = &chunks[turns % CHUNKS];
		free(*c);
		*c = opaque(malloc(turns / CHUNKS % 2 ? large : small));
	}
	return unused;
}

/* A shared chunk is found whatever comes and goes in the table of chunks, at places before its own. */
void test_outside_beside(void) {
	pthread_t thread;
	CHECK(mallopt(M_MMAP_THRESHOLD, 128 * KIB) == 1);
	char *above = opaque(malloc(room));
	for (int i = 0; i < CHUNKS; i++)
		chunks[i] = opaque(malloc(small));
	char *p = opaque(malloc(small));
	CHECK(above > p && heap.promote(p) == 0);
	free(above);
	CHECK(pthread_create(&thread, NULL, take_by_turns, NULL) == 0);
	while (turns < TURNS) {
		struct ndheap_block b;
		CHECK(heap.pin(p, &b) == 0 && b.flags == NDHEAP_SHAREABLE, "after %u turns: not found", turns);
		CHECK(heap.unpin(p, b.segment) == 0, "after %u turns: not found again", turns);
	}
	pthread_join(thread, NULL);
	for (int i = 0; i < CHUNKS; i++)
		free(chunks[i]);
	free(p);
}
