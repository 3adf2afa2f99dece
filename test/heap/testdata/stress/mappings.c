/* What a program maps over its blocks, takes away from there and advises: it sees what it would see of private memory. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stress.h"

static const size_t sizes[] = {300 * KIB, 7 * MIB}; /* in a pool, and in a file of its own */
#define SIZES (sizeof sizes / sizeof *sizes)
#define PART (64 * KIB) /* of a block, that something is mapped over */

/* The first page that a block has for itself. */
static char *inner(char *p) { return (char *)(((uintptr_t)p + 4095) & ~(uintptr_t)4095); }

/* A file of the program's own. */
static int own_file(void) {
	int fd = (int)syscall(SYS_memfd_create, "own", 0);
	CHECK(fd >= 0 && ftruncate(fd, PART) == 0);
	return fd;
}

enum way { ANONYMOUS, FILE_SHARED, MOVED_THERE, ATTACHED, UNMAPPED, MOVED_AWAY, WAYS };

/* Changes the mapping of [at, at + PART). What lies there reads as zero, unless it is gone. */
static void change(enum way how, char *at, int fd) {
	void *from;
	int id;
	switch (how) {
	case ANONYMOUS:
		CHECK(mmap(at, PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
		return;
	case FILE_SHARED:
		CHECK(mmap64(at, PART, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == at);
		return;
	case MOVED_THERE:
		from = mmap(NULL, PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(mremap(from, PART, PART, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at);
		return;
	case ATTACHED:
		id = shmget(IPC_PRIVATE, PART, IPC_CREAT | 0600);
		CHECK(id >= 0 && shmat(id, at, SHM_REMAP) == at && shmctl(id, IPC_RMID, NULL) == 0);
		return;
	case UNMAPPED:
		CHECK(munmap(at, PART) == 0);
		return;
	case MOVED_AWAY:
		from = mremap(at, PART, 2 * PART, MREMAP_MAYMOVE); /* larger, so that it must move */
		CHECK(from != MAP_FAILED && from != at && filled(from, PART, 1));
		CHECK(munmap(from, 2 * PART) == 0);
		return;
	case WAYS:
		CHECK(false);
	}
}

static bool readable(const void *p) {
	unsigned char in;
	return mincore((void *)((uintptr_t)p & ~(uintptr_t)4095), 1, &in) == 0 && madvise((void *)((uintptr_t)p & ~(uintptr_t)4095), 1, MADV_POPULATE_READ) == 0;
}

/* Nobody else's memory comes to lie where the program has taken some away. */
static void no_gap(char *at) {
	for (int i = 0; i < 2000; i++) {
		char *p = mmap(at, PART, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(p != at);
		CHECK(i % 2 || munmap(p, PART) == 0);
	}
}

static void map_over(enum way how, size_t size) {
	char *p = opaque(malloc(size)), *beside = opaque(malloc(size)), *at = inner(p) + PART;
	struct ndheap_block b;
	memset(p, 3, size);
	fill(at, PART, 1);
	memset(beside, 2, size);
	CHECK(heap.pin(p, &b) == 0 && b.flags == NDHEAP_SHAREABLE);
	char *seen = map_outside(&b, PROT_READ);
	uint64_t forks = stats().forks;
	int fd = own_file();

	change(how, at, fd);
	CHECK(readable(at) == (how != UNMAPPED && how != MOVED_AWAY));
	if (readable(at)) {
		CHECK(zero(at, PART));
		memset(at, 7, PART);
	} else {
		no_gap(at);
	}
	p[0]++;
	CHECK(p[0] == 4 && seen[0] == 3 && filled(seen + (at - p), PART, 1), "others see what they saw");
	CHECK(heap.pin(p, &b) == 0 && b.flags == 0 && b.available == size, "nobody else can be shown this block");
	CHECK(stats().forks == forks && beside[0] == 2 && memcmp(beside, beside + 1, size - 1) == 0);

	/* A fork leaves what lies there alone. */
	int pid = split();
	if (pid == 0) {
		CHECK(readable(at) == (how != UNMAPPED && how != MOVED_AWAY) && (!readable(at) || at[PART - 1] == 7));
		free(p);
		free(beside);
		_exit(0);
	}
	CHECK(exit_of(pid) == 0);
	CHECK(!readable(at) || at[PART - 1] == 7);

	/* What comes after it has pages that others see, and the program's file stays as it is. */
	free(p);
	CHECK(unpin(opaque(p)) == 0 && !readable(at), "what was mapped over a block goes with it");
	munmap(seen - b.offset, size);
	heap.trim(0);
	for (int i = 0; i < 40; i++) {
		char *next = opaque(i % 2 ? malloc(size) : calloc(1, size));
		memset(next, 9, size);
		CHECK(heap.pin(next, &b) == 0 && b.flags == NDHEAP_SHAREABLE);
		char *outside = map_outside(&b, PROT_READ);
		CHECK(memcmp(outside, next, size) == 0, "the next block shows something else");
		munmap(outside - b.offset, b.segment_size);
		CHECK(unpin(next) == 0);
		free(next);
	}
	free(beside);
	heap.trim(0);
	char *content = mmap(NULL, PART, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(how != FILE_SHARED || (content[0] == 7 && content[PART - 1] == 7), "the program's file was changed");
	munmap(content, PART);
	close(fd);
	CHECK(stats().live_blocks == 0 && stats().pinned_blocks == 0 && stats().frozen_blocks == 0);
}

void test_mapped_over(void) {
	free(opaque(malloc(MIB)));
	for (enum way how = 0; how < WAYS; how++) {
		for (size_t i = 0; i < SIZES; i++)
			map_over(how, sizes[i]);
	}
	/* Only what shares a file with it becomes private. */
	char *p = opaque(malloc(5 * MIB)), *other = opaque(malloc(5 * MIB));
	change(ANONYMOUS, inner(p), -1);
	CHECK(!shared(p) && shared(other));
	/* And not even that where nothing is replaced. */
	void *at = inner(other);
	CHECK(mmap(at, PART, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != at && mmap(other, PART, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED);
	CHECK(errno == EINVAL && munmap(other, PART) == -1 && errno == EINVAL && shared(other));
	/* Nothing can be mapped where the program has no memory. */
	free(p);
	CHECK(mmap(at, 1024 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED && errno == ENOMEM);
	CHECK(munmap(at, 1024 * MIB) == -1 && shared(other));
	CHECK(remap_file_pages(at, PART, 0, 1, 0) == -1 && errno == EINVAL);
	/* A part that fails leaves no gap. */
	CHECK(mmap(at, PART, PROT_READ, MAP_SHARED | MAP_FIXED, 9999, 0) == MAP_FAILED && errno == EBADF);
	no_gap(at);
	free(other);
}

/* Rights that the program takes away go with the block. */
void test_protected(void) {
	for (size_t i = 0; i < SIZES; i++) {
		char *p = opaque(malloc(sizes[i])), *at = inner(p);
		memset(p, 1, sizes[i]);
		CHECK(mprotect(at, PART, PROT_READ) == 0 && mprotect(at + PART, PART, PROT_NONE) == 0 && shared(p) && *at == 1);
		free(p);
		char *again = opaque(malloc(sizes[i]));
		CHECK(again == p, "the block is not used again, so this shows nothing");
		memset(again, 3, sizes[i]);
		free(again);
	}
}

/* Gives advice, and answers with the error's number. */
static int advise(char *p, int advice) {
	errno = 0;
	int answer = madvise(p, PART, advice);
	CHECK((answer == 0) == (errno == 0));
	return errno;
}

/* Advice has the effect that it has on private memory. */
static void same_advice(int advice, char *p, size_t size) {
	char *plain = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = inner(p) + PART, *plain_at = plain + PART;
	memset(p, 5, size);
	memset(plain, 5, size + 4096);
	int want = advise(plain_at, advice), got = advise(at, advice);
	CHECK(got == want, "advice %d: %s, and %s for private memory", advice, strerror(got), strerror(want));
	if (advice != MADV_FREE) /* of which the kernel says only what may happen */
		CHECK(memcmp(at, plain_at, PART) == 0, "advice %d", advice);
	CHECK(at[-1] == 5 && at[PART] == 5 && (at[0] == 5 || zero(at, PART)));
	memset(at, 6, PART);
	CHECK(at[PART - 1] == 6);
	munmap(plain, size + 4096);
}

static const int advices[] = {
	MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED, MADV_FREE, MADV_REMOVE, MADV_DOFORK,
	MADV_DONTDUMP, MADV_DODUMP, MADV_COLD, MADV_PAGEOUT, MADV_POPULATE_READ, MADV_POPULATE_WRITE, 24 /* MADV_DONTNEED_LOCKED */, 4711,
};

void test_advice(void) {
	for (size_t i = 0; i < SIZES; i++) {
		char *p = opaque(malloc(sizes[i])), *other = opaque(malloc(sizes[i]));
		struct ndheap_block b;
		CHECK(heap.pin(p, &b) == 0 && unpin(p) == 0);
		char *seen = map_outside(&b, PROT_READ);
		for (size_t k = 0; k < sizeof advices / sizeof *advices; k++) {
			same_advice(advices[k], p, sizes[i]);
			CHECK(shared(p) && memcmp(seen, p, sizes[i]) == 0, "others do not see the same after advice %d", advices[k]);
		}
		munmap(seen - b.offset, b.segment_size);
		/* What is thrown away takes no memory. */
		memset(p, 1, sizes[i]);
		size_t before = resident();
		CHECK(madvise(inner(p), sizes[i] - 8192, MADV_DONTNEED) == 0);
		CHECK(before + MIB >= resident() + sizes[i]);
		/* Locked memory stays, as does what is not whole pages. */
		CHECK(mlock(inner(p), PART) == 0);
		memset(p, 1, sizes[i]);
		CHECK(advise(inner(p), MADV_DONTNEED) == EINVAL && advise(inner(p) + 1, MADV_DONTNEED) == EINVAL && p[PART] == 1);
		CHECK(munlock(inner(p), PART) == 0);
		/* The same after a fork, and where the program has mapped something. */
		fill(p, sizes[i], 1);
		CHECK(exit_of(split() ?: (_exit(0), 0)) == 0 && !shared(p));
		for (size_t k = 0; k < sizeof advices / sizeof *advices; k++)
			same_advice(advices[k], p, sizes[i]);
		change(ANONYMOUS, inner(other) + PART, -1);
		for (size_t k = 0; k < sizeof advices / sizeof *advices; k++)
			same_advice(advices[k], other, sizes[i]);
		free(p);
		free(other);
	}
	CHECK(stats().live_blocks == 0);
}

/* Whether the rights of a page are still those. */
static bool rights_are(const char *page, int rights) {
	int fd = open("/dev/zero", O_RDONLY), sink[2];
	CHECK(fd >= 0 && pipe(sink) == 0);
	bool reads = write(sink[1], page, 1) == 1, writes = read(fd, (void *)page, 1) == 1;
	close(fd);
	close(sink[0]);
	close(sink[1]);
	return reads == ((rights & PROT_READ) != 0) && writes == ((rights & PROT_WRITE) != 0);
}

/* What the program throws away reads as zero, with the rights that it has given, also if it has mapped something beside it, or locked it. */
void test_advice_changed(void) {
	static const int rights[] = {PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE};
	for (size_t i = 0; i < SIZES; i++) {
		for (int how = 0; how < 12; how++) {
			char *p = opaque(malloc(sizes[i])), *at = inner(p);
			int left = rights[how % 3], advice = MADV_DONTNEED;
			fill(p, sizes[i], 1);
			switch (how / 3) {
			case 1:
				fork_once();
				break;
			case 2:
				CHECK(munmap(at + PART, 4096) == 0);
				break;
			case 3:
				CHECK(mlock(at, PART) == 0);
				advice = 24; /* MADV_DONTNEED_LOCKED */
			}
			CHECK(mprotect(at, PART, left) == 0);
			if (madvise(at, PART, advice) != 0) {
				CHECK(errno == EINVAL && advice == 24, "%d", errno); /* Linux before 5.18 */
			} else {
				CHECK(rights_are(at, left), "%d", how);
				CHECK(mprotect(at, PART, PROT_READ | PROT_WRITE) == 0 && zero(at, PART), "%d", how);
			}
			CHECK(mprotect(at, PART, PROT_READ | PROT_WRITE) == 0);
			free(p);
		}
	}
	CHECK(stats().live_blocks == 0);
}

/* How much memory is locked, in KiB. */
static long locked(void) {
	char line[256];
	long kib = -1;
	FILE *f = fopen("/proc/self/status", "r");
	while (kib < 0 && fgets(line, sizeof line, f))
		sscanf(line, "VmLck: %ld kB", &kib);
	fclose(f);
	return kib;
}

/* Throws pages away while no descriptor is left to ask with what is mapped there. */
static int advise_starved(char *at, int advice) {
	enum { MOST = 256 };
	struct rlimit before, few;
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	few = before;
	few.rlim_cur = MOST;
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	int held[MOST], count = 0;
	while ((held[count] = dup(1)) >= 0)
		count++;
	int result = advise(at, advice);
	while (count)
		close(held[--count]);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	return result;
}

/* What the program has done to pages by other ways than mprotect: promotion and forks leave it, or the heap refuses it as older kernels do. */
void test_guarded(void) {
	for (size_t i = 0; i < SIZES; i++) {
		char *p = opaque(malloc(sizes[i])), *at = inner(p);
		fill(p, sizes[i], 1);
		for (int forked = 0; forked < 2; forked++) {
			CHECK(advise(at, 102) == EINVAL && advise(at, 103) == EINVAL && filled(p, sizes[i], 1)); /* MADV_GUARD_INSTALL, MADV_GUARD_REMOVE */
			CHECK(pkey_mprotect(at, PART, forked ? PROT_NONE : PROT_READ, -1) == 0);
			CHECK(!forked || heap.promote(p) == -1);
			fork_once();
			CHECK(rights_are(at, forked ? PROT_NONE : PROT_READ));
			CHECK(pkey_mprotect(at, PART, PROT_READ | PROT_WRITE, -1) == 0);
		}
		CHECK(filled(p, sizes[i], 1));
		fill(p, sizes[i], 9);
		CHECK(advise_starved(at, MADV_DONTNEED) == EMFILE && filled(p, sizes[i], 9));
		CHECK(advise(at, MADV_DONTNEED) == 0 && zero(at, PART));
		free(p);

		long before = locked();
		p = opaque(malloc(sizes[i])), at = inner(p);
		CHECK(mlock(at, PART) == 0 && locked() > before);
		fork_once();
		CHECK(mlock(at, PART) == 0 && heap.promote(p) == -1 && locked() > before);
		free(p);
		p = opaque(malloc(sizes[i])), at = inner(p);
		CHECK(mlock(at, PART) == 0);
		free(p);
		CHECK(locked() == before, "%ld KiB are locked, %ld before", locked(), before);
	}
	CHECK(stats().live_blocks == 0);
}
