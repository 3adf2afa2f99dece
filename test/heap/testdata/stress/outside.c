/* Memory that the libc has mapped for one request, and that becomes shared in place. No caller's requests go to the heap. */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stress.h"

static const size_t sizes[] = {300 * KIB, MIB + 40, 7 * MIB};
#define SIZES (sizeof sizes / sizeof *sizes)

/* Whether p lies in a block. */
static bool known(const void *p) {
	struct ndheap_block b;
	return heap.pin(p, &b) == 0 && b.flags != NDHEAP_OUTSIDE;
}

/* Memory whose requests glibc always maps separately. */
static char *mapped(size_t size) {
	CHECK(mallopt(M_MMAP_THRESHOLD, 128 * KIB) == 1);
	char *p = opaque(malloc(size));
	CHECK(p && heap.outside(p, size, 0) > size && !known(p));
	return p;
}

static void nothing_left(void) {
	heap.trim(0);
	struct ndheap_stats s = stats();
	CHECK(s.live_blocks == 0 && s.pinned_blocks == 0 && s.descriptors == 0, "%lu blocks, %lu pinned, %u descriptors", s.live_blocks,
	      s.pinned_blocks, s.descriptors);
}

void test_outside(void) {
	for (size_t i = 0; i < SIZES; i++) {
		size_t size = sizes[i];
		char *p = mapped(size), *beside = mapped(size);
		fill(p, size, 1);
		fill(beside, size, 2);
		CHECK(heap.outside(p, size, 1) == 0, "one copy is cheaper");
		heap.copied(p + size / 2);
		CHECK(heap.outside(p, size, 1) > size);
		CHECK(heap.outside(p + 8192, size - 8192, 0) == 0 && heap.outside(p, size - 8192, 0) == 0, "the array does not fill it");
		CHECK(heap.promote(p + size / 2) == 0);

		struct ndheap_block first, second;
		CHECK(heap.pin(p, &first) == 0 && first.flags == NDHEAP_SHAREABLE && first.available >= size && !known(beside));
		char *seen = map_outside(&first, PROT_READ | PROT_WRITE);
		CHECK(filled(seen, size, 1));
		fill(p, size, 3);
		CHECK(filled(seen, size, 3), "a later write is not seen");
		fill(seen, size, 4);
		CHECK(filled(p, size, 4) && filled(beside, size, 2), "what is written outside is not seen");
		CHECK(zero(seen + size, first.available - size) && malloc_usable_size(p) == first.available);

		/* As after any fork, each side has its own. */
		fork_once();
		fill(p, size, 5);
		CHECK(!shared(p) && filled(seen, size, 4) && heap.promote(p) == 0);
		CHECK(heap.pin(p, &second) == 0 && second.segment != first.segment);
		char *again = map_outside(&second, PROT_READ);
		CHECK(filled(again, size, 5) && heap.unpin(p, first.segment) == 0);

		/* What is freed stays as it is while it is pinned. */
		free(p);
		char *other = opaque(malloc(size));
		memset(other, 9, size);
		CHECK(other != p && filled(again, size, 5));
		CHECK(heap.unpin(opaque(p), second.segment) == 0 && heap.unpin(opaque(p), second.segment) == -1 && !known(p));
		free(other);
		free(beside);
		munmap(seen - first.offset, first.segment_size);
		munmap(again - second.offset, second.segment_size);
		nothing_left();
	}
}

static size_t mapped_files(void) {
	size_t n = 0;
	char line[1024];
	FILE *maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof line, maps))
		n += strstr(line, "/memfd:ndbridge-heap") != NULL;
	fclose(maps);
	return n;
}

