/* Promotion beside all else that happens in a program: what it does to its memory, signals, limits. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "stress.h"

static _Atomic bool stop;

enum { SLOTS = 12 };
static _Atomic(char *) slots[SLOTS];
static const size_t slot_size = 700 * KIB;

static void *promote_on(void *argument) {
	uint32_t random = (uint32_t)(uintptr_t)argument;
	uint64_t *promoted = calloc(1, sizeof *promoted);
	while (!stop) {
		const char *p = slots[next_random(&random) % SLOTS];
		*promoted += p && heap.promote_known(p) == 0;
	}
	return promoted;
}

/* Does all that may be done to blocks, and sees what it has left there. */
static void *live_on(void *argument) {
	uint32_t random = (uint32_t)(uintptr_t)argument;
	while (!stop) {
		unsigned slot = next_random(&random) % SLOTS;
		char *p = atomic_exchange(&slots[slot], NULL);
		size_t size = slot_size;
		if (p)
			CHECK(filled(p, size, slot), "a block changed beside promotion");
		char *page = p ? (char *)(((uintptr_t)p + 4095) & ~4095ul) + 64 * KIB : NULL;
		switch (p ? next_random(&random) % 9 : 0) {
		case 0:
			free(p);
			p = opaque(malloc(size));
			break;
		case 1:
			p = opaque(realloc(p, size + MIB / 2));
			CHECK(filled(p, size, slot));
			memset(p + size, 1, MIB / 2);
			p = opaque(realloc(p, size));
			CHECK(filled(p, size, slot));
			break;
		case 2:
			CHECK(madvise(page, 128 * KIB, MADV_DONTNEED) == 0 && zero(page, 128 * KIB));
			break;
		case 3:
			CHECK(mprotect(page, 128 * KIB, PROT_NONE) == 0 && mprotect(page, 128 * KIB, PROT_READ | PROT_WRITE) == 0);
			break;
		case 4:
			CHECK(mmap(page, 64 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page);
			CHECK(zero(page, 64 * KIB));
			free(p);
			p = opaque(malloc(size));
			break;
		case 5:
			/* What the libc frees is unmapped, and somebody else's memory may be where it has a hole. */
			CHECK(heap.outside(p, size, 0) || munmap(page, 64 * KIB) == 0);
			free(p);
			p = opaque(malloc(size));
			break;
		default:
			break;
		}
		fill(p, size, slot);
		free(atomic_exchange(&slots[slot], p)); /* the other thread may have left one there */
	}
	return NULL;
}

/* Promotion beside all that a program may do to its memory. */
void test_promote_beside(void) {
	pthread_t threads[4];
	hear();
	for (uintptr_t i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, i < 1 ? promote_on : live_on, (void *)(i * 1000 + 17)) == 0);
	uint64_t begin = now_ns();
	for (int i = 0; i < 60 && now_ns() - begin < 20000000000u; i++) {
		int pid = split();
		if (pid == 0) {
			for (unsigned slot = 0; slot < SLOTS; slot++) {
				char *p = slots[slot];
				if (p && !filled(p, slot_size, slot))
					_exit(1);
				if (p)
					memset(p, 0xee, slot_size);
				free(p);
			}
			_exit(0);
		}
		CHECK(exit_of(pid) == 0, "the child saw something else");
		usleep(next_random(&(uint32_t){(uint32_t)i + 1}) % 10000);
	}
	stop = true;
	uint64_t *promoted;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], i < 1 ? (void **)&promoted : NULL);
	CHECK(*promoted > 5, "only %lu promotions", *promoted);
	printf("%lu promotions\n", *promoted);
	for (int i = 0; i < SLOTS; i++)
		free(slots[i]);
	heap.trim(0);
	CHECK(stats().live_blocks == 0 && stats().descriptors <= 1);
}

