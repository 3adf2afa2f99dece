/* What a forked child has of the heap: the same as its parent, each its own. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "stress.h"

static const size_t sizes[] = {THRESHOLD, 300 * KIB, MIB, 7 * MIB};
#define SIZES (sizeof sizes / sizeof *sizes)

/* Promotes a block and holds that whoever maps it then sees what is written. */
static void promoted(char *p, size_t size, uint32_t now, uint32_t next) {
	struct ndheap_block b;
	CHECK(!shared(p) && filled(p, size, now));
	CHECK(heap.promote(p) == 0 && heap.pin(p, &b) == 0 && b.flags == NDHEAP_SHAREABLE);
	char *seen = map_outside(&b, PROT_READ);
	CHECK(filled(seen, size, now));
	fill(p, size, next);
	CHECK(filled(seen, size, next) && unpin(p) == 0);
	munmap(seen - b.offset, b.segment_size);
}

/* Each process down a line of forks promotes what it has inherited, and none sees what another has written. */
void test_promote_child(void) {
	enum { GENERATIONS = 6 };
	char *p[SIZES];
	for (size_t i = 0; i < SIZES; i++)
		fill(p[i] = opaque(malloc(sizes[i])), sizes[i], 1);
	for (uint32_t generation = 1; generation <= GENERATIONS; generation++) {
		int pid = split();
		CHECK(pid >= 0);
		if (pid == 0) {
			for (size_t i = 0; i < SIZES; i++) {
				promoted(p[i], sizes[i], generation, generation + 1);
				char *fresh = opaque(malloc(sizes[i]));
				CHECK(shared(fresh));
				free(fresh);
			}
			continue;
		}
		for (size_t i = 0; i < SIZES; i++) /* beside the child */
			promoted(p[i], sizes[i], generation, 100 + generation);
		CHECK(exit_of(pid) == 0);
		for (size_t i = 0; i < SIZES; i++)
			CHECK(filled(p[i], sizes[i], 100 + generation), "the child wrote into the parent's block");
		break;
	}
	for (size_t i = 0; i < SIZES; i++)
		free(p[i]);
	heap.trim(0);
	CHECK(stats().live_blocks == 0 && stats().pinned_blocks == 0 && stats().descriptors <= 1, "%u descriptors", stats().descriptors);
	_exit(0);
}

/*
 * A pin goes along to the file that its block lies in since a promotion, past those in between that nobody needs any more, and other pins
 * stay where they are. What is private, or was freed, has no such file, and what nobody has pinned there has no pin.
 */
void test_promote_repin(void) {
	enum { FORKS = 5 };
	for (size_t i = 0; i < SIZES; i++) {
		struct ndheap_block first, stays, b;
		char *p = opaque(malloc(sizes[i]));
		fill(p, sizes[i], 1);
		heap.promote(p); /* if it is the libc's */
		CHECK(heap.pin(p + 10, &first) == 0 && heap.pin(p, &stays) == 0 && heap.repin(p, first.segment, &b) == 0 && b.segment == first.segment);
		char *old = map_outside(&stays, PROT_READ);
		uint64_t segment = first.segment;
		uint32_t open = 0;
		for (uint32_t round = 0; round < FORKS; round++) {
			for (uint32_t again = 0; again <= round % 2; again++) { /* with two forks, one after another, the pin lags two files behind */
				fork_once();
				CHECK(heap.repin(p, segment, &b) == 1 && b.flags == NDHEAP_FROZEN);
				CHECK(heap.promote(p) == 0);
			}
			CHECK(heap.repin(p, segment + 1000, &b) == -1, "there is no such pin");
			CHECK(heap.repin(p + 10, segment, &b) == 0 && b.flags == NDHEAP_SHAREABLE && b.segment != segment);
			CHECK(heap.repin(p, segment, &b) == (segment == stays.segment ? 0 : -1), "a pin was there twice");
			if (segment == stays.segment)
				stays.segment = b.segment;
			segment = b.segment;
			char *seen = map_outside(&b, PROT_READ);
			fill(p, sizes[i], 2 + round);
			CHECK(filled(seen, sizes[i], 2 + round) && filled(old, sizes[i], 1));
			munmap(seen - b.offset, b.segment_size);
			CHECK(stats().descriptors <= (round ? open : UINT32_MAX), "from %u to %u descriptors", open, stats().descriptors);
			open = stats().descriptors;
		}
		free(p);
		CHECK(heap.repin(p, segment, &b) == -1, "it was freed");
		CHECK(heap.unpin(p, segment) == 0 && heap.unpin(p, stays.segment) == 0 && heap.unpin(p, segment) == -1);
		munmap(old - first.offset + 10, first.segment_size);
	}
	heap.trim(0);
	CHECK(stats().live_blocks == 0 && stats().pinned_blocks == 0 && stats().descriptors <= 1, "%u descriptors", stats().descriptors);
}

