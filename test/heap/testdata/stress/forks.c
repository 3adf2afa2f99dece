/* Forks: nobody writes into another's arrays. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stress.h"

static const size_t sizes[] = {THRESHOLD, 300 * KIB, MIB, 7 * MIB};
#define SIZES (sizeof sizes / sizeof *sizes)

/* Lets both processes take turns. */
struct turns {
	int to_child[2], to_parent[2];
};

static void turns_open(struct turns *t) { CHECK(pipe(t->to_child) == 0 && pipe(t->to_parent) == 0); }
static void tell(int fds[2]) { CHECK(write(fds[1], "x", 1) == 1); }
static void await(int fds[2]) {
	char c;
	CHECK(read(fds[0], &c, 1) == 1);
}

void test_fork(void) {
	char *before[SIZES];
	struct turns t;
	turns_open(&t);
	for (size_t i = 0; i < SIZES; i++) {
		before[i] = opaque(malloc(sizes[i]));
		CHECK(shared(before[i]));
		fill(before[i], sizes[i], 1);
	}
	int pid = split();
	CHECK(pid >= 0);
	if (pid == 0) {
		for (size_t i = 0; i < SIZES; i++) {
			CHECK(filled(before[i], sizes[i], 1), "child sees something else");
			fill(before[i] + sizes[i] / 2, sizes[i] / 4, 2); /* the child writes to a part */
		}
		tell(t.to_parent);
		await(t.to_child); /* now the parent has written, too */
		for (size_t i = 0; i < SIZES; i++) {
			CHECK(filled(before[i], sizes[i] / 2, 1), "the parent's later writes reached the child");
			CHECK(filled(before[i] + sizes[i] / 2, sizes[i] / 4, 2));
			free(before[i]);
		}
		_exit(0);
	}
	await(t.to_parent);
	for (size_t i = 0; i < SIZES; i++) {
		CHECK(filled(before[i], sizes[i], 1), "the child wrote into the parent's array");
		fill(before[i], sizes[i], 3);
	}
	tell(t.to_child);
	CHECK(exit_of(pid) == 0);
	for (size_t i = 0; i < SIZES; i++) {
		CHECK(filled(before[i], sizes[i], 3) && !shared(before[i]));
		struct ndheap_block b;
		CHECK(heap.pin(before[i], &b) == 0 && b.flags == NDHEAP_FROZEN && b.fd == -1);
		CHECK(b.available == sizes[i]);
		CHECK(unpin(before[i]) == -1, "frozen blocks are not pinned");
		char *after = opaque(malloc(sizes[i]));
		CHECK(shared(after), "new blocks are shareable again");
		fill(after, sizes[i], 4);
		before[i] = opaque(realloc(before[i], sizes[i] + 100)); /* may stay, may move */
		CHECK(filled(before[i], sizes[i], 3));
		free(before[i]);
		CHECK(filled(after, sizes[i], 4));
		free(after);
	}
	struct ndheap_stats s = stats();
	CHECK(s.frozen_blocks == 0 && s.live_blocks == 0 && s.forks == 1);
	heap.trim(0);
	CHECK(stats().descriptors <= 1, "frozen files stay open");
}

static _Atomic bool stop;

static void *allocate(void *argument) {
	uint32_t seed = (uint32_t)(uintptr_t)argument;
	while (!stop) {
		size_t size = THRESHOLD + seed++ * 7919 % (2 * MIB);
		char *p = opaque(seed % 2 ? malloc(size) : calloc(1, size));
		CHECK(seed % 2 || zero(p, size));
		fill(p, size, seed);
		CHECK(filled(p, size, seed), "a thread's block changed around a fork");
		struct ndheap_block b;
		bool pinned = seed % 3 == 0 && heap.pin(p, &b) == 0 && (b.flags & NDHEAP_SHAREABLE);
		p = opaque(realloc(p, size + 100 * KIB));
		CHECK(filled(p, size, seed));
		char *q = p;
		free(p);
		if (pinned && unpin(opaque(q)) != 0)
			pinned = false; /* it moved: the pin is on the old place, which the trimmer never gets */
	}
	return NULL;
}

