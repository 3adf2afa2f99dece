/* The malloc family: every entry point, sizes, alignments, errors. */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "stress.h"

static const size_t sizes[] = {1, 4096, THRESHOLD - 1, THRESHOLD, THRESHOLD + 1, 100000, MIB - 16, MIB, 5 * MIB + 3, 64 * MIB};
#define SIZES (sizeof sizes / sizeof *sizes)

static void check_block(const char *entry, void *p, size_t size, size_t align) {
	CHECK(p, "%s(%zu)", entry, size);
	CHECK((uintptr_t)p % align == 0, "%s(%zu) is not aligned to %zu", entry, size, align);
	CHECK(shared(p) == (size >= THRESHOLD), "%s(%zu)", entry, size);
	CHECK(malloc_usable_size(p) >= size, "%s(%zu)", entry, size);
	memset(p, 0xa5, size);
}

void test_entries(void) {
	long page = sysconf(_SC_PAGESIZE);
	for (int round = 0; round < 3; round++) { /* fresh blocks, then warm ones */
		for (size_t i = 0; i < SIZES; i++) {
			size_t size = sizes[i];
			void *p = opaque(malloc(size));
			check_block("malloc", p, size, 16);
			CHECK(size < THRESHOLD || (uintptr_t)p % 64 == 16, "page-aligned blocks change what jax does");
			free(p);
			p = opaque(calloc(size, 1));
			CHECK(zero(p, size));
			check_block("calloc", p, size, 16);
			free(p);
			p = opaque(realloc(NULL, size));
			check_block("realloc", p, size, 16);
			free(p);
			p = opaque(reallocarray(NULL, 1, size));
			check_block("reallocarray", p, size, 16);
			free(p);
			CHECK(posix_memalign(&p, 64, size) == 0);
			check_block("posix_memalign", p, size, 64);
			free(p);
			p = opaque(aligned_alloc(64, size));
			check_block("aligned_alloc", p, size, 64);
			free(p);
			p = opaque(memalign(64, size));
			check_block("memalign", p, size, 64);
			free(p);
			p = opaque(valloc(size));
			check_block("valloc", p, size, (size_t)page);
			free(p);
			p = opaque(pvalloc(size));
			CHECK(malloc_usable_size(p) >= (size + page - 1) / page * page);
			memset(p, 1, malloc_usable_size(p));
			free(p);
		}
	}
	free(NULL);
	CHECK(malloc_usable_size(NULL) == 0);
	struct ndheap_stats s = stats();
	CHECK(s.live_blocks == 0 && s.live_bytes == 0, "%zu blocks, %zu bytes", (size_t)s.live_blocks, (size_t)s.live_bytes);
	CHECK(s.taken == s.given && s.reused > 0 && s.refused == 0);
}

void test_alignment(void) {
	for (size_t align = 8; align <= 8 * MIB; align *= 2) {
		for (size_t i = 0; i < SIZES; i++) {
			void *p, *q, *r;
			CHECK(posix_memalign(&p, align, sizes[i]) == 0);
			check_block("posix_memalign", p, sizes[i], align);
			q = opaque(aligned_alloc(align, sizes[i]));
			check_block("aligned_alloc", q, sizes[i], align);
			r = opaque(memalign(align, sizes[i]));
			check_block("memalign", r, sizes[i], align);
			free(q);
			free(r);
			free(p);
		}
	}
	void *p = &p;
	CHECK(posix_memalign(&p, 3, MIB) == EINVAL && p == &p);
	CHECK(posix_memalign(&p, 4, MIB) == EINVAL && p == &p);
	CHECK(posix_memalign(&p, 24, MIB) == EINVAL && p == &p);
	CHECK(posix_memalign(&p, 0, MIB) == EINVAL && p == &p);
	p = opaque(memalign(24, MIB)); /* the libc rounds it up */
	CHECK(p && (uintptr_t)p % 32 == 0);
	free(p);
}

