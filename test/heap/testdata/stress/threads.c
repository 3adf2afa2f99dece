/* Many threads at once. */
#include <malloc.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stress.h"

#define THREADS 8
#define SLOTS 64

/* Blocks that any thread may free: half of them are not freed by the thread that allocated them. */
static struct slot {
	pthread_mutex_t lock;
	char *p;
	size_t size;
	uint32_t seed;
} slots[SLOTS];

static void replace(struct slot *s, uint32_t *random) {
	uint32_t seed = next_random(random);
	size_t size = next_random(random) % (seed % 16 == 0 ? 4 * MIB : 200 * KIB) + 1;
	if (s->p && seed % 4 == 1) {
		size_t kept = s->size < size ? s->size : size;
		s->p = opaque(realloc(s->p, size));
		CHECK(s->p && filled(s->p, kept, s->seed));
	} else {
		CHECK(!s->p || filled(s->p, s->size, s->seed), "a block was changed by somebody else");
		free(s->p);
		if (seed % 3 == 0) {
			s->p = opaque(calloc(1, size));
			CHECK(zero(s->p, size));
		} else if (seed % 3 == 1) {
			CHECK(posix_memalign((void **)&s->p, 64u << seed % 12, size) == 0);
		} else {
			s->p = opaque(malloc(size));
		}
	}
	CHECK(s->p);
	s->size = size;
	s->seed = seed;
	fill(s->p, size, seed);
}

static void look(struct slot *s, uint32_t *random) {
	struct ndheap_block b;
	if (!s->p || heap.pin(s->p + next_random(random) % s->size, &b) != 0 || b.flags == NDHEAP_OUTSIDE)
		return;
	CHECK(b.flags == NDHEAP_SHAREABLE && b.available <= s->size);
	char *p = s->p;
	if (next_random(random) % 2) {
		free(s->p); /* pinned: freed later, by the last unpin */
		s->p = NULL;
	}
	CHECK(unpin(opaque(p)) == 0);
}

static void *work(void *argument) {
	uint32_t random = (uint32_t)(uintptr_t)argument * 7919 + 1;
	for (int i = 0; i < 3000; i++) {
		struct slot *s = &slots[next_random(&random) % SLOTS];
		pthread_mutex_lock(&s->lock);
		if (next_random(&random) % 4)
			replace(s, &random);
		else
			look(s, &random);
		pthread_mutex_unlock(&s->lock);
		if (i % 500 == 0)
			heap.trim(0);
		if (i % 100 == 0)
			stats();
	}
	return NULL;
}

void test_threads(void) {
	pthread_t threads[THREADS];
	for (int i = 0; i < SLOTS; i++)
		pthread_mutex_init(&slots[i].lock, NULL);
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < SLOTS; i++) {
		CHECK(!slots[i].p || filled(slots[i].p, slots[i].size, slots[i].seed));
		free(slots[i].p);
	}
	struct ndheap_stats s = stats();
	CHECK(s.live_blocks == 0 && s.live_bytes == 0 && s.pinned_blocks == 0 && s.taken == s.given);
	heap.trim(0);
	CHECK(stats().warm_bytes == 0 && stats().warm_blocks == 0);
}

#define ROUNDS 200000

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *hammer(void *unused) {
	for (int i = 0; i < ROUNDS; i++)
		free(opaque(malloc(THRESHOLD)));
	return unused;
}

/* Two threads that do nothing else get warm blocks nearly always. Says what a pair of calls costs. */
void test_contention(void) {
	double from = now();
	hammer(NULL);
	double alone = (now() - from) / ROUNDS;
	pthread_t other;
	from = now();
	CHECK(pthread_create(&other, NULL, hammer, NULL) == 0);
	hammer(NULL);
	pthread_join(other, NULL);
	double beside = (now() - from) / ROUNDS;
	printf("malloc + free of a warm block: %.0f ns alone, %.0f ns beside another thread\n", alone, beside);
	CHECK(stats().taken == 3 * ROUNDS && stats().reused >= 3 * ROUNDS - 2);
}