/* Forks while other threads are everywhere in the heap: the child must be able to go on. */
void test_fork_threads(void) {
	pthread_t threads[4];
	char *kept = opaque(malloc(3 * MIB));
	fill(kept, 3 * MIB, 42);
	for (uintptr_t i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, allocate, (void *)(i * 1000)) == 0);
	for (int i = 0; i < 60; i++) {
		int pid = split();
		CHECK(pid >= 0);
		if (pid == 0) {
			CHECK(filled(kept, 3 * MIB, 42));
			memset(kept, 0, 3 * MIB);
			free(kept);
			for (size_t size = 1000; size < 4 * MIB; size *= 2) {
				char *p = opaque(calloc(1, size));
				CHECK(zero(p, size) && shared(p) == (size >= THRESHOLD));
				memset(p, 1, size);
				free(p);
			}
			heap.trim(0);
			struct ndheap_stats s = stats();
			CHECK(s.state == NDHEAP_ON && s.descriptors <= 1 && s.pinned_blocks == 0);
			_exit(0);
		}
		CHECK(exit_of(pid) == 0);
		CHECK(filled(kept, 3 * MIB, 42), "the child wrote into the parent's block");
	}
	stop = true;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	free(kept);
	CHECK(stats().live_blocks == 0 && stats().forks == 60);
}

/* A lease that stands at the fork stays valid: the other side sees the memory as it was then. */
void test_fork_pinned(void) {
	for (size_t i = 0; i < SIZES; i++) {
		size_t size = sizes[i];
		char *p = opaque(malloc(size)), *freed = opaque(malloc(size));
		struct ndheap_block b, bfreed;
		CHECK(heap.pin(p, &b) == 0 && heap.pin(freed, &bfreed) == 0);
		fill(p, size, 1);
		fill(freed, size, 2);
		free(freed);
		fork_once();
		/* The file may be mapped only now: its descriptor is kept open for the pin. */
		CHECK(fcntl(b.fd, F_GETFD) >= 0);
		char *seen = map_outside(&b, PROT_READ), *seen_freed = map_outside(&bfreed, PROT_READ);
		CHECK(filled(seen, size, 1) && filled(seen_freed, size, 2));
		fill(p, size, 3);
		CHECK(filled(seen, size, 1) && filled(p, size, 3), "a frozen block's later writes are private");
		free(p);
		for (int k = 0; k < 10; k++)
			free(memset(opaque(malloc(size)), 0xee, size));
		heap.trim(0);
		CHECK(filled(seen, size, 1) && filled(seen_freed, size, 2), "a pinned block was reused");
		CHECK(unpin(opaque(p)) == 0 && unpin(opaque(freed)) == 0);
		CHECK(unpin(opaque(p)) == -1 && stats().pinned_blocks == 0 && stats().live_blocks == 0);
		munmap(seen - b.offset, b.segment_size);
		munmap(seen_freed - bfreed.offset, bfreed.segment_size);
	}
	heap.trim(0);
	CHECK(stats().descriptors <= 2, "%u descriptors stay open", stats().descriptors);
}

/* Where another process may write, its writes must not reach the program after a fork. */
void test_fork_granted(void) {
	for (size_t i = 0; i < SIZES; i++) {
		size_t size = sizes[i];
		char *p = opaque(malloc(size));
		struct ndheap_block b;
		CHECK(heap.grant(p) == -1, "it is not pinned");
		CHECK(heap.pin(p, &b) == 0 && heap.grant(p + 100) == 0);
		fill(p, size, 1);
		char *outside = map_outside(&b, PROT_READ | PROT_WRITE);
		memset(outside, 7, 100);
		CHECK(p[0] == 7 && p[99] == 7);
		fill(p, size, 1);
		struct turns t;
		turns_open(&t);
		int pid = split();
		CHECK(pid >= 0);
		if (pid == 0) {
			await(t.to_child);
			CHECK(filled(p, size, 1), "a write from outside reached the child");
			_exit(0);
		}
		memset(outside, 7, size);
		tell(t.to_child);
		CHECK(exit_of(pid) == 0);
		CHECK(filled(p, size, 1), "a write from outside reached the program after a fork");
		CHECK(unpin(p) == 0);
		free(p);
		munmap(outside - b.offset, b.segment_size);
	}
}

/* What the program may do at an address. */
static int rights_at(char *at) {
	int fds[2], zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	CHECK(zero >= 0 && pipe(fds) == 0);
	char before = 0;
	int rights = write(fds[1], at, 1) == 1 && read(fds[0], &before, 1) == 1 ? PROT_READ : PROT_NONE;
	if (rights && read(zero, at, 1) == 1) {
		rights |= PROT_WRITE;
		*at = before;
	}
	close(fds[0]), close(fds[1]), close(zero);
	return rights;
}

static bool keeps_rights(char *at) {
	return rights_at(at - 1) == (PROT_READ | PROT_WRITE) && rights_at(at) == PROT_READ && rights_at(at + 4096) == PROT_NONE &&
	       rights_at(at + 8192) == (PROT_READ | PROT_WRITE);
}