/* Changes memory all the time, but not that which is promoted. */
static void *change_elsewhere(void *argument) {
	char **others = argument;
	char *page = (char *)(((uintptr_t)others[0] + 4095) & ~4095ul);
	for (int i = 1; !stop; i++) {
		if (i < SLOTS)
			free(others[i]);
		CHECK(madvise(page, 64 * KIB, MADV_HUGEPAGE) == 0 || errno == EINVAL);
		CHECK(madvise(page, 64 * KIB, MADV_DONTNEED) == 0);
		CHECK(mprotect(page, 64 * KIB, PROT_READ | PROT_WRITE) == 0);
		usleep(200);
	}
	return NULL;
}

/* A program that frees and changes other memory all the time does not keep a block from being promoted. */
void test_promote_elsewhere(void) {
	const size_t size = 64 * MIB;
	char *p = opaque(malloc(size)), *others[SLOTS];
	fill(p, size, 1);
	for (int round = 0; round < 3; round++) {
		pthread_t changes;
		for (int i = 0; i < SLOTS; i++)
			fill(others[i] = opaque(malloc(slot_size)), slot_size, 2);
		fork_once();
		stop = false;
		CHECK(pthread_create(&changes, NULL, change_elsewhere, others) == 0);
		CHECK(heap.promote(p) == 0 && shared(p) && filled(p, size, 1), "round %d", round);
		stop = true;
		pthread_join(changes, NULL);
		free(others[0]);
	}
	free(p);
}

static void *promote_one(void *p) { return (void *)(intptr_t)heap.promote(p); }

/* Several looks at once have all their arrays promoted. */
void test_promote_together(void) {
	enum { COUNT = 4 };
	char *blocks[COUNT];
	pthread_t threads[COUNT];
	for (uint32_t i = 0; i < COUNT; i++)
		fill(blocks[i] = opaque(malloc(16 * MIB)), 16 * MIB, i);
	for (int round = 0; round < 5; round++) {
		fork_once();
		for (int i = 0; i < COUNT; i++)
			CHECK(pthread_create(&threads[i], NULL, promote_one, blocks[i]) == 0);
		for (uint32_t i = 0; i < COUNT; i++) {
			void *result;
			pthread_join(threads[i], &result);
			CHECK(result == NULL && shared(blocks[i]) && filled(blocks[i], 16 * MIB, i), "block %u", i);
		}
	}
	for (int i = 0; i < COUNT; i++)
		free(blocks[i]);
}

static _Atomic bool pinned_done;

static void *count_in(void *words) {
	static uint64_t counted;
	for (; !pinned_done; counted++)
		((_Atomic uint64_t *)words)[0]++;
	return &counted;
}

/* With a small block others follow that a host has pinned, beside a thread that writes to one. Those that nobody has pinned stay, and large ones. */
void test_promote_pinned(void) {
	enum { COUNT = 40, PINNED = 30, LARGE = 35 };
	static const size_t small = 80 * KIB;
	char *blocks[COUNT];
	struct ndheap_block b[COUNT];
	pthread_t thread;
	void *counted;
	for (uint32_t i = 0; i < COUNT; i++) {
		fill(blocks[i] = opaque(malloc(i == LARGE ? 2 * MIB : small)), small, i);
		CHECK((i >= PINNED && i != LARGE) || heap.pin(blocks[i], &b[i]) == 0);
	}
	uint64_t *words = (uint64_t *)blocks[3];
	words[0] = 0;
	CHECK(pthread_create(&thread, NULL, count_in, words) == 0);
	for (int round = 0; round < 20; round++) {
		fork_once();
		CHECK(heap.promote_pinned(blocks[round % PINNED]) == 0);
		for (uint32_t i = 0; i < COUNT; i++) {
			CHECK(shared(blocks[i]) == (i < PINNED), "block %u", i);
			CHECK(i == 3 || filled(blocks[i], small, i), "block %u", i);
			CHECK(i >= PINNED || heap.repin(blocks[i], b[i].segment, &b[i]) == 0);
		}
	}
	pinned_done = true;
	pthread_join(thread, &counted);
	CHECK(words[0] == *(uint64_t *)counted);
	for (uint32_t i = 0; i < COUNT; i++) {
		CHECK((i >= PINNED && i != LARGE) || heap.unpin(blocks[i], b[i].segment) == 0);
		free(blocks[i]);
	}
}

