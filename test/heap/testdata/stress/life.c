/* A block's life: zeroing, pins, recycling, giving back. */
#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stress.h"

void test_calloc(void) {
	/* Dirty blocks of every class, taken again by calloc with smaller and larger sizes. */
	for (size_t size = THRESHOLD; size < 24 * MIB; size = size * 5 / 4 + 17) {
		for (int step = 0; step < 4; step++) {
			size_t other = size - (size_t)step * size / 40;
			char *p = opaque(malloc(size));
			memset(p, 0xff, size);
			free(p);
			p = opaque(calloc(1, other));
			CHECK(zero(p, other), "size %zu", other);
			memset(p, 0xff, other);
			p = opaque(realloc(p, other + 1000)); /* grows in place over dirt that calloc left */
			memset(p, 0xff, other + 1000);
			free(p);
			p = opaque(calloc(other + 1000, 1));
			CHECK(zero(p, other + 1000));
			free(p);
			CHECK(posix_memalign((void **)&p, 128 * KIB, other) == 0);
			memset(p, 0xff, other);
			free(p);
			p = opaque(calloc(other, 1));
			CHECK(zero(p, other));
			free(p);
		}
	}
	CHECK(stats().reused > 100);
	/* And after their pages were given back. */
	char *p = opaque(malloc(300 * KIB));
	memset(p, 0xff, 300 * KIB);
	free(p);
	heap.trim(0);
	p = opaque(calloc(1, 300 * KIB));
	CHECK(zero(p, 300 * KIB));
	free(p);
}

/* A program may rely on calloc of more than it will ever touch. */
void test_sparse(void) {
	size_t size = 8 * GIB, before = resident();
	char *kept = opaque(calloc(size, 1)), *kept2 = opaque(calloc(size, 1));
	CHECK(kept && kept2 && shared(kept));
	for (int round = 0; round < 5; round++) {
		char *p = opaque(calloc(size, 1));
		CHECK(p && p[0] == 0 && p[size / 2] == 0 && p[size - 1] == 0);
		p[0] = p[size / 2] = p[size - 1] = 1;
		free(p);
	}
	CHECK(resident() - before < 64 * MIB, "%zu MiB became resident", (resident() - before) / MIB);
	free(kept);
	free(kept2);
}

void test_pins(void) {
	static const size_t sizes[] = {100 * KIB, MIB, 30 * MIB}; /* in a pool, and in files of their own */
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t size = sizes[i];
		char *p = opaque(malloc(size));
		fill(p, size, 1);
		struct ndheap_block b, inside, last;
		CHECK(heap.pin(p, &b) == 0 && b.flags == NDHEAP_SHAREABLE && b.available == size);
		CHECK(heap.pin(p + 5000, &inside) == 0 && inside.available == size - 5000);
		CHECK(inside.segment == b.segment && inside.offset == b.offset + 5000 && inside.fd == b.fd);
		CHECK(heap.pin(p + size - 1, &last) == 0 && last.available == 1);
		CHECK(heap.pin(p + size, &last) == -2, "one past the end is not in the block");
		CHECK(heap.pin(p - 1, &last) == -2);
		char *seen = map_outside(&b, PROT_READ);
		CHECK(filled(seen, size, 1));
		p[77] = 99; /* the very pages, not a copy */
		CHECK(seen[77] == 99);
		fill(p, size, 1);

		free(p); /* the program lets go: the block outlives it */
		CHECK(heap.pin(opaque(p), &last) == -2, "a freed block cannot be pinned anew");
		char *others[20];
		for (int k = 0; k < 20; k++) {
			others[k] = opaque(calloc(1, size));
			CHECK(others[k] != p && shared(others[k]));
			memset(others[k], 0xee, size);
		}
		heap.trim(0);
		CHECK(filled(seen, size, 1), "a pinned block was reused");
		CHECK(unpin(opaque(p)) == 0 && unpin(opaque(p + 5000)) == 0);
		CHECK(filled(seen, size, 1) && stats().pinned_blocks == 1);
		CHECK(unpin(opaque(p)) == 0 && unpin(opaque(p)) == -1);
		char *again = opaque(malloc(size));
		CHECK(again == p || size > 8 * MIB, "now it is the first to be reused");
		free(again);
		for (int k = 0; k < 20; k++)
			free(others[k]);
		munmap(seen - b.offset, b.segment_size);
	}
	CHECK(stats().pinned_blocks == 0 && stats().live_blocks == 0);
	struct ndheap_block b;
	CHECK(heap.pin(&b, &b) == -1 && heap.pin(NULL, &b) == -1 && heap.pin((void *)-1, &b) == -1);
	CHECK(unpin(&b) == -1 && unpin(NULL) == -1 && heap.grant(NULL) == -1);
	/* A block that moves while pinned leaves its contents behind. */
	char *p = opaque(malloc(MIB));
	fill(p, MIB, 5);
	CHECK(heap.pin(p, &b) == 0);
	char *seen = map_outside(&b, PROT_READ), *q = opaque(realloc(p, 9 * MIB));
	memset(q, 1, 9 * MIB);
	CHECK(q != p && filled(seen, MIB, 5));
	CHECK(unpin(opaque(p)) == 0);
	free(q);
}

