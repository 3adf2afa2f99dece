/* Limits and prohibitions: the heap steps back, the program goes on. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stress.h"

void limit(int resource, unsigned long value) {
	struct rlimit l = {value, value};
	CHECK(setrlimit(resource, &l) == 0);
}

/* Allocates, writes, zeroes, frees: everything must be right, wherever it comes from. Counts what is shared. */
static int exercise(void) {
	enum { COUNT = 200 };
	char *p[COUNT];
	int in_heap = 0;
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < COUNT; i++) {
			size_t size = THRESHOLD + i * 40000 % (3 * MIB);
			p[i] = opaque(i % 2 ? malloc(size) : calloc(1, size));
			CHECK(p[i] && (i % 2 || zero(p[i], size)), "round %d block %u", round, i);
			in_heap += shared(p[i]);
			fill(p[i], size, i);
		}
		for (uint32_t i = 0; i < COUNT; i++) {
			size_t size = THRESHOLD + i * 40000 % (3 * MIB);
			CHECK(filled(p[i], size, i));
			free(p[i]);
		}
	}
	return in_heap;
}

void test_few_descriptors(void) {
	limit(RLIMIT_NOFILE, 64);
	CHECK(exercise() == 400, "beyond the budget blocks share a file");
	CHECK(stats().descriptors <= 8, "%u descriptors", stats().descriptors);
	int opened = 0;
	while (dup(2) >= 0)
		opened++;
	CHECK(opened >= 50, "only %d descriptors are left for the program", opened);
	CHECK(exercise() >= 0); /* none is left for the heap */
}

/*
 * What malloc would not get, the heap refuses: more than memory and swap under the kernel's default policy.
 * What is granted elsewhere (a policy of always) is granted here, too.
 */
void test_overcommit(void) {
	for (size_t size = 256 * MIB; size < 64 * 1024 * GIB; size *= 2) {
		void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (mapped != MAP_FAILED)
			munmap(mapped, size);
		char *p = opaque(malloc(size)), *q = opaque(calloc(1, size)), *r = NULL;
		int failed = posix_memalign((void **)&r, 64, size);
		bool want = mapped != MAP_FAILED;
		CHECK(!p == !want && !q == !want && !r == !want && !failed == want, "%zu MiB", size / MIB);
		CHECK(!p || size > 16 * GIB || (shared(p) && shared(q) && shared(r)), "%zu MiB", size / MIB);
		free(p);
		free(q);
		free(r);
		/* Growth is refused as the kernel refuses it: what is there already does not count. */
		p = opaque(malloc(MIB));
		fill(p, MIB, 3);
		q = opaque(realloc(p, size));
		CHECK(!q == !want && filled(q ? q : p, MIB, 3), "%zu MiB", size / MIB);
		free(q ? q : p);
	}
}

void test_file_size(void) {
	limit(RLIMIT_FSIZE, 8 * MIB); /* ftruncate beyond it raises SIGXFSZ */
	CHECK(exercise() == 400, "smaller files serve as well");
	char *p = opaque(malloc(64 * MIB));
	CHECK(p && !shared(p));
	memset(p, 1, 64 * MIB);
	free(p);
	CHECK(stats().refused > 0);
}

void test_address_space(void) {
	limit(RLIMIT_AS, 2 * GIB);
	CHECK(exercise() == 400);
	/* Most of the limit is left for everything else. */
	char *p = mmap(NULL, 1300 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED);
	munmap(p, 1300 * MIB);
	/* What does not fit into the reserved addresses comes from the libc. */
	char *many[12];
	for (int i = 0; i < 12; i++) {
		many[i] = opaque(malloc(100 * MIB));
		CHECK(many[i], "block %d", i);
		many[i][0] = 1;
	}
	CHECK(shared(many[0]) && !shared(many[11]));
	for (int i = 0; i < 12; i++)
		free(many[i]);
	/* Addresses that the heap keeps for later make way. */
	heap.trim(0);
	p = opaque(malloc(1600 * MIB));
	CHECK(p && !shared(p));
	free(p);
}

