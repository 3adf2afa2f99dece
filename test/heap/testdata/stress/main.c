#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stress.h"

struct heap_functions heap;

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{"entries", test_entries},
	{"lookups", test_lookups},
	{"alignment", test_alignment},
	{"overflow", test_overflow},
	{"realloc", test_realloc},
	{"errno", test_errno},
	{"calloc", test_calloc},
	{"sparse", test_sparse},
	{"pins", test_pins},
	{"wild", test_wild},
	{"trim", test_trim},
	{"keep", test_keep},
	{"steady", test_steady},
	{"growth", test_growth},
	{"seals", test_seals},
	{"threads", test_threads},
	{"contention", test_contention},
	{"fork", test_fork},
	{"fork-threads", test_fork_threads},
	{"fork-pinned", test_fork_pinned},
	{"fork-granted", test_fork_granted},
	{"fork-guarded", test_fork_guarded},
	{"fork-child", test_fork_child},
	{"fork-often", test_fork_often},
	{"fork-generations", test_fork_generations},
	{"fork-closed", test_fork_closed},
	{"fork-warm", test_fork_warm},
	{"fork-dumped", test_fork_dumped},
	{"fork-signals", test_fork_signals},
	{"fork-bare", test_fork_bare},
	{"promote", test_promote},
	{"promote-not", test_promote_not},
	{"promote-sparse", test_promote_sparse},
	{"promote-writers", test_promote_writers},
	{"promote-input", test_promote_input},
	{"promote-refused", test_promote_refused},
	{"promote-often", test_promote_often},
	{"promote-child", test_promote_child},
	{"promote-repin", test_promote_repin},
	{"promote-pinned", test_promote_pinned},
	{"promote-beside", test_promote_beside},
	{"promote-elsewhere", test_promote_elsewhere},
	{"promote-together", test_promote_together},
	{"promote-signals", test_promote_signals},
	{"promote-limit", test_promote_limit},
	{"promote-own-limit", test_promote_own_limit},
	{"promote-mappings", test_promote_mappings},
	{"outside", test_outside},
	{"outside-resize", test_outside_resize},
	{"outside-refused", test_outside_refused},
	{"outside-mappings", test_outside_mappings},
	{"outside-child", test_outside_child},
	{"outside-many", test_outside_many},
	{"outside-hammer", test_outside_hammer},
	{"outside-looks", test_outside_looks},
	{"outside-beside", test_outside_beside},
	{"outside-changes", test_outside_changes},
	{"outside-gone", test_outside_gone},
	{"outside-gone-early", test_outside_gone_early},
	{"outside-left", test_outside_left},
	{"outside-larger", test_outside_larger},
	{"outside-smaller", test_outside_smaller},
	{"outside-going", test_outside_going},
	{"promote-lowest", test_promote_lowest},
	{"late-links", test_late_links},
	{"late-small", test_late_small},
	{"late-undone", test_late_undone},
	{"late-library", test_late_library},
	{"late-loading", test_late_loading},
	{"late-advice", test_late_advice},
	{"late-handlers", test_late_handlers},
	{"late-awaiting", test_late_awaiting},
	{"exec", test_exec},
	{"after-exec", test_after_exec},
	{"few-descriptors", test_few_descriptors},
	{"large-pools", test_large_pools},
	{"large-pools-promoted", test_large_pools_promoted},
	{"select", test_select},
	{"closing", test_closing},
	{"replaced", test_replaced},
	{"mapped-over", test_mapped_over},
	{"advice", test_advice},
	{"advice-changed", test_advice_changed},
	{"guarded", test_guarded},
	{"protected", test_protected},
	{"overcommit", test_overcommit},
	{"file-size", test_file_size},
	{"address-space", test_address_space},
	{"data-limit", test_data_limit},
	{"own-address-space", test_own_address_space},
	{"own-data-limit", test_own_data_limit},
	{"child-limit", test_child_limit},
};

static const struct {
	const char *name;
	void (*run)(const char *);
} tests_with_argument[] = {
	{"wrong-free", test_wrong_free}, /* double, inside, stray, usable, realloc, given-back */
	{"denied", test_denied},         /* memfd_create, removal, userfaultfd, ... */
};

bool shared(const void *p) {
	struct ndheap_block b;
	if (heap.pin(p, &b) != 0)
		return false;
	if (!(b.flags & NDHEAP_SHAREABLE))
		return false;
	CHECK(unpin(p) == 0);
	return true;
}

int unpin(const void *p) { return heap.unpin(p, 0); }

struct ndheap_stats stats(void) {
	struct ndheap_stats s;
	CHECK(heap.stats(&s) == 0);
	return s;
}

static uint32_t word(uint32_t seed, size_t i) { return (uint32_t)(seed * 2654435761u + i * 2246822519u) | 1; }

void fill(void *p, size_t size, uint32_t seed) {
	uint32_t *words = p;
	for (size_t i = 0; i < size / 4; i++)
		words[i] = word(seed, i);
}

bool filled(const void *p, size_t size, uint32_t seed) {
	const uint32_t *words = p;
	for (size_t i = 0; i < size / 4; i++) {
		if (words[i] != word(seed, i))
			return false;
	}
	return true;
}