/* Resized, it is the program's own as ever, and nobody outside sees what becomes of it. */
void test_outside_resize(void) {
	static const size_t others[] = {9 * MIB, 3 * MIB, 200 * KIB, 100, 0};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		char *p = mapped(3 * MIB);
		struct ndheap_block b;
		fill(p, 3 * MIB, 1);
		CHECK(heap.promote(p) == 0 && heap.pin(p, &b) == 0);
		char *seen = map_outside(&b, PROT_READ), *q = opaque(realloc(p, others[i]));
		size_t kept = others[i] < 3 * MIB ? others[i] : 3 * MIB;
		CHECK((q != NULL) == (others[i] != 0));
		if (q) {
			CHECK(filled(q, kept, 1) && !shared(q));
			memset(q, 7, others[i]);
		}
		CHECK(filled(seen, 3 * MIB, 1) && heap.unpin(opaque(p), b.segment) == 0);
		munmap(seen - b.offset, b.segment_size);
		free(q);
		nothing_left();
	}
	/* What was not promoted grows in place, and is known where it lies then. */
	char *p = mapped(MIB);
	fill(p, MIB, 1);
	for (size_t size = 2 * MIB; size <= 64 * MIB; size *= 2)
		CHECK((p = opaque(realloc(p, size))) && filled(p, MIB, 1) && heap.outside(p, size, 0));
	CHECK(realloc(p, (size_t)1 << 60) == NULL && filled(p, MIB, 1) && heap.outside(p, 64 * MIB, 0), "it did not fail");
	CHECK(heap.promote(p) == 0 && shared(p) && realloc(p, (size_t)1 << 60) == NULL && filled(p, MIB, 1) && shared(p));
	free(p);
	CHECK(mapped_files() == 0);
	nothing_left();
}

/* Whether a chunk is refused after something was done to its pages, which the libc's free must get over. */
static void refused(const char *what, char *p, size_t size, int done) {
	CHECK(done == 0, "%s", what);
	CHECK(heap.promote(p) == -1 && !known(p), "%s", what);
	CHECK(munlock(p, size) == 0 && mprotect((char *)((uintptr_t)p & ~4095ul), size, PROT_READ | PROT_WRITE) == 0);
	free(p);
}