void test_overflow(void) {
	volatile size_t most = SIZE_MAX;
	errno = 0;
	CHECK(opaque(calloc(most / 2, 3)) == NULL && errno == ENOMEM);
	errno = 0;
	CHECK(opaque(reallocarray(NULL, most / 2, 3)) == NULL && errno == ENOMEM);
	for (size_t less = 0; less < 64; less++) {
		errno = 0;
		CHECK(opaque(malloc(most - less)) == NULL && errno == ENOMEM);
		CHECK(opaque(calloc(1, most - less)) == NULL);
		CHECK(opaque(aligned_alloc(4096, most - less)) == NULL);
		CHECK(opaque(pvalloc(most - less)) == NULL);
		CHECK(opaque(valloc(most - less)) == NULL);
		void *p = NULL;
		CHECK(posix_memalign(&p, 4096, most - less) == ENOMEM);
	}
	void *p = opaque(malloc(MIB));
	fill(p, MIB, 1);
	CHECK(opaque(realloc(p, most - 100)) == NULL && filled(p, MIB, 1));
	CHECK(opaque(reallocarray(p, most / 2, 3)) == NULL && filled(p, MIB, 1));
	free(p);
	CHECK(opaque(malloc(100000 * GIB)) == NULL);
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

void test_realloc(void) {
	/* From every size to every size, both ways over the threshold. */
	for (size_t i = 0; i < SIZES; i++) {
		for (size_t j = 0; j < SIZES; j++) {
			char *p = opaque(malloc(sizes[i]));
			fill(p, sizes[i], 7);
			bool was = shared(p);
			p = opaque(realloc(p, sizes[j]));
			CHECK(p && filled(p, least(sizes[i], sizes[j]), 7), "%zu to %zu", sizes[i], sizes[j]);
			CHECK(malloc_usable_size(p) >= sizes[j]);
			/* What grew outside stays outside: mremap beats any copy. */
			CHECK(shared(p) == (was && sizes[j] >= THRESHOLD), "%zu to %zu", sizes[i], sizes[j]);
			memset(p, 1, sizes[j]);
			free(p);
		}
	}
	/* Growth by little steps of a shared block seldom moves it. */
	char *p = opaque(malloc(MIB));
	fill(p, MIB, 9);
	int moves = 0;
	for (size_t size = MIB; size < 40 * MIB; size += MIB / 2) {
		char *q = opaque(realloc(p, size));
		moves += q != p;
		p = q;
		CHECK(filled(p, MIB, 9));
	}
	CHECK(moves <= 6, "%d moves", moves);
	CHECK(opaque(realloc(p, 0)) == NULL);
	CHECK(stats().live_blocks == 0);
	/* An aligned block may lose its alignment but not its contents. */
	void *aligned;
	CHECK(posix_memalign(&aligned, 8 * MIB, 3 * MIB) == 0);
	fill(aligned, 3 * MIB, 3);
	aligned = opaque(realloc(aligned, 30 * MIB));
	CHECK(filled(aligned, 3 * MIB, 3));
	free(aligned);
}

void test_errno(void) {
	void *live[40];
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < 40; i++) {
			errno = 1234;
			live[i] = opaque(malloc((i + 1) * 700 * KIB));
			CHECK(live[i] && errno == 1234);
			memset(live[i], 1, (i + 1) * 700 * KIB);
		}
		for (size_t i = 0; i < 40; i++) {
			errno = 1234;
			free(live[i]);
			CHECK(errno == 1234);
		}
		errno = 1234;
		heap.trim(0);
		CHECK(errno == 1234);
	}
}

/* Each of these must end in an abort that names the library. */
void test_wrong_free(const char *how) {
	char *p = opaque(malloc(4 * MIB)), *q = opaque(malloc(4 * MIB));
	memset(q, 1, 4 * MIB);
	if (strcmp(how, "double") == 0) {
		free(p);
		free(opaque(p));
	} else if (strcmp(how, "inside") == 0) {
		free(opaque(p + 4096));
	} else if (strcmp(how, "stray") == 0) {
		free(opaque(p + 100 * MIB));
	} else if (strcmp(how, "usable") == 0) {
		free(p);
		malloc_usable_size(opaque(p));
	} else if (strcmp(how, "realloc") == 0) {
		free(p);
		p = opaque(realloc(opaque(p), 2 * MIB));
	} else if (strcmp(how, "given-back") == 0) {
		free(p);
		heap.trim(0);
		free(opaque(p));
	}
	CHECK(false, "%s went unnoticed", how);
}

/* Who asks a library's handle for a function of the libc's gets the heap's, as who is linked with it does. */
void test_lookups(void) {
	static const char *const names[] = {"free", "malloc", "calloc", "realloc", "posix_memalign", "mmap", "munmap", "mremap", "madvise", "mprotect", "pkey_mprotect",
					    "read", "recv", "fread", "close", "fopen", "dup2", "setrlimit", "getpid", "strlen"};
	void *libm = dlopen("libm.so.6", RTLD_NOW), *libc = dlopen("libc.so.6", RTLD_NOW);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		void *linked = dlsym(RTLD_DEFAULT, names[i]);
		CHECK(linked && dlsym(libm, names[i]) == linked && dlsym(libc, names[i]) == linked && !dlerror(), "%s", names[i]);
	}
	CHECK(!dlsym(libm, "no_such_function") && dlerror());
	void (*libs_free)(void *);
	*(void **)&libs_free = dlsym(libm, "free");
	char *p = opaque(malloc(MIB));
	CHECK(shared(p));
	libs_free(p);
	CHECK(stats().live_blocks == 0);
}
