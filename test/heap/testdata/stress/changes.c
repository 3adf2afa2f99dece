/* What a program does to the mapping of memory outside the heap while that is about to become shared. */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "stress.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102 /* Linux 6.13 */
#endif

enum { ROUNDS = 300, PART = 64 * 1024 };
static const size_t size = 2 * MIB;
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

/* Whether the kernel shows a flag of the mapping that a page lies in. */
static bool has_flag(const char *page, const char *flag) {
	char line[1024];
	bool here = false, has = false;
	FILE *maps = fopen("/proc/self/smaps", "r");
	while (fgets(line, sizeof line, maps) && !has) {
		unsigned long from, to;
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = (uintptr_t)page >= from && (uintptr_t)page < to;
		has = here && strncmp(line, "VmFlags:", 8) == 0 && strstr(line, flag);
		if (here && !has && strncmp(line, "VmFlags:", 8) == 0)
			break;
	}
	fclose(maps);
	return has;
}

static bool there(char *page) {
	unsigned char in;
	return mincore(page, 1, &in) == 0;
}

static char *map_there(char *page, int sharing) {
	return mmap(page, PART, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* A change at a page, and whether it has lasted. */
static void unmap(char *page) { CHECK(munmap(page, PART) == 0); }
static bool unmapped(char *page) { return !there(page) && map_there(page, MAP_PRIVATE) == page; }
static void map_over(char *page) {
	CHECK(map_there(page, MAP_SHARED) == page);
	memset(page, 9, PART);
}
static bool mapped_over(char *page) {
	int pid = split();
	if (pid == 0) {
		memset(page, 7, PART);
		_exit(0);
	}
	return exit_of(pid) == 0 && page[0] == 7 && page[PART - 1] == 7;
}
static void advise(char *page) { CHECK(madvise(page, PART, MADV_DONTFORK) == 0); }
static bool advised(char *page) { return has_flag(page, " dc"); }
static void guard(char *page) { madvise(page, PART, MADV_GUARD_INSTALL); }
static bool guarded(char *page) { return there(page); }
static void lock(char *page) { CHECK(mlock(page, PART) == 0); }
static bool locked(char *page) { return has_flag(page, " lo") && munlock(page, PART) == 0; }

static const struct {
	void (*make)(char *page);
	bool (*lasts)(char *page);
} changes[] = {{unmap, unmapped}, {map_over, mapped_over}, {advise, advised}, {guard, guarded}, {lock, locked}};

/* Whatever comes first, what the program has done to its pages lasts. */
void test_outside_changes(void) {
	pthread_t thread;
	uint32_t random = 7;
	CHECK(mallopt(M_MMAP_THRESHOLD, 128 * KIB) == 1);
	CHECK(pthread_create(&thread, NULL, promote_on, NULL) == 0);
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
		for (int round = 0; round < ROUNDS; round++) {
			char *p = opaque(malloc(size)), *page = (char *)(((uintptr_t)p + (next_random(&random) % 28 + 2) * PART) & ~4095ul);
			memset(p, 1, size);
			target = p;
			/* From nanoseconds to milliseconds: before, during and after a promotion, on a busy machine too. */
			for (volatile uint32_t pause = next_random(&random) % 4000 << round % 12; pause; pause--)
				;
			changes[i].make(page);
			usleep(next_random(&random) % 500);
			CHECK(changes[i].lasts(page), "change %zu, round %d", i, round);
			target = NULL;
			free(p);
		}
	stop = true;
	pthread_join(thread, NULL);
	CHECK(promotions > 0);
}
