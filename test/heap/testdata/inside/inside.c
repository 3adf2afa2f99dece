/*
 * The heap from the inside, without standing in front of malloc: linked with its sources, so that
 * ThreadSanitizer, AddressSanitizer and UndefinedBehaviorSanitizer can watch them at work.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap.h"

#define CHECK(condition)                                                                 \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);  \
			_exit(1);                                                        \
		}                                                                        \
	} while (0)

#define THREADS 6
#define SLOTS 32

/* Pointers pass from thread to thread by exchange, so the heap's own synchronisation is all there is. */
static _Atomic(char *) slots[SLOTS];
static _Atomic uint64_t taken, given;

static uint32_t next_random(uint32_t *state) {
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static char *take(uint32_t *random) {
	size_t size = 64 * KIB + next_random(random) % (next_random(random) % 8 ? 200 * KIB : 3 * MIB);
	bool zero = next_random(random) % 2;
	char *p = block_take(size, (size_t)16 << next_random(random) % 16, zero, 0);
	CHECK(p && range_owns(p) && block_usable(p) == size);
	CHECK(!zero || (p[0] == 0 && p[size / 2] == 0 && p[size - 1] == 0));
	p[0] = p[size / 2] = p[size - 1] = 1;
	atomic_fetch_add(&taken, 1);
	if (next_random(random) % 8 == 0) {
		char *resized = block_resize(p, size + (next_random(random) % 4 ? 100 : size));
		CHECK(!resized || (block_usable(resized) > size && resized[0] == 1 && resized[size - 1] == 1));
		p = resized ? resized : p;
	}
	return p;
}

static void give(char *p) {
	block_give(p);
	atomic_fetch_add(&given, 1);
}

/* Also with pointers that other threads may be freeing: then the answer must be no, or a lasting yes. */
static void pin(char *p) {
	struct ndheap_block b;
	if (!p || ndheap_pin(p + 60000, &b) != 0 || !(b.flags & NDHEAP_SHAREABLE))
		return;
	CHECK(b.fd >= 0 && b.offset < b.segment_size);
	CHECK(ndheap_grant(p + 60000) == 0);
	CHECK(ndheap_unpin(p + 60000, 0) == 0);
}

static void *work(void *argument) {
	uint32_t random = (uint32_t)(uintptr_t)argument + 1;
	for (int i = 0; i < 4000; i++) {
		_Atomic(char *) *slot = &slots[next_random(&random) % SLOTS];
		switch (next_random(&random) % 8) {
		case 0:
			pin(atomic_load(slot));
			break;
		case 1:
			if (i % 16 == 0)
				ndheap_trim(0);
			break;
		case 2: {
			struct ndheap_stats s;
			if (i % 16 == 0)
				CHECK(ndheap_stats(&s) == 0 && s.state == NDHEAP_ON);
			break;
		}
		default: {
			char *fresh = next_random(&random) % 4 ? take(&random) : NULL;
			char *old = atomic_exchange(slot, fresh);
			if (old)
				give(old);
		}
		}
	}
	return NULL;
}

static void check_ranges(void) {
	/* Take, give back in another order: in the end one piece is left, and all of it can be taken. */
	uintptr_t taken_ranges[64];
	lock(&supply_lock);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 64; i++)
			CHECK((taken_ranges[i] = range_take((size_t)(i % 7 + 1) * GRANULE, i % 5 ? GRANULE : HUGE_PAGE)));
		for (int i = 0; i < 64; i++) {
			int k = i * 37 % 64;
			CHECK(taken_ranges[k] % (k % 5 ? GRANULE : HUGE_PAGE) == 0);
			range_give(taken_ranges[k], (size_t)(k % 7 + 1) * GRANULE);
		}
	}
	uintptr_t all = range_take(range.size, GRANULE);
	CHECK(all == range.base && !range_take(GRANULE, GRANULE));
	range_give(all, range.size);
	unlock(&supply_lock);
}

static void check_classes(void) {
	for (size_t size = 1; size < 300 * MIB; size += size / 97 + 1) {
		size_t room = class_size(class_of(size));
		CHECK(room >= size && room % GRANULE == 0 && (room <= 8 * GRANULE || room - size <= size / 4 + GRANULE));
	}
	for (unsigned class = 0; class < CLASSES; class++) {
		CHECK(class_of(class_size(class)) == class);
		CHECK(class + 1 == CLASSES || class_of(class_size(class) + 1) == class + 1);
	}
}

int main(void) {
	check_classes();
	char *first = block_take(MIB, 16, false, 0);
	CHECK(first);
	block_give(first);
	ndheap_trim(0);
	check_ranges();
	pthread_t threads[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < SLOTS; i++) {
		if (slots[i])
			give(slots[i]);
	}
	struct ndheap_stats s;
	ndheap_stats(&s);
	CHECK(s.live_blocks == 0 && s.live_bytes == 0 && s.pinned_blocks == 0);
	CHECK(s.taken == taken + 1 && s.given == given + 1 && taken == given);
	char *kept = memset(block_take(2 * MIB, 16, true, 0), 1, 2 * MIB);
	pid_t pid = fork();
	if (pid == 0) {
		memset(kept, 2, 2 * MIB);
		block_give(kept);
		for (uintptr_t i = 0; i < SLOTS; i++) { /* the child goes on where its parent was */
			size_t size = (i % 5 + 1) * 300 * KIB;
			slots[i] = memset(block_take(size, 16, i % 2, 0), (int)i, size);
			if (i % 3 == 0) {
				block_give(slots[i]);
				slots[i] = NULL;
			}
		}
		for (int i = 0; i < SLOTS; i++) {
			if (slots[i])
				block_give(slots[i]);
		}
		ndheap_trim(0);
		ndheap_stats(&s);
		CHECK(s.state == NDHEAP_ON && s.live_blocks == 0 && s.warm_blocks == 0 && s.descriptors <= 1);
		_exit(0);
	}
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0 && kept[MIB] == 1);
	block_give(kept);
	return 0;
}