/* Dangling and wild pointers into the heap's addresses: they are told from those to others' memory. */
void test_wild(void) {
	struct ndheap_block b;
	char *first = opaque(malloc(MIB)), *small = opaque(malloc(100 * KIB)), *large = opaque(malloc(64 * MIB));
	for (size_t far = 0; far < 2048 * GIB; far += GIB / 3) { /* wherever it ends */
		int answer = heap.pin(first + GIB + far, &b);
		CHECK(answer == -1 || answer == -2);
		CHECK(far > 256 * GIB || answer == -2, "%zu GiB on: not the heap's", far / GIB);
		CHECK(unpin(first + GIB + far) == -1 && heap.grant(first + GIB + far) == -1);
	}
	free(small); /* warm */
	free(large); /* given back */
	CHECK(stats().warm_blocks > 0);
	CHECK(heap.pin(opaque(small), &b) == -2 && heap.pin(opaque(large), &b) == -2);
	heap.trim(0);
	CHECK(heap.pin(opaque(small), &b) == -2 && stats().warm_blocks == 0);
	small = opaque(malloc(100 * KIB));
	CHECK(heap.pin(small, &b) == 0 && unpin(small) == 0, "taken again it is somebody's");
	CHECK(heap.pin(small + 100 * KIB, &b) == -2, "behind the end of a block is nobody's");
	free(small);
	free(first);
}

void test_trim(void) {
	char *p = memset(opaque(malloc(5 * MIB)), 1, 5 * MIB), *q = memset(opaque(malloc(100 * KIB)), 1, 100 * KIB);
	free(p);
	free(q);
	CHECK(stats().warm_blocks == 2 && stats().dropped == 0, "a few MiB are kept in any case");
	CHECK(heap.trim(60000) == 0 && heap.trim(UINT32_MAX) == 0, "nothing is idle for a minute");
	uint64_t given = 0;
	for (int i = 0; i < 6000 && given < 5 * MIB + 100 * KIB; i++) {
		usleep(10000);
		given += heap.trim(300);
	}
	CHECK(stats().warm_blocks == 0 && stats().warm_bytes == 0, "%zu bytes were given back", (size_t)given);
	/* At once, if asked to. */
	p = memset(opaque(malloc(7 * MIB)), 1, 7 * MIB);
	size_t before = resident();
	free(p);
	CHECK(heap.trim(0) >= 7 * MIB && stats().warm_bytes == 0 && stats().descriptors <= 1);
	CHECK(before - resident() > 6 * MIB, "%zu to %zu", before, resident());
}

static char *fresh(size_t size) { return memset(opaque(malloc(size)), 1, size); }

/* What is freed goes back at once, until the program asks for its like again; but never is more kept than is live. */
void test_keep(void) {
	enum { COUNT = 6 };
	char *p[COUNT], *live = fresh(60 * MIB);
	size_t before = resident();
	for (int i = 0; i < COUNT; i++)
		p[i] = fresh(20 * MIB);
	for (int i = 0; i < COUNT; i++)
		free(p[i]);
	CHECK(stats().warm_bytes <= 8 * MIB && resident() < before + 16 * MIB, "%zu MiB stay", (resident() - before) / MIB);
	/* A loop finds its temporaries where it left them. */
	free(fresh(40 * MIB));
	free(fresh(40 * MIB));
	uint64_t dropped = stats().dropped;
	for (int i = 0; i < 4; i++)
		free(fresh(40 * MIB));
	CHECK(stats().dropped == dropped, "%zu were dropped", (size_t)(stats().dropped - dropped));
	CHECK(stats().warm_bytes >= 40 * MIB);
	/* What has other sizes makes room: there never is more than the program had at most, and an eighth. */
	size_t most = (60 + 20 * COUNT) * MIB;
	for (int i = 0; i < 15; i++) {
		size_t held = 60 * MIB;
		for (int k = 0; k < COUNT; k++) {
			size_t size = ((size_t)(i * 7 + k * 5) % 20 + 1) * MIB;
			p[k] = fresh(size);
			held += size;
		}
		most = held > most ? held : most;
		CHECK(resident() < before - 60 * MIB + most * 9 / 8 + 20 * MIB, "%zu MiB of %zu", resident() / MIB, most / MIB);
		for (int k = 0; k < COUNT; k++)
			free(p[k]);
	}
	free(live);
	CHECK(stats().warm_bytes <= 8 * MIB, "with nothing live, %zu MiB stay", (size_t)stats().warm_bytes / MIB);
	/* Unless somebody sees to it that it does not stay. */
	heap.trim(0);
	for (int i = 0; i < 3; i++)
		free(fresh(40 * MIB));
	CHECK(stats().warm_bytes >= 40 * MIB && heap.trim(0) >= 40 * MIB);
}

