/* A program that began without the library, and loads it late. */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "stress.h"

static const size_t size = 2 * MIB;

static char *chunk(uint32_t seed) {
	CHECK(mallopt(M_MMAP_THRESHOLD, 128 * KIB) == 1);
	char *p = opaque(malloc(size));
	fill(p, size, seed);
	return p;
}

static char *promoted(uint32_t seed) {
	char *p = chunk(seed);
	CHECK(heap.outside(p, size, 0) > size && heap.promote(p) == 0 && shared(p));
	return p;
}

static void *library(void) {
	void *l = dlopen(getenv("STRESS_LIBRARY"), RTLD_LAZY);
	CHECK(l, "%s", dlerror());
	return l;
}

/* Whether memory that others look at stays there when a function frees it. */
static bool keeps(void (*give)(void *), uint32_t seed) {
	char *p = promoted(seed);
	struct ndheap_block b;
	CHECK(heap.pin(p, &b) == 0);
	give(p);
	char *other = chunk(seed + 1);
	bool kept = other != p && filled(opaque(p), size, seed);
	CHECK(heap.unpin(opaque(p), b.segment) == 0);
	free(other);
	return kept;
}

static void (*const volatile in_data)(void *) = free;

/* All that leads to the libc's free in the program leads to the heap's, once there is something that is shared; and in libraries that come later. */
void test_late_links(void) {
	free(promoted(1));
	CHECK(keeps(free, 2) && keeps(in_data, 4));
}

void test_late_library(void) {
	free(promoted(1));
	void *l = library();
	void (*give)(void *) = (void (*)(void *))dlsym(l, "give");
	CHECK(give && keeps(give, 2) && dlclose(l) == 0);
	l = library();
	give = (void (*)(void *))dlsym(l, "give");
	CHECK(give && keeps(give, 4) && keeps(give, 6));
}

/* Puts the libc's functions back in all slots of the program, as others do that stand in front of them for a while. */
static void undo(void) {
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof line, maps)) {
		uintptr_t from, to;
		char rights[5];
		Dl_info info;
		if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) != 3 || !strstr(line, "/stress") || rights[0] != 'r' || rights[2] == 'x')
			continue;
		for (void **slot = (void **)from; slot < (void **)to; slot++) {
			if (!dladdr(*slot, &info) || info.dli_saddr != *slot || !strstr(info.dli_fname, "libndbridge-heap"))
				continue;
			CHECK(mprotect((void *)((uintptr_t)slot & ~4095ul), 4096, PROT_READ | PROT_WRITE) == 0);
			*slot = dlsym(RTLD_DEFAULT, info.dli_sname);
		}
	}
	fclose(maps);
}

static void give_here(void *p) { free(p); }

void test_late_undone(void) {
	free(promoted(1));
	free(promoted(2));
	undo();
	CHECK(keeps(give_here, 3) && keeps(give_here, 5));
}

/* A chunk that was made so small that it is not promoted: what lies behind it is left alone. */
void test_late_small(void) {
	for (size_t small = 20 * KIB; small <= 60 * KIB; small += 8 * KIB) {
		char *p = chunk(1);
		CHECK((p = opaque(realloc(p, small))) && filled(p, small, 1));
		CHECK(!heap.outside(p, small, 0) && heap.promote(p) == -1);
		fork_once();
		CHECK(filled(p, small, 1));
		free(p);
	}
}

static _Atomic bool stop;

static void *load(void *count) {
	for (; !stop; ++*(int *)count)
		CHECK(dlclose(library()) == 0);
	return NULL;
}

/* Libraries come and go while memory is promoted. */
void test_late_loading(void) {
	pthread_t thread;
	int loads = 0;
	CHECK(pthread_create(&thread, NULL, load, &loads) == 0);
	for (uint32_t i = 1; i < 300; i++) {
		char *p = promoted(i);
		CHECK(filled(p, size, i));
		free(p);
	}
	stop = true;
	pthread_join(thread, NULL);
	CHECK(loads > 10, "%d", loads);
}

/* What the program has said of the memory before the library could hear it counts as well. */
void test_late_advice(void) {
	static const int advice[] = {MADV_DONTFORK, MADV_DONTDUMP, MADV_WIPEONFORK};
	for (size_t i = 0; i < sizeof advice / sizeof *advice; i++) {
		char *p = chunk(1), *page = (char *)(((uintptr_t)p + MIB) & ~4095ul);
		int pid = split(); /* in which the library has heard of nothing yet */
		if (pid == 0) {
			CHECK(madvise(page, 4096, advice[i]) == 0 && heap.promote(p) == -1 && !shared(p) && filled(p, size, 1));
			CHECK(shared(promoted(2)));
			_exit(0);
		}
		CHECK(exit_of(pid) == 0);
		free(p);
	}
}