/* What the handlers of test_promote_signals use. */
static struct {
	_Atomic uint64_t *words; /* of the array: handlers add to the first one */
	char *input;             /* and read to there */
	int zeros;
	_Atomic uint64_t handled, failed, faults;
} signaled;

static void on_alarm(int number) {
	(void)number;
	int saved = errno;
	atomic_fetch_add(&signaled.words[0], 1);
	atomic_fetch_add(&signaled.handled, 1);
	atomic_fetch_add(&signaled.failed, read(signaled.zeros, signaled.input, 100 * KIB) != (ssize_t)(100 * KIB));
	errno = saved;
}

static void on_fault(int number) {
	(void)number;
	atomic_fetch_add(&signaled.faults, 1);
}

/* Adds to a word of each page, with all signals blocked or none. */
static void *add_on(void *argument) {
	sigset_t all;
	sigfillset(&all);
	if (argument)
		pthread_sigmask(SIG_BLOCK, &all, NULL);
	_Atomic uint64_t *words = signaled.words + (argument ? 1 : 2);
	uint64_t *passes = calloc(1, sizeof *passes);
	for (; !stop; ++*passes) {
		for (size_t i = 0; i < MIB; i += 4 * KIB / sizeof *words)
			words[i]++;
	}
	return passes;
}

/*
 * A program sees no signal of promotion's, whatever it handles or blocks, and its own handlers run beside promotion and
 * write to the array, too.
 */
void test_promote_signals(void) {
	const size_t size = MIB * sizeof(uint64_t);
	signaled.words = opaque(calloc(1, size + 100 * KIB));
	signaled.input = (char *)signaled.words + size;
	signaled.zeros = open("/dev/zero", O_RDONLY);
	struct sigaction fault = {.sa_handler = on_fault}, alarm = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	CHECK(sigaction(SIGSEGV, &fault, NULL) == 0 && sigaction(SIGBUS, &fault, NULL) == 0 && sigaction(SIGALRM, &alarm, NULL) == 0);
	pthread_t threads[2];
	for (uintptr_t i = 0; i < 2; i++)
		CHECK(pthread_create(&threads[i], NULL, add_on, (void *)i) == 0);
	struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
	int promoted = 0;
	for (int i = 0; i < 40 || (signaled.handled < 100 && i < 4000); i++) {
		fork_once();
		promoted += heap.promote(signaled.words) == 0;
	}
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
	stop = true;
	for (int i = 0; i < 2; i++) {
		uint64_t *passes;
		pthread_join(threads[i], (void **)&passes);
		for (size_t k = i ? 1 : 2; k < MIB; k += 4 * KIB / sizeof(uint64_t))
			CHECK(signaled.words[k] == *passes, "thread %d: %lu writes are lost", i, *passes - signaled.words[k]);
	}
	CHECK(promoted > 10, "only %d promotions", promoted);
	CHECK(signaled.handled >= 100 && signaled.words[0] == signaled.handled, "%lu of %lu", signaled.words[0], signaled.handled);
	CHECK(signaled.faults == 0 && signaled.failed == 0, "%lu faults, %lu failed calls", signaled.faults, signaled.failed);
}

static _Atomic int phase; /* of a promotion: 1 begins, 2 has ended */

static void *promote_once(void *p) {
	phase = 1;
	intptr_t result = heap.promote(p);
	phase = 2;
	return (void *)result;
}

/* Sets a limit on data while an array is being promoted. Answers with whether promotion was still under way after it. */
static bool limit_beside(char *p, void set(unsigned long), unsigned long bytes, intptr_t *result) {
	pthread_t thread;
	phase = 0;
	CHECK(pthread_create(&thread, NULL, promote_once, p) == 0);
	while (phase == 0)
		usleep(1000);
	usleep(10000);
	set(bytes);
	bool beside = phase == 1;
	fork_once();
	pthread_join(thread, (void **)result);
	return beside;
}