/*
 * A child of a bare system call runs no handlers of forks, and has none of the heap's threads. Its memory is its parent's, but it
 * forks as any other.
 */
void test_fork_bare(void) {
	char *p = opaque(malloc(7 * MIB));
	fill(p, 7 * MIB, 1);
	fork_once();
	CHECK(heap.promote(p) == 0);
	int pid = (int)syscall(SYS_fork);
	if (pid == 0) {
		alarm(60);
		fill(p, 7 * MIB, 2);
		int grandchild = split();
		if (grandchild == 0) {
			bool mine = filled(p, 7 * MIB, 2) && !shared(p);
			memset(p, 3, 7 * MIB);
			_exit(mine ? 0 : 1);
		}
		int status = exit_of(grandchild);
		_exit(status ? status : filled(p, 7 * MIB, 2) ? 0 : 2);
	}
	CHECK(pid > 0 && exit_of(pid) == 0 && filled(p, 7 * MIB, 2) && shared(p));
	free(p);
}

static void *come_and_go(void *argument) {
	uint32_t seed = (uint32_t)(uintptr_t)argument;
	for (int i = 0; i < 100; i++) {
		size_t size = THRESHOLD + next_random(&seed) % (2 * MIB);
		char *p = opaque(malloc(size));
		struct ndheap_block b;
		fill(p, size, seed);
		bool pinned = heap.pin(p, &b) == 0;
		CHECK(filled(p, size, seed), "a block changed around a fork");
		free(p);
		if (pinned && (b.flags & NDHEAP_SHAREABLE))
			heap.unpin(opaque(p), b.segment);
	}
	return NULL;
}

/* Forks down a line while threads are everywhere in the heap: each child must be able to go on as its parent did. */
void test_fork_generations(void) {
	enum { GENERATIONS = 40, THREADS = 3 };
	char *kept[GENERATIONS + 1];
	for (int generation = 0; generation < GENERATIONS; generation++) {
		pthread_t threads[THREADS];
		fill(kept[generation] = opaque(malloc(MIB + 7)), MIB + 7, (uint32_t)generation);
		CHECK(shared(kept[generation]));
		for (int i = 0; i < THREADS; i++)
			CHECK(pthread_create(&threads[i], NULL, come_and_go, (void *)(uintptr_t)(generation * 10 + i + 1)) == 0);
		int pid = split();
		CHECK(pid >= 0);
		if (pid == 0)
			continue;
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		CHECK(exit_of(pid) == 0);
		for (int i = 0; i <= generation; i++) {
			CHECK(filled(kept[i], MIB + 7, (uint32_t)i));
			free(kept[i]);
		}
		heap.trim(0);
		CHECK(stats().pinned_blocks == 0 && stats().descriptors <= 2, "%u descriptors", stats().descriptors);
		_exit(0);
	}
	for (int i = 0; i < GENERATIONS; i++) {
		CHECK(filled(kept[i], MIB + 7, (uint32_t)i));
		free(kept[i]);
	}
}

static char *guarded; /* a page, which a handler of signals makes unwritable and writable again */

static void guard(int signal) {
	(void)signal;
	CHECK(mprotect(guarded, 4096, PROT_READ) == 0 && mprotect(guarded, 4096, PROT_READ | PROT_WRITE) == 0);
}

/* A handler of signals may change rights whatever it interrupts: calls that take the heap's locks, a fork, and a change of rights. */
void test_fork_signals(void) {
	const size_t size = 4 * MIB;
	char *p = opaque(malloc(size)), *page = (char *)(((uintptr_t)p + 4095) & ~4095ul);
	struct itimerval often = {{0, 200}, {0, 200}}, off = {0};
	fill(p, size, 1);
	guarded = page + MIB;
	CHECK(signal(SIGALRM, guard) != SIG_ERR && setitimer(ITIMER_REAL, &often, NULL) == 0);
	for (uint64_t begin = now_ns(); now_ns() - begin < 500000000u;) {
		char *others[16];
		for (int i = 0; i < 16; i++)
			others[i] = opaque(malloc(MIB));
		for (int i = 0; i < 16; i++)
			free(others[i]);
		CHECK(mprotect(page, 4096, PROT_READ) == 0 && mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
		CHECK(madvise(page + 2 * MIB, 4096, MADV_DONTNEED) == 0);
		fork_once();
		page[0] = page[0], guarded[0] = guarded[0];
	}
	CHECK(setitimer(ITIMER_REAL, &off, NULL) == 0 && signal(SIGALRM, SIG_DFL) != SIG_ERR);
	free(p);
}