void test_outside_refused(void) {
	const size_t size = 2 * MIB;
	char *p;
	struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
	setrlimit(RLIMIT_MEMLOCK, &most);
#define PAGE ((char *)(((uintptr_t)p + MIB) & ~4095ul))
	p = mapped(size), refused("locked", p, size, mlock(p, size));
	p = mapped(size), refused("a locked page", p, size, mlock(PAGE, 4096));
	p = mapped(size), refused("protected", p, size, mprotect(PAGE, 4096, PROT_READ));
	p = mapped(size), refused("not for children", p, size, madvise(PAGE, 4096, MADV_DONTFORK));
	p = mapped(size), refused("wiped in children", p, size, madvise(PAGE, 4096, MADV_WIPEONFORK));
	p = mapped(size), refused("not in core dumps", p, size, madvise(PAGE, 4096, MADV_DONTDUMP));
	p = mapped(size), refused("huge pages", p, size, madvise(PAGE, 4096, MADV_HUGEPAGE));
	p = mapped(size);
	enum { BIND = 2 };
	if (syscall(SYS_mbind, PAGE, 4096, BIND, &(unsigned long){1}, 64, 0) == 0) /* else this kernel knows of no nodes */
		refused("bound to a node", p, size, 0);
	int fd = open("/proc/self/exe", O_RDONLY);
	p = mapped(size), refused("a file", p, size, mmap(PAGE, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) != PAGE);
	p = mapped(size), refused("shared already", p, size, mmap(PAGE, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != PAGE);
	p = mapped(size), refused("a hole", p, size, munmap(PAGE, 4096) || mmap(PAGE, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != PAGE);
	close(fd);

	/* The pages of these are others', too. */
	char on_stack[200 * KIB], *small = opaque(malloc(100 * KIB));
	static char fixed[200 * KIB];
	memset(on_stack, 1, sizeof on_stack);
	char *own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const char *all[] = {on_stack, small, fixed, own, (char *)&fd, NULL};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		CHECK(heap.promote(opaque((char *)all[i])) == -1 && heap.outside(all[i], 100 * KIB, 0) == 0, "%zu", i);
	free(small);

	/* A failed promotion is not tried at each look. */
	p = mapped(size);
	CHECK(mlock(p, 1) == 0 && heap.promote(p) == -1);
	for (int copies = 1; copies < 40; copies++) {
		heap.copied(p);
		bool due = heap.outside(p, size, 1) != 0, power = (copies & (copies - 1)) == 0;
		CHECK(due == power && (!due || heap.promote(p) == -1), "after %d copies", copies);
		if (due)
			heap.refuse(p);
	}
	CHECK(munlock(p, 1) == 0 && heap.promote(p) == 0 && shared(p));
	free(p);
	nothing_left();
}

/* What the program does to its own mappings has the effect that it would have on private memory. */
void test_outside_mappings(void) {
	const size_t size = 4 * MIB;
	for (int forked = 0; forked < 2; forked++) {
		char *p = mapped(size), *page = (char *)(((uintptr_t)p + MIB) & ~4095ul);
		struct ndheap_block b;
		fill(p, size, 1);
		CHECK(heap.promote(p) == 0 && heap.pin(p, &b) == 0);
		char *seen = map_outside(&b, PROT_READ);
		if (forked)
			fork_once();
		CHECK(madvise(page, MIB, MADV_DONTNEED) == 0 && zero(page, MIB) && zero(seen + (page - p), MIB) == !forked);
		fill(page, MIB, 5);
		CHECK(madvise(page, MIB, MADV_FREE) == 0);
		fill(page, MIB, 6);
		CHECK(filled(page, MIB, 6));

		/* Nothing that comes to lie there is seen outside. */
		CHECK(mmap(page, 64 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page && zero(page, 64 * KIB));
		memset(page, 9, 64 * KIB);
		memset(p, 9, 100);
		CHECK(!shared(p) && heap.promote(p) == -1 && seen[0] != 9 && seen[page - p] != 9);
		CHECK(munmap(page + MIB, 4096) == 0);
		free(p);
		CHECK(heap.unpin(opaque(p), b.segment) == 0);
		munmap(seen - b.offset, b.segment_size);
		nothing_left();
	}
	CHECK(mapped_files() == 0);
}

/* A child has what its parent had, whatever was pinned or freed, and frees it as its own. */
void test_outside_child(void) {
	enum { CHUNKS = 4 };
	char *p[CHUNKS]; /* as it came; shared; shared and pinned; shared, pinned and freed */
	struct ndheap_block b[CHUNKS];
	for (int i = 0; i < CHUNKS; i++) {
		p[i] = mapped(2 * MIB);
		fill(p[i], 2 * MIB, (uint32_t)i);
		CHECK(i < 1 || heap.promote(p[i]) == 0);
		CHECK(i < 2 || heap.pin(p[i], &b[i]) == 0);
	}
	char *kept = map_outside(&b[3], PROT_READ), *seen = map_outside(&b[2], PROT_READ);
	free(p[3]);
	int pid = split();
	if (pid == 0) {
		for (int i = 0; i < 3; i++) {
			CHECK(filled(p[i], 2 * MIB, (uint32_t)i) && !shared(p[i]));
			memset(p[i], 7, 2 * MIB);
			CHECK(i != 1 || (p[i] = opaque(realloc(p[i], 5 * MIB))));
			CHECK(heap.promote(p[i]) == 0 && shared(p[i]), "it has a heap of its own");
			memset(p[i], 8, 2 * MIB);
			free(p[i]);
		}
		CHECK(mapped_files() == 2, "the views, and no more: %zu", mapped_files());
		char *fresh = opaque(malloc(3 * MIB));
		memset(fresh, 8, 3 * MIB);
		_exit(0);
	}
	CHECK(exit_of(pid) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(filled(p[i], 2 * MIB, (uint32_t)i));
	CHECK(filled(kept, 2 * MIB, 3) && filled(seen, 2 * MIB, 2));
	CHECK(heap.unpin(opaque(p[3]), b[3].segment) == 0 && heap.unpin(p[2], b[2].segment) == 0);
	munmap(kept - b[3].offset, b[3].segment_size);
	munmap(seen - b[2].offset, b[2].segment_size);
	for (int i = 0; i < 3; i++)
		free(p[i]);
	nothing_left();
}

/* More chunks than are known at a time: those beyond stay the libc's alone. */
void test_outside_many(void) {
	enum { MANY = 1500 };
	char *p[MANY];
	size_t promotable = 0;
	CHECK(mallopt(M_MMAP_THRESHOLD, 128 * KIB) == 1);
	for (int round = 0; round < 2; round++) {
		promotable = 0;
		for (int i = 0; i < MANY; i++) {
			p[i] = opaque(malloc(200 * KIB));
			p[i][0] = (char)i;
			promotable += heap.outside(p[i], 200 * KIB, 0) != 0;
		}
		CHECK(promotable > MANY / 2 && promotable < MANY, "%zu", promotable);
		for (int i = 0; i < MANY; i += 3)
			free(p[i]);
		for (int i = 0; i < MANY; i++)
			if (i % 3) {
				CHECK(p[i][0] == (char)i);
				free(p[i]);
			}
	}
	nothing_left();
}

static _Atomic bool stop;
static struct slot {
	pthread_mutex_t lock;
	char *p;
	size_t size;
	uint32_t seed;
} slots[8];

/* Takes, writes, resizes and frees, and notices what is not as it left it. */
static void *work_on(void *argument) {
	uint32_t random = (uint32_t)(uintptr_t)argument;
	while (!stop) {
		struct slot *s = &slots[next_random(&random) % (sizeof slots / sizeof *slots)];
		pthread_mutex_lock(&s->lock);
		CHECK(!s->p || filled(s->p, s->size, s->seed), "%zu bytes at %p", s->size, (void *)s->p);
		size_t size = (next_random(&random) % 40 + 3) * 50 * KIB;
		if (!s->p || next_random(&random) % 3 == 0) {
			free(s->p);
			s->p = opaque(malloc(size)), s->size = size;
		} else if (next_random(&random) % 3 == 0) {
			s->p = opaque(realloc(s->p, size)), s->size = size;
		}
		fill(s->p, s->size, s->seed = random);
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

/* Promotion beside forks and threads that use, resize and free what is being promoted. */
void test_outside_hammer(void) {
	enum { THREADS = 3, ROUNDS = 1500 };
	pthread_t threads[THREADS];
	uint32_t random = 77;
	int promoted = 0;
	CHECK(mallopt(M_MMAP_THRESHOLD, 128 * KIB) == 1);
	hear();
	for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
		pthread_mutex_init(&slots[i].lock, NULL);
	for (size_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, work_on, (void *)(i + 1)) == 0);
	for (int round = 0; round < ROUNDS; round++) {
		struct slot *s = &slots[next_random(&random) % (sizeof slots / sizeof *slots)];
		struct ndheap_block b;
		const char *p = __atomic_load_n(&s->p, __ATOMIC_SEQ_CST); /* it may be gone by the next line */
		promoted += heap.promote_known(p) == 0;
		if (heap.pin(p, &b) == 0 && b.flags & NDHEAP_SHAREABLE) {
			char *seen = map_outside(&b, PROT_READ);
			munmap(seen - b.offset, b.segment_size);
			CHECK(heap.unpin(p, b.segment) == 0);
		}
		if (round % 20 == 0)
			fork_once();
	}
	stop = true;
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
		CHECK(!slots[i].p || filled(slots[i].p, slots[i].size, slots[i].seed));
		free(slots[i].p);
	}
	CHECK(promoted > 20, "only %d promotions", promoted);
	CHECK(mapped_files() == 0, "%zu", mapped_files());
	nothing_left();
}

static struct {
	pthread_mutex_t lock;
	char *at;
	uint64_t outside, shared;
} look = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *look_on(void *unused) {
	for (struct ndheap_block b; !stop; pthread_mutex_unlock(&look.lock)) {
		pthread_mutex_lock(&look.lock);
		if (!look.at)
			continue;
		CHECK(heap.pin(look.at, &b) == 0, "else one would have to ask what is mapped there");
		CHECK(b.flags == NDHEAP_OUTSIDE || b.flags == NDHEAP_SHAREABLE, "%u", b.flags);
		look.outside += b.flags == NDHEAP_OUTSIDE;
		look.shared += b.flags == NDHEAP_SHAREABLE && heap.unpin(look.at, b.segment) == 0;
	}
	return unused;
}

static void look_at(char *p) {
	pthread_mutex_lock(&look.lock);
	look.at = p;
	pthread_mutex_unlock(&look.lock);
}

/* Who looks beside a promotion is told that the memory may become shared, or that it is, and never sees half of it. */
void test_outside_looks(void) {
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, look_on, NULL) == 0);
	for (uint32_t round = 0; round < 20 || !look.outside || !look.shared; round++) {
		char *p = mapped(8 * MIB);
		fill(p, 8 * MIB, round);
		look_at(p);
		CHECK(heap.promote(p) == 0 && shared(p) && filled(p, 8 * MIB, round));
		look_at(NULL);
		free(p);
	}
	stop = true;
	pthread_join(thread, NULL);
	nothing_left();
}