/* As another process does it, or a bare system call. */
static void set_unseen(unsigned long bytes) {
	struct rlimit l = {bytes, RLIM_INFINITY};
	CHECK(syscall(SYS_prlimit64, 0, RLIMIT_DATA, &l, NULL) == 0);
}

/*
 * The kernel does not let the array become private again, but the program, which forks, does not wait for ever. Its
 * array stays what it is, and the child's own.
 */
void test_promote_limit(void) {
	const size_t size = 256 * MIB;
	char *p = opaque(malloc(size));
	bool beside = false;
	alarm(300); /* what hangs ends */
	CHECK(shared(p) || heap.promote(p) == 0); /* a heap that begins under a limit stays off */
	for (uint32_t i = 1; i < 20 && !beside; i++) {
		fill(p, size, i);
		fork_once();
		intptr_t result;
		beside = limit_beside(p, set_unseen, 4 * KIB, &result);
		CHECK(filled(p, size, i) && (result == 0 || !shared(p)));
		int pid = split();
		if (pid == 0) {
			memset(p, 0, size); /* which may be out of its reach */
			_exit(0);
		}
		exit_of(pid);
		CHECK(filled(p, size, i), "the child has written to it");
		set_unseen(RLIM_INFINITY);
	}
	CHECK(beside, "promotion always ended before the limit was set");
	fork_once();
	CHECK(heap.promote(p) == 0 && shared(p), "the limit is gone");
	free(p);
}

static void set_own(unsigned long bytes) { limit(RLIMIT_DATA, bytes); }

/* A program that limits itself meanwhile has private memory from then on. */
void test_promote_own_limit(void) {
	const size_t size = 256 * MIB;
	char *p = opaque(malloc(size));
	fill(p, size, 1);
	fork_once();
	intptr_t result;
	alarm(300);
	limit_beside(p, set_own, 4 * KIB, &result);
	CHECK(filled(p, size, 1) && !shared(p) && heap.promote(p) == -1);
	free(p);
}

/* How many mappings this machine allows a process. */
static int most_mappings(void) {
	FILE *f = fopen("/proc/sys/vm/max_map_count", "r");
	int most;
	CHECK(f && fscanf(f, "%d", &most) == 1);
	fclose(f);
	return most;
}

static void *promote_at_most(void *unused) {
	(void)unused;
	const int most = most_mappings();
	const size_t page = 4096, size = 3 * MIB;
	if (most > 4 << 20) {
		printf("%d mappings are too many to make\n", most);
		return NULL;
	}
	char *p = opaque(malloc(size)), **maps = calloc((size_t)most, sizeof *maps);
	fill(p, size, 1);
	heap.promote(p); /* if it is the libc's: the heap, too, needs its mappings */
	fork_once();
	int count = 0;
	while (count < most && (maps[count] = mmap(NULL, page, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED)
		count++;
	CHECK(count < most, "there is no end of them");
	int promoted = 0;
	for (int spare = 0; spare < 8; spare++) {
		promoted += heap.promote(p) == 0;
		CHECK(filled(p, size, 1) && shared(p) == (promoted > 0), "with %d mappings to spare", spare);
		CHECK(munmap(maps[--count], page) == 0);
	}
	CHECK(promoted > 0, "a few mappings are enough");
	while (count)
		munmap(maps[--count], page);
	fork_once();
	CHECK(heap.promote(p) == 0 && filled(p, size, 1));
	free(p);
	return NULL;
}

/* A program with nearly as many mappings as it may have neither waits for promotion nor loses anything by it. */
void test_promote_mappings(void) {
	pthread_t thread;
	alarm(300); /* which this thread is there to get: one that promotes blocks it */
	CHECK(pthread_create(&thread, NULL, promote_at_most, NULL) == 0 && pthread_join(thread, NULL) == 0);
}