/* Rights that the program has taken away stay away in both processes, and also there no write from outside arrives. */
void test_fork_guarded(void) {
	for (size_t i = 0; i < 4 * SIZES; i++) {
		size_t size = sizes[i / 4];
		bool granted = i % 2, promoted = i / 2 % 2;
		char *p = opaque(malloc(size)), *beside = opaque(malloc(size)), *at = p + 8192 - ((uintptr_t)p & 4095), *outside = NULL;
		struct ndheap_block b;
		if (promoted)
			CHECK(exit_of(split() ?: (_exit(0), 0)) == 0 && heap.promote(p) == 0 && heap.promote(beside) == 0);
		CHECK(heap.pin(p, &b) == 0 && (!granted || heap.grant(p) == 0));
		outside = map_outside(&b, granted ? PROT_READ | PROT_WRITE : PROT_READ);
		fill(p, size, 1);
		fill(beside, size, 2);
		CHECK(mprotect(at, 4096, PROT_READ) == 0 && mprotect(at + 4096, 4096, PROT_NONE) == 0 && keeps_rights(at));
		int pid = split();
		CHECK(pid >= 0);
		if (pid == 0)
			_exit(keeps_rights(at) ? 0 : 1);
		CHECK(exit_of(pid) == 0, "the child may do something else");
		CHECK(!shared(p) && !shared(beside) && keeps_rights(at));
		if (granted)
			memset(outside, 7, size);
		CHECK(mprotect(at, 8192, PROT_READ | PROT_WRITE) == 0 && filled(p, size, 1) && filled(beside, size, 2));
		CHECK(unpin(p) == 0);
		free(p);
		free(beside);
		munmap(outside - b.offset, b.segment_size);
	}
	CHECK(stats().frozen_blocks == 0);
}

/* The child keeps neither descriptors nor shared pages, and its own children work, too. */
void test_fork_child(void) {
	int before = open_files();
	char *live[20], *warm[20];
	for (int i = 0; i < 20; i++)
		live[i] = memset(opaque(malloc(4 * MIB)), 1, 4 * MIB);
	for (int round = 0; round < 2; round++) { /* only what is asked for again is kept */
		for (int i = 0; i < 20; i++)
			warm[i] = memset(opaque(malloc(4 * MIB)), 1, 4 * MIB);
		for (int i = 0; i < 20; i++)
			free(warm[i]);
	}
	CHECK(open_files() >= before + 40);
	int pid = split();
	if (pid == 0) {
		CHECK(open_files() == before, "%d descriptors are left", open_files() - before);
		CHECK(stats().warm_blocks == 0 && !shared(live[3]));
		char *p = opaque(malloc(4 * MIB));
		CHECK(shared(p));
		fill(p, 4 * MIB, 1);
		int grandchild = split();
		if (grandchild == 0) {
			CHECK(filled(p, 4 * MIB, 1) && live[3][5] == 1 && !shared(p));
			memset(live[3], 2, 4 * MIB);
			free(live[3]);
			free(p);
			_exit(0);
		}
		CHECK(exit_of(grandchild) == 0 && live[3][5] == 1 && filled(p, 4 * MIB, 1));
		free(p);
		for (int i = 0; i < 20; i++)
			free(live[i]);
		heap.trim(0);
		CHECK(stats().live_blocks == 0 && open_files() == before, "%d descriptors are left", open_files() - before);
		_exit(0);
	}
	CHECK(exit_of(pid) == 0);
	struct ndheap_stats s = stats();
	CHECK(s.frozen_blocks == 20 && s.warm_blocks == 20, "the parent keeps its warm blocks");
	CHECK(open_files() <= before + 20, "frozen files are closed");
	uint64_t reused = s.reused;
	for (int i = 0; i < 20; i++)
		warm[i] = opaque(malloc(4 * MIB));
	CHECK(stats().reused == reused + 20 && shared(warm[0]));
	for (int i = 0; i < 20; i++) {
		free(warm[i]);
		free(live[i]);
	}
}

/* A program that forks for ever must not use up addresses, records or descriptors. */
void test_fork_often(void) {
	char *longest = opaque(malloc(100 * KIB)), *last = NULL;
	fill(longest, 100 * KIB, 5);
	int files = 0;
	for (int i = 0; i < 6000; i++) {
		char *p = opaque(malloc(100 * KIB)), *q = opaque(malloc(2 * MIB));
		CHECK(p && shared(p) && q && shared(q), "round %d: the heap is used up", i);
		*p = *q = 1;
		if (i % 10 == 0) {
			int pid = split();
			if (pid == 0)
				_exit(*p == 1 && *q == 1 ? 0 : 1);
			CHECK(exit_of(pid) == 0);
		}
		free(q);
		free(last); /* each small block lives through a fork */
		last = p;
		if (i == 99)
			files = open_files();
	}
	CHECK(open_files() <= files + 1, "descriptors leak: %d, %d", files, open_files());
	CHECK(filled(longest, 100 * KIB, 5));
	CHECK(stats().live_blocks == 2);
}