static char *middle(char *p) { return (char *)(((uintptr_t)p + MIB) & ~4095ul); }

enum { USED = 4 };
static char *used[USED]; /* shared before a fork */

static void make_used(void) {
	for (uint32_t i = 0; i < USED; i++)
		used[i] = promoted(2 + i);
}

/* Does with memory that was shared what a program may do with its own. */
static void use(void) {
	CHECK(madvise(middle(used[0]), 4096, MADV_DONTNEED) == 0 && zero(middle(used[0]), 4096));
	free(used[1]);
	CHECK((used[2] = opaque(realloc(used[2], 2 * size))) && filled(used[2], size, 4));
	CHECK(mmap(middle(used[3]), 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == middle(used[3]));
}

static void check_used(void) {
	CHECK(zero(middle(used[0]), 4096) && filled(used[0], MIB - 8 * KIB, 2));
	CHECK(filled(used[2], size, 4));
	CHECK(zero(middle(used[3]), 4096) && filled(used[3], MIB - 8 * KIB, 5));
	free(used[0]);
	free(used[2]);
	free(used[3]);
}

/* When a fork's handlers use it. */
enum when { NEVER, BEFORE, AFTER };
static enum when uses, thread_uses;

static pid_t program;
static char *handled;
static int handlings;
static _Atomic int asked, answered;

/* Uses memory whenever it is asked to, until asked is -1. */
static void *answer(void *unused) {
	for (int n; (n = asked) >= 0; sched_yield()) {
		if (n == answered)
			continue;
		free(opaque(malloc(size)));
		use();
		answered = n;
	}
	return unused;
}

static void handle(enum when now) {
	if (thread_uses == now && getpid() == program)
		for (int n = ++asked; answered != n;)
			sched_yield(); /* as for threads that have something to end */
	if (uses == now)
		use();
	if (!uses)
		return;
	handlings++;
	free(handled); /* which the library knows */
	handled = opaque(malloc(size));
	memset(handled, 1, size);
	CHECK((handled = opaque(realloc(handled, 2 * size))));
	char *other = opaque(calloc(1, size));
	CHECK(madvise(middle(other), 4096, MADV_DONTNEED) == 0);
	CHECK(mprotect(middle(other), 4096, PROT_READ | PROT_WRITE) == 0);
	free(other);
}

static void handle_before(void) { handle(BEFORE); }
static void handle_after(void) { handle(AFTER); }

void late_begin(void) {
	program = getpid();
	CHECK(pthread_atfork(handle_before, handle_after, handle_after) == 0);
}

/* Handlers may wait for threads that use memory, and take, give back and map it. */
void test_late_awaiting(void) {
	pthread_t thread;
	char *p = promoted(1);
	uint64_t blocks = stats().live_blocks;
	CHECK(pthread_create(&thread, NULL, answer, NULL) == 0);
	for (int i = 0; i < 20; i++) {
		make_used();
		thread_uses = i % 2 ? BEFORE : AFTER;
		int pid = split();
		if (pid == 0) {
			if (thread_uses == AFTER)
				use();
			check_used();
			fork_once();
			_exit(!filled(p, size, 1));
		}
		CHECK(exit_of(pid) == 0);
		check_used();
		CHECK(!shared(p) && heap.promote(p) == 0 && shared(p) && filled(p, size, 1));
		CHECK(stats().live_blocks == blocks, "%lu, were %lu", stats().live_blocks, blocks);
	}
	thread_uses = NEVER;
	asked = -1;
	pthread_join(thread, NULL);
	free(p);
}

/* Handlers that were there before the library run while it forks, in the child, too, before it has told the library. */
void test_late_handlers(void) {
	char *p = promoted(1);
	struct ndheap_block b;
	CHECK(heap.pin(p, &b) == 0);
	char *seen = map_outside(&b, PROT_READ);
	handled = chunk(7);
	CHECK(heap.outside(handled, size, 0));
	for (int i = 0; i < 10; i++) {
		make_used();
		uses = i % 2 ? BEFORE : AFTER;
		int pid = split();
		if (pid == 0) {
			uses = NEVER;
			check_used();
			fill(p, size, 9);
			CHECK(filled(p, size, 9));
			fork_once();
			_exit(0);
		}
		CHECK(exit_of(pid) == 0 && filled(p, size, 1) && filled(seen, size, 1));
		check_used();
	}
	uses = NEVER;
	CHECK(handlings == 20 && heap.promote(p) == 0 && shared(p) && filled(p, size, 1));
	free(p);
	CHECK(filled(seen, size, 1) && heap.unpin(opaque(p), b.segment) == 0);
}