/* Limits that a program sets on itself, after the heap took its addresses. */
void test_own_address_space(void) {
	CHECK(exercise() == 400);
	limit(RLIMIT_AS, 2 * GIB);
	CHECK(exercise() == 400, "what it has, it keeps");
	char *p = mmap(NULL, 1000 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(p != MAP_FAILED, "the heap holds too many addresses");
	munmap(p, 1000 * MIB);
	p = opaque(malloc(600 * MIB));
	CHECK(p && !shared(p));
	free(p);
	CHECK(opaque(malloc(3 * GIB)) == NULL, "the limit is in force");
	/* Beyond the limit the kernel maps nothing any more, not even in place of something else: a fork must not need that. */
	p = opaque(malloc(MIB));
	fill(p, MIB, 1);
	CHECK(shared(p));
	limit(RLIMIT_AS, 4 * KIB);
	int pid = split();
	if (pid == 0) {
		memset(p, 0, MIB);
		_exit(0);
	}
	CHECK(exit_of(pid) == 0 && filled(p, MIB, 1), "the child has written to it");
}

void test_own_data_limit(void) {
	CHECK(exercise() == 400);
	char *before = opaque(malloc(MIB));
	fill(before, MIB, 1);
	limit(RLIMIT_DATA, 3 * GIB);
	CHECK(exercise() == 0 && filled(before, MIB, 1));
	limit(RLIMIT_DATA, 4 * KIB);
	int pid = split();
	if (pid == 0) {
		CHECK(filled(before, MIB, 1));
		_exit(0);
	}
	CHECK(exit_of(pid) == 0);
	free(before);
}

/* What a child of vfork sets itself does not make its parent's memory private. */
void test_child_limit(void) {
	char *p = opaque(malloc(MIB));
	fill(p, MIB, 1);
	CHECK(shared(p));
	int pid = vfork();
	if (pid == 0) {
		const struct rlimit l = {GIB, GIB};
		_exit(setrlimit(RLIMIT_DATA, &l) != 0 || setrlimit(RLIMIT_AS, &l) != 0);
	}
	CHECK(exit_of(pid) == 0 && shared(p), "the array is private by a limit of the child's");
	CHECK(shared(opaque(malloc(MIB))), "the heap is off by a limit of the child's");
	pid = split();
	if (pid == 0) { /* which has nobody's memory but its own */
		limit(RLIMIT_AS, 4 * GIB);
		char *q = opaque(malloc(GIB));
		_exit(q == NULL);
	}
	CHECK(exit_of(pid) == 0, "the child has no room for what it allocates");
	free(p);
}

void test_data_limit(void) {
	limit(RLIMIT_DATA, 2 * GIB);
	CHECK(exercise() == 0 && stats().state == NDHEAP_NO_ADDRESSES);
}

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "seccomp filters need the name of the architecture"
#endif

/* A system call, and a value of one of its arguments, for which alone it fails; or 0. */
struct denied {
	unsigned call, value, argument;
};

/* Makes two system calls fail. */
static void deny(struct denied a, struct denied b, unsigned error) {
#define ARGUMENT(n) (unsigned)(offsetof(struct seccomp_data, args) + (n) * sizeof(uint64_t)) /* of a little-endian machine */
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 0, 9),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, a.call, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(a.argument)),
		BPF_JUMP(BPF_JMP | (a.value ? BPF_JEQ : BPF_JGE) | BPF_K, a.value, 4, 5),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, b.call, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(b.argument)),
		BPF_JUMP(BPF_JMP | (b.value ? BPF_JEQ : BPF_JGE) | BPF_K, b.value, 1, 2),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof program / sizeof *program, program};
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0, "errno %d", errno);
}

/* What promotion needs, as a kernel denies it: one before Linux 4.3, Docker's profile, one before 6.4, one before 5.19. */
static const struct {
	const char *name;
	struct denied call;
	unsigned error;
} promotion_needs[] = {
	{"userfaultfd-unknown", {SYS_userfaultfd, 0, 0}, ENOSYS},
	{"userfaultfd", {SYS_userfaultfd, 0, 0}, EPERM},
	{"userfaultfd-features", {SYS_ioctl, (unsigned)UFFDIO_API, 1}, EINVAL},
	{"userfaultfd-files", {SYS_ioctl, (unsigned)UFFDIO_REGISTER, 1}, EINVAL},
	{"userfaultfd-writes", {SYS_ioctl, (unsigned)UFFDIO_WRITEPROTECT, 1}, ENOENT},
};

static void (*volatile kept)(void *) = free;

void test_denied(const char *what) {
	if (strcmp(what, "memfd_create") == 0) {
		struct denied call = {SYS_memfd_create, 0, 0};
		deny(call, call, EPERM);
		errno = 0;
		CHECK(exercise() == 0 && stats().state == NDHEAP_NO_MEMFD && stats().descriptors == 0);
		return;
	}
	for (size_t i = 0; i < sizeof promotion_needs / sizeof *promotion_needs; i++) {
		if (strcmp(what, promotion_needs[i].name) == 0) { /* what a fork has made private stays so */
			deny(promotion_needs[i].call, promotion_needs[i].call, promotion_needs[i].error);
			test_promote_not();
			return;
		}
	}
	if (strcmp(what, "population") == 0) { /* as before Linux 5.14: nobody says what may be written to */
		struct denied call = {SYS_madvise, MADV_POPULATE_WRITE, 2};
		deny(call, call, EINVAL);
		char *p = opaque(malloc(64 * MIB));
		CHECK(heap.outside(p, 64 * MIB, 0) && heap.promote(p) == -1);
		kept = NULL;
		free(p);
		return;
	}
	if (strcmp(what, "reading") == 0) {
		struct denied call = {SYS_process_vm_readv, 0, 0};
		deny(call, call, EPERM);
		char *map = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *p = opaque(malloc(64 * MIB));
		CHECK(map != MAP_FAILED && munmap(map, MIB) == 0);
		CHECK(heap.outside(map + MIB, 63 * MIB, 0) == 0, "there is nothing before it");
		fill(p, 64 * MIB, 1);
		CHECK(heap.outside(p, 64 * MIB, 0) && heap.promote_known(p) == 0 && shared(p) && filled(p, 64 * MIB, 1));
		free(p);
		return;
	}
	/* Pages cannot be given back: what calloc returns must be zero all the same. */
	CHECK(strcmp(what, "removal") == 0);
	char *p[50];
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 50; i++) {
			p[i] = opaque(calloc(1, 100 * KIB + (size_t)i));
			CHECK(zero(p[i], 100 * KIB + (size_t)i), "round %d: old data", round);
			memset(p[i], 0xff, 100 * KIB + (size_t)i);
		}
		for (int i = 0; i < 50; i++)
			free(p[i]);
		if (round == 0)
			deny((struct denied){SYS_fallocate, 0, 0}, (struct denied){SYS_madvise, MADV_REMOVE, 2}, EPERM);
		heap.trim(0);
	}
	CHECK(stats().dropped >= 100);
	exercise();
}