bool zero(const void *p, size_t size) {
	const char *bytes = p;
	return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

void *opaque(void *p) {
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

int split(void) {
	int pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

void fork_once(void) {
	int pid = split();
	if (pid == 0)
		_exit(0);
	CHECK(exit_of(pid) == 0);
}

int exit_of(int pid) {
	int status;
	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

uint64_t now_ns(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int open_files(void) {
	int n = 0;
	for (int fd = 0; fd < 8000; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

size_t resident(void) {
	char text[128];
	int fd = open("/proc/self/statm", O_RDONLY);
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	CHECK(n > 0);
	text[n] = 0;
	return strtoull(strchr(text, ' '), NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

uint32_t next_random(uint32_t *state) {
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

int open_file(const struct ndheap_block *b) {
	char path[64];
	snprintf(path, sizeof path, b->task ? "/proc/self/task/%2$d/fd/%1$d" : "/proc/self/fd/%1$d", b->fd, b->task);
	return open(path, O_RDWR | O_CLOEXEC);
}

size_t file_memory(const struct ndheap_block *b) {
	struct stat status;
	int fd = open_file(b);
	CHECK(fstat(fd, &status) == 0 && status.st_ino == b->inode && status.st_dev == b->device);
	close(fd);
	return (size_t)status.st_blocks * 512;
}

char *map_outside(const struct ndheap_block *b, int protection) {
	int fd = open_file(b);
	char *m = mmap(NULL, b->segment_size, protection, MAP_SHARED, fd, 0);
	CHECK(m != MAP_FAILED && close(fd) == 0);
	return m + b->offset;
}

static int (*promote)(const void *, enum ndheap_promotion, int);

static int promote_as_configured(const void *p) { return promote(p, NDHEAP_AS_CONFIGURED, false); }

static int promote_beside(const void *p) { return promote(p, NDHEAP_AS_CONFIGURED, true); }

/* A library that was loaded late learns of a chunk when somebody asks. There may be none. */
static int ask_and_promote(const void *p) {
	size_t head = 0;
	struct iovec here = {&head, sizeof head}, there = {(size_t *)p - 1, sizeof head};
	if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) == sizeof head)
		heap.outside(p, (head & ~(size_t)7) - 16, 0);
	return promote_as_configured(p);
}

void hear(void) {
	char *p = heap.promote == heap.promote_known ? NULL : opaque(malloc(64 * MIB)); /* which the libc always maps */
	CHECK(!p || heap.promote(p) == 0);
	free(p);
}

int main(int argc, char **argv) {
	const char *late = getenv("STRESS_LATE");
	if (late)
		late_begin();
	void *self = late ? dlopen(late, RTLD_NOW | RTLD_GLOBAL) : NULL;
	CHECK(!late || self, "%s", dlerror());
	int (*join)(void *, const char *, const char *) = (int (*)(void *, const char *, const char *))dlsym(RTLD_DEFAULT, "ndheap_join");
	const uint32_t *abi = dlsym(RTLD_DEFAULT, "ndheap_abi");
	CHECK(abi && *abi == NDHEAP_ABI, "the library is not loaded");
	CHECK(join(self, getenv("NDBRIDGE_HEAP_PROMOTE"), NULL) == (late ? 0 : -1));
	heap.pin = (int (*)(const void *, struct ndheap_block *))dlsym(RTLD_DEFAULT, "ndheap_pin");
	heap.grant = (int (*)(const void *))dlsym(RTLD_DEFAULT, "ndheap_grant");
	heap.unpin = (int (*)(const void *, uint64_t))dlsym(RTLD_DEFAULT, "ndheap_unpin");
	heap.repin = (int (*)(const void *, uint64_t, struct ndheap_block *))dlsym(RTLD_DEFAULT, "ndheap_repin");
	promote = (int (*)(const void *, enum ndheap_promotion, int))dlsym(RTLD_DEFAULT, "ndheap_promote");
	heap.outside = (size_t(*)(const void *, size_t, int))dlsym(RTLD_DEFAULT, "ndheap_outside");
	heap.copied = (void (*)(const void *))dlsym(RTLD_DEFAULT, "ndheap_copied");
	heap.refuse = (void (*)(const void *))dlsym(RTLD_DEFAULT, "ndheap_refuse");
	heap.trim = (uint64_t(*)(uint32_t))dlsym(RTLD_DEFAULT, "ndheap_trim");
	heap.stats = (int (*)(struct ndheap_stats *))dlsym(RTLD_DEFAULT, "ndheap_stats");
	heap.promote_pinned = promote_beside;
	heap.promote_known = promote_as_configured;
	heap.promote = late ? ask_and_promote : promote_as_configured;
	for (size_t i = 0; argc == 2 && i < sizeof tests / sizeof *tests; i++) {
		if (strcmp(tests[i].name, argv[1]) == 0) {
			tests[i].run();
			return 0;
		}
	}
	for (size_t i = 0; argc == 3 && i < sizeof tests_with_argument / sizeof *tests_with_argument; i++) {
		if (strcmp(tests_with_argument[i].name, argv[1]) == 0) {
			tests_with_argument[i].run(argv[2]);
			return 0;
		}
	}
	fprintf(stderr, "no such test\n");
	return 2;
}
