/* Memory outside the heap that somebody frees or resizes by the libc's own functions, while it becomes shared, or once it is. */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "stress.h"

enum { size = 4 * MIB };
static void (*libc_free)(void *);
static void *(*libc_realloc)(void *, size_t);

static void find_libc(void) {
	*(void **)&libc_free = dlsym(RTLD_DEFAULT, "__libc_free"); /* the heap does not stand in front of these names */
	*(void **)&libc_realloc = dlsym(RTLD_DEFAULT, "__libc_realloc");
	CHECK(libc_free && libc_realloc && mallopt(M_MMAP_THRESHOLD, 128 * KIB) == 1);
}

/* What the heap has taken for its own is not used again: the next request gets other addresses. */
static void keep_free(char *page) {
	char *p = mmap(page, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(p == page || (p == MAP_FAILED && errno == EEXIST), "%m"); /* by then something of the heap's, perhaps */
}

static char *map_there(char *page, size_t bytes, int how) {
	return mmap(page, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | how, -1, 0);
}

/* What comes to lie where shared memory was is not the heap's, which neither changes it nor shows it. */
void test_outside_gone(void) {
	find_libc();
	for (int pinned = 0; pinned < 2; pinned++) {
		struct ndheap_block b;
		char *p = opaque(malloc(size)), *page = (char *)((uintptr_t)p & ~4095ul);
		fill(p, size, 1);
		CHECK(heap.promote(p) == 0 && (!pinned || (heap.pin(p, &b) == 0 && heap.grant(p) == 0)));
		char *seen = pinned ? map_outside(&b, PROT_READ) : NULL;
		libc_free(p);
		char *other = map_there(page, size, MAP_FIXED_NOREPLACE);
		struct ndheap_block there;
		CHECK(other == page);
		CHECK(heap.pin(other, &there) == 0 && there.flags == NDHEAP_OUTSIDE && heap.pin(p, &there) == 0 && there.flags == NDHEAP_OUTSIDE);
		fill(other, size, 2);
		fork_once();
		CHECK(filled(other, size, 2), "it was replaced by what lay there before");
		CHECK(!shared(p) && heap.promote(p) == -1);
		CHECK(!pinned || (filled(seen, size, 1) && heap.unpin(p, b.segment) == 0));
		CHECK(munmap(other, size) == 0 && map_there(other, size, 0) != MAP_FAILED);
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

/* What is gone does not stand in the way of what comes to lie there, whether it had been shared or was about to be. */
void test_outside_gone_early(void) {
	find_libc();
	char *first = opaque(malloc(size)); /* with which come the keeper and the heap's addresses */
	CHECK(heap.promote(first) == 0);
	for (int shared_first = 0; shared_first < 2; shared_first++) {
		char *p = opaque(malloc(size)), *below, *page, *mapped;
		while ((below = opaque(malloc(size))) + size + 4096 != p) /* other gaps of that size are filled */
			p = below;
		free(below);
		page = (char *)((uintptr_t)p & ~4095ul);
		CHECK(shared_first || madvise(page, size, MADV_DONTFORK) == 0);
		CHECK((heap.promote(p) == 0) == shared_first);
		libc_free(p);
		/* The next one begins elsewhere, and overlaps with where that was. */
		CHECK((mapped = map_there(page + size / 2, size / 2 + 4096, MAP_FIXED_NOREPLACE)) == page + size / 2);
		for (int round = 0; round < 3; round++) {
			char *next = opaque(malloc(size));
			CHECK(next + size > page && next < page, "the test means another place: %p, not below %p", (void *)next, (void *)p);
			fill(next, size, 2);
			CHECK(heap.promote(next) == 0 && shared(next) && filled(next, size, 2), "round %d", round);
			free(next);
		}
		CHECK(munmap(mapped, size / 2 + 4096) == 0);
	}
	free(first);
}

/* Nothing is kept of what was shared and is gone. */
void test_outside_left(void) {
	find_libc();
	struct ndheap_stats before = stats();
	for (uint32_t round = 1; round < 20; round++) {
		struct ndheap_block b;
		char *p = opaque(malloc(round * size)), *page = (char *)((uintptr_t)p & ~4095ul), *there = NULL;
		memset(p, 1, round * size);
		CHECK(heap.promote(p) == 0 && heap.pin(p, &b) == 0);
		heap.trim(0);
		CHECK(shared(p));
		char *seen = map_outside(&b, PROT_READ);
		libc_free(p);
		heap.trim(0);
		CHECK(stats().live_blocks == before.live_blocks + 1 && seen[0] == 1, "somebody has a pin on it");
		CHECK(heap.unpin(p, b.segment) == 0);
		if (round % 2)
			CHECK((there = map_there(page, size, MAP_FIXED_NOREPLACE)) == page);
		heap.trim(0), heap.trim(0);
		CHECK(stats().live_blocks == before.live_blocks && stats().descriptors == before.descriptors, "round %u", round);
		CHECK(munmap(seen - b.offset, b.segment_size) == 0 && (!there || munmap(there, size) == 0));
	}
	char *p = opaque(malloc(size));
	fill(p, size, 1);
	CHECK(heap.promote(p) == 0 && shared(p) && filled(p, size, 1));
	free(p);
}

/* Who makes it smaller and larger by the libc's realloc has memory that can be used, and leaves what was there to who has a pin on it. */
static void resize_larger(size_t smaller, int advice, bool forked, bool then) {
	struct ndheap_block b;
	char *p = opaque(malloc(size)), *page = (char *)((uintptr_t)p & ~4095ul);
	fill(p, size, 1);
	CHECK(heap.promote(p) == 0 && heap.pin(p, &b) == 0);
	char *seen = map_outside(&b, PROT_READ);
	int pid = forked && !then ? split() : -1;
	CHECK(madvise(page, size, advice) == 0);
	p = opaque(libc_realloc(p, smaller));
	pid = forked && then ? split() : pid;
	CHECK((p = opaque(libc_realloc(p, 3 * size))) && filled(p, smaller, 1));
	fill(p, 3 * size, 2);
	CHECK(filled(p, 3 * size, 2) && (pid == 0 || filled(seen, size, 1)));
	libc_free(p);
	if (pid == 0)
		_exit(0);
	CHECK(pid < 0 || exit_of(pid) == 0);
	CHECK(heap.unpin(page + 16, b.segment) == 0 && munmap(seen - b.offset, b.segment_size) == 0);
	keep_free(page);
}

void test_outside_larger(void) {
	static const int advice[] = {MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL};
	static const size_t sizes[] = {size / 2, 40 * KIB, 8 * KIB};
	find_libc();
	for (size_t i = 0; i < 9; i++) {
		resize_larger(sizes[i / 3], advice[i % 3], false, false);
		resize_larger(sizes[i / 3], advice[i % 3], true, false);
		resize_larger(sizes[i / 3], advice[i % 3], true, true);
	}
}

/* What lies beside memory that was made smaller is not the heap's, in the program and its children. */
void test_outside_smaller(void) {
	find_libc();
	for (int freed = 0; freed < 2; freed++) {
		struct ndheap_block b;
		char *p = opaque(malloc(size)), *page = (char *)((uintptr_t)p & ~4095ul);
		fill(p, size, 1);
		CHECK(heap.promote(p) == 0 && heap.pin(p, &b) == 0);
		CHECK((p = opaque(libc_realloc(p, size / 2))) == page + 16);
		char *other = map_there(page + 3 * size / 4, size / 4, MAP_FIXED_NOREPLACE);
		CHECK(other == page + 3 * size / 4);
		fill(other, size / 4, 2);
		if (freed)
			free(p);
		int pid = split();
		CHECK(filled(other, size / 4, 2), "it was replaced by what lay there before");
		if (pid == 0) {
			if (!freed)
				memset(p, 3, size / 2);
			memset(other, 3, size / 4);
			_exit(0);
		}
		CHECK(exit_of(pid) == 0 && filled(other, size / 4, 2) && (freed || filled(p, size / 2, 1)), "a child has written to it");
		CHECK(freed || !shared(p));
		CHECK(heap.unpin(opaque(p), b.segment) == 0 && filled(other, size / 4, 2));
		if (!freed)
			free(p);
		CHECK(filled(other, size / 4, 2) && munmap(other, size / 4) == 0);
	}
}

static _Atomic(char *) target;
static _Atomic bool stop;
static _Atomic uint32_t promotions;

static void *promote_on(void *unused) {
	while (!stop) {
		const char *p = target;
		promotions += p && heap.promote(p) == 0;
	}
	return unused;
}

/* The same while it is being promoted: whenever that comes, the program goes on. */
void test_outside_going(void) {
	enum { ROUNDS = 400 };
	pthread_t thread;
	uint32_t random = 7;
	find_libc();
	CHECK(pthread_create(&thread, NULL, promote_on, NULL) == 0);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		char *p = opaque(malloc(size)), *page = (char *)((uintptr_t)p & ~4095ul);
		memset(p, 1, size);
		target = p;
		usleep(next_random(&random) % 1000);
		target = NULL;
		if (round % 2) {
			p = opaque(libc_realloc(p, 2 * size));
			memset(p + size, 1, size);
			CHECK(memcmp(p, p + 1, 2 * size - 1) == 0, "round %u", round);
		}
		libc_free(p);
		usleep(next_random(&random) % 500);
		keep_free(page);
	}
	stop = true;
	pthread_join(thread, NULL);
	CHECK(promotions > 0);
}