/* Counts in each word of a block, beside forks. */
struct counter {
	uint32_t *words;
	size_t count;
	uint32_t passes;
};

static void *count_on(void *argument) {
	struct counter *c = argument;
	for (; !stop; c->passes++) {
		for (size_t i = 0; i < c->count; i++)
			c->words[i]++;
	}
	return NULL;
}

/*
 * Descriptors that were closed by bare system calls: such memory cannot be shared any more, but nothing is
 * lost, neither what another thread of the parent writes meanwhile nor what the child does.
 */
void test_fork_closed(void) {
	struct counter c = {.count = 2 * MIB};
	c.words = opaque(calloc(c.count, sizeof *c.words));
	char *small = opaque(malloc(100 * KIB));
	fill(small, 100 * KIB, 2);
	CHECK(shared(c.words) && shared(small));
	CHECK(syscall(SYS_close_range, 3, ~0u, 0) == 0);
	CHECK(!shared(c.words) && !shared(small));
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, count_on, &c) == 0);
	for (int i = 0; i < 20; i++) {
		int pid = split();
		if (pid == 0) {
			CHECK(filled(small, 100 * KIB, 2));
			memset(c.words, 9, c.count * sizeof *c.words);
			memset(small, 9, 100 * KIB);
			free(c.words);
			free(small);
			_exit(0);
		}
		CHECK(exit_of(pid) == 0);
	}
	stop = true;
	pthread_join(thread, NULL);
	for (size_t i = 0; i < c.count; i++)
		CHECK(c.words[i] == c.passes, "word %zu was written %u times, and holds %u", i, c.passes, c.words[i]);
	CHECK(filled(small, 100 * KIB, 2), "the child wrote into the parent's block");
	char *after = opaque(malloc(3 * MIB));
	CHECK(shared(after), "what is made later can be shared");
	free(after);
	free(c.words);
	free(small);
	CHECK(stats().live_blocks == 0);
}

/* Bytes of the file behind a descriptor that have memory. */
/* What was free at a fork is of use to nobody: its memory goes back, though its neighbours stay. */
void test_fork_warm(void) {
	enum { COUNT = 16, KEPT = 8 };
	char *p[COUNT];
	for (int i = 0; i < COUNT; i++)
		p[i] = memset(opaque(malloc(500 * KIB)), 1, 500 * KIB);
	struct ndheap_block b;
	CHECK(heap.pin(p[KEPT], &b) == 0);
	fill(p[KEPT], 500 * KIB, 1);
	for (int i = 0; i < COUNT; i++) {
		if (i != KEPT)
			free(p[i]);
	}
	CHECK(file_memory(&b) >= COUNT * 500 * KIB && stats().warm_blocks == COUNT - 1);
	fork_once();
	CHECK(file_memory(&b) <= 600 * KIB, "%zu KiB stay", file_memory(&b) / KIB);
	CHECK(stats().warm_blocks == 0 && stats().warm_bytes == 0 && filled(p[KEPT], 500 * KIB, 1));
	char *seen = map_outside(&b, PROT_READ);
	CHECK(filled(seen, 500 * KIB, 1));
	munmap(seen - b.offset, b.segment_size);
	CHECK(unpin(p[KEPT]) == 0);
	free(p[KEPT]);
	CHECK(stats().descriptors == 0);
}

/* exec takes nothing of the heap along, and what runs then has a heap of its own. */
void test_exec(void) {
	char files[16];
	snprintf(files, sizeof files, "%d", open_files());
	CHECK(setenv("OPEN_FILES", files, 1) == 0);
	for (int i = 0; i < 20; i++) {
		char *p = memset(opaque(malloc(4 * MIB)), 1, 4 * MIB);
		struct ndheap_block b;
		CHECK(heap.pin(p, &b) == 0);
	}
	CHECK(stats().descriptors == 20);
	execl("/proc/self/exe", "stress", "after-exec", NULL);
	CHECK(false, "exec failed");
}

void test_after_exec(void) {
	CHECK(open_files() == atoi(getenv("OPEN_FILES")), "%d descriptors are open, not %s", open_files(), getenv("OPEN_FILES"));
	struct ndheap_stats s = stats();
	CHECK(s.state == NDHEAP_IDLE && s.taken == 0 && s.forks == 0);
	char *p = opaque(malloc(MIB));
	CHECK(shared(p));
	free(p);
}