void test_seals(void) {
	static const size_t sizes[] = {100 * KIB, 3 * MIB};
	for (size_t i = 0; i < 2; i++) {
		char *p = opaque(malloc(sizes[i])), path[64];
		struct ndheap_block b;
		CHECK(heap.pin(p, &b) == 0);
		int seals = fcntl(b.fd, F_GET_SEALS);
		CHECK((seals & F_SEAL_SHRINK) && !(seals & F_SEAL_WRITE));
		CHECK(ftruncate(b.fd, 4096) == -1);
		struct stat status;
		CHECK(fstat(b.fd, &status) == 0 && (uint64_t)status.st_size == b.segment_size);
		snprintf(path, sizeof path, "/proc/self/fd/%d", b.fd);
		int reader = open(path, O_RDONLY | O_CLOEXEC);
		CHECK(reader >= 0);
		CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, reader, 0) == MAP_FAILED);
		close(reader);
		CHECK(unpin(p) == 0);
		free(p);
	}
}

/* A program that allocates and frees for ever, in whatever order, must not grow. */
void test_steady(void) {
	enum { COUNT = 48 };
	char *p[COUNT] = {0};
	uint32_t random = 1;
	size_t after_warm_up = 0;
	int files = 0;
	for (int i = 0; i < 40000; i++) {
		uint32_t k = next_random(&random) % COUNT;
		free(p[k]);
		size_t size = THRESHOLD + next_random(&random) % (i % 16 ? 300 * KIB : 6 * MIB);
		p[k] = opaque(i % 3 ? malloc(size) : calloc(1, size));
		CHECK(p[k] && shared(p[k]));
		p[k][0] = p[k][size / 2] = p[k][size - 1] = 1;
		if (i == 10000) {
			after_warm_up = resident();
			files = open_files();
		}
	}
	CHECK(resident() < after_warm_up + 64 * MIB, "%zu MiB, then %zu", after_warm_up / MIB, resident() / MIB);
	CHECK(open_files() < files + 64, "%d descriptors, then %d", files, open_files());
	struct ndheap_stats s = stats();
	CHECK(s.reused > s.taken * 3 / 4, "only %zu of %zu were reused", (size_t)s.reused, (size_t)s.taken);
	CHECK(s.live_blocks == COUNT && s.refused == 0);
	for (int k = 0; k < COUNT; k++)
		free(p[k]);
	heap.trim(0);
	CHECK(stats().warm_bytes == 0 && stats().descriptors <= 1);
}

/* Bytes of the block's file that have memory. */
static size_t file_bytes(void *p, uint64_t *segment, ino_t *inode) {
	struct ndheap_block b;
	struct stat status;
	CHECK(heap.pin(p, &b) == 0 && b.flags == NDHEAP_SHAREABLE && fstat(b.fd, &status) == 0 && unpin(p) == 0);
	*segment = b.segment;
	*inode = status.st_ino;
	return (size_t)status.st_blocks * 512;
}

/* A large block grows with its file, without a copy, and gives back what it no longer needs. */
void test_growth(void) {
	uint64_t segment, other_segment;
	ino_t inode, other;
	char *p = opaque(malloc(16 * MIB));
	fill(p, 16 * MIB, 1);
	file_bytes(p, &segment, &inode);
	for (size_t size = 17 * MIB; size <= 153 * MIB; size += 17 * MIB) {
		p = opaque(realloc(p, size));
		CHECK(p && malloc_usable_size(p) >= size && filled(p, 16 * MIB, 1) && zero(p + 16 * MIB, size - 16 * MIB - MIB));
		CHECK(file_bytes(p, &other_segment, &other) <= size + 2 * MIB && other == inode, "%zu MiB: a copy", size / MIB);
	}
	CHECK(other_segment != segment, "who has mapped the small file would take it for the large one");
	memset(p, 1, 153 * MIB);
	fill(p, 16 * MIB, 1);
	p = opaque(realloc(p, 50 * MIB));
	CHECK(file_bytes(p, &segment, &other) <= 52 * MIB && other == inode && filled(p, 16 * MIB, 1));
	p = opaque(realloc(p, 80 * MIB));
	memset(p + 50 * MIB, 1, 30 * MIB);
	free(p);
	p = opaque(calloc(1, 80 * MIB)); /* whatever it is made of */
	CHECK(zero(p, 80 * MIB));
	/* What somebody reads stays as it is. */
	fill(p, 80 * MIB, 2);
	struct ndheap_block b;
	CHECK(heap.pin(p, &b) == 0);
	char *seen = map_outside(&b, PROT_READ), *q = opaque(realloc(p, 30 * MIB));
	CHECK(q == p && filled(seen, 80 * MIB, 2), "a reader's memory was given back");
	q = opaque(realloc(p, 250 * MIB));
	CHECK(q != p && filled(q, 30 * MIB, 2) && filled(seen, 80 * MIB, 2));
	CHECK(unpin(opaque(p)) == 0);
	munmap(seen - b.offset, b.segment_size);
	free(q);
	CHECK(stats().live_blocks == 0);
}
