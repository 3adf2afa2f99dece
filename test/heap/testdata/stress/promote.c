/* Promotion: what a fork has made private becomes shared again, beside whoever writes to it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stress.h"

static const size_t sizes[] = {THRESHOLD, 300 * KIB, MIB, 7 * MIB};
#define SIZES (sizeof sizes / sizeof *sizes)

static _Atomic bool stop;

/* A child that sees memory as it was at the fork, whatever happens later, and says so when it is told to end. */
struct child {
	int pid, end;
};

static struct child child_that_sees(const char *p, size_t size, uint32_t seed) {
	int fds[2];
	CHECK(pipe(fds) == 0);
	int pid = split();
	if (pid == 0) {
		char c;
		close(fds[1]);
		_exit(read(fds[0], &c, 1) == 0 && filled(p, size, seed) ? 0 : 1);
	}
	close(fds[0]);
	return (struct child){pid, fds[1]};
}

static void child_end(struct child c) {
	close(c.end);
	CHECK(exit_of(c.pid) == 0, "the child's snapshot has changed");
}

void test_promote(void) {
	for (size_t i = 0; i < SIZES; i++) {
		size_t size = sizes[i];
		char *p = opaque(malloc(size)), *beside = opaque(malloc(size));
		struct ndheap_block before, after;
		fill(p, size, 1);
		fill(beside, size, 2);
		CHECK(heap.promote(p) == -1, "it is shared");
		CHECK(heap.pin(p, &before) == 0);
		char *old = map_outside(&before, PROT_READ);
		struct child child = child_that_sees(p, size, 1);
		CHECK(!shared(p));
		memset(p, 7, size / 2);
		CHECK(heap.promote(p + size / 3) == 0, "%s", strerror(errno));

		CHECK(heap.pin(p, &after) == 0 && after.flags == NDHEAP_SHAREABLE && after.segment != before.segment);
		char *seen = map_outside(&after, PROT_READ);
		CHECK(p[0] == 7 && p[size / 2 - 1] == 7 && memcmp(p, seen, size) == 0);
		fill(p, size, 3);
		CHECK(filled(seen, size, 3), "a later write is not seen");
		CHECK(filled(old, size, 1), "who has the old file sees something else than at the fork");
		CHECK(filled(beside, size, 2) && !shared(beside));

		/* The first pin keeps the old file open, and no more. */
		char *again = map_outside(&before, PROT_READ);
		CHECK(filled(again, size, 1));
		CHECK(heap.unpin(p, before.segment) == 0 && open_file(&before) == -1 && close(open_file(&after)) == 0);
		CHECK(stats().pinned_blocks == 1);
		child_end(child);

		free(p);
		CHECK(filled(seen, size, 3), "a pinned block was reused");
		CHECK(heap.unpin(opaque(p), after.segment) == 0 && stats().pinned_blocks == 0);
		CHECK(opaque(malloc(size)) == p, "it is not as warm as any other");
		free(p);
		free(beside);
		munmap(old - before.offset, before.segment_size);
		munmap(again - before.offset, before.segment_size);
		munmap(seen - after.offset, after.segment_size);
		heap.trim(0);
		CHECK(stats().live_blocks == 0 && stats().descriptors == 0, "%u descriptors", stats().descriptors);
	}
}

/* Where promotion is refused, what a fork has made private stays so, and nothing else changes. */
void test_promote_not(void) {
	char *p = opaque(malloc(MIB));
	fill(p, MIB, 1);
	fork_once();
	CHECK(heap.promote(p) == -1 && !shared(p) && filled(p, MIB, 1));
	fill(p, MIB, 2);
	free(p);
	CHECK(shared(p = opaque(malloc(MIB))), "what was made after the fork");
	free(p);
}

/* Pages that nobody has touched take no memory, and what is thrown away stays away. */
void test_promote_sparse(void) {
	char *p = opaque(calloc(1, 64 * MIB));
	struct ndheap_block b;
	memset(p + 20 * MIB, 1, MIB);
	fork_once();
	CHECK(madvise((char *)(((uintptr_t)p + 20 * MIB) & ~4095ul), MIB / 2, MADV_DONTNEED) == 0);
	CHECK(heap.promote(p) == 0 && heap.pin(p, &b) == 0);
	CHECK(file_memory(&b) <= 2 * MIB, "%zu bytes", file_memory(&b));
	CHECK(zero(p, 20 * MIB) && zero(p + 21 * MIB, 43 * MIB) && p[20 * MIB + MIB - 1] == 1 && zero(p + 20 * MIB + 4096, MIB / 2 - 8192));
	CHECK(unpin(p) == 0);
	free(p);
}

/* Counts in each word of a part of an array. */
struct writer {
	volatile uint64_t *words;
	size_t count, step;
	uint64_t passes;
};

static void *write_on(void *argument) {
	struct writer *w = argument;
	for (; !stop; w->passes++) {
		for (size_t i = 0; i < w->count; i++)
			w->words[i * w->step]++;
	}
	return NULL;
}

/*
 * Promotion loses no write, and takes less than it may. A child lives through each round: pages are private by a
 * fork, by a write since, or not there yet.
 */
void test_promote_writers(void) {
	enum { THREADS = 3, ROUNDS = 30 };
	const size_t size = 32 * MIB, words = size / sizeof(uint64_t);
	uint64_t *array = opaque(calloc(words, sizeof *array)), took = 0;
	struct writer writers[THREADS];
	pthread_t threads[THREADS];
	for (size_t i = 0; i < THREADS; i++) {
		writers[i] = (struct writer){array + i, words / THREADS, THREADS, 0};
		CHECK(pthread_create(&threads[i], NULL, write_on, &writers[i]) == 0);
	}
	for (int round = 0; round < ROUNDS; round++) {
		struct child child = child_that_sees(NULL, 0, 0);
		uint64_t begin = now_ns();
		CHECK(heap.promote(array) == 0 && shared(array));
		took += now_ns() - begin;
		child_end(child);
	}
	struct ndheap_block b;
	CHECK(heap.pin(array, &b) == 0);
	uint64_t *seen = (uint64_t *)map_outside(&b, PROT_READ), lost = 0, unseen = 0;
	stop = true;
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		for (size_t k = 0; k < writers[i].count; k++) {
			lost += writers[i].passes - array[i + k * THREADS];
			unseen += array[i + k * THREADS] != seen[i + k * THREADS];
		}
	}
	CHECK(lost == 0, "%lu writes are lost", lost);
	CHECK(unseen == 0, "%lu words are not seen outside", unseen);
	printf("%d promotions of %zu MiB beside %d writers: %.1f ms each\n", ROUNDS, size / MIB, THREADS, (double)took / 1e6 / ROUNDS);
}

/* Where readers read to, and what they found. */
struct input {
	char *to;
	size_t size;
	int from, to_send; /* a socket pair of datagrams */
	uint64_t calls, failed;
	_Atomic pid_t thread;
};

enum { PART = 2 * KIB };

/* What _FORTIFY_SOURCE calls instead. */
ssize_t __read_chk(int fd, void *to, size_t size, size_t room);
ssize_t __pread_chk(int fd, void *to, size_t size, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void *to, size_t size, off64_t at, size_t room);
ssize_t __recv_chk(int fd, void *to, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *to, size_t size, size_t room, int flags, struct sockaddr *who, socklen_t *length);
size_t __fread_chk(void *to, size_t room, size_t size, size_t count, FILE *from);
size_t __fread_unlocked_chk(void *to, size_t room, size_t size, size_t count, FILE *from);

/* Fills random parts by all functions that can. */
static void *fill_on(void *argument) {
	struct input *in = argument;
	uint32_t random = 42;
	int zeros = open("/dev/zero", O_RDONLY);
	FILE *stream = fdopen(open("/dev/zero", O_RDONLY), "r");
	CHECK(zeros >= 0 && stream && setvbuf(stream, NULL, _IONBF, 0) == 0);
	char packet[PART] = {0};
	for (; !stop; in->calls++) {
		char *to = in->to + next_random(&random) % (in->size / PART) * PART;
		struct iovec parts[2] = {{to, PART / 2}, {to + PART / 2, PART / 2}};
		struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
		struct mmsghdr messages = {.msg_hdr = message};
		unsigned how = next_random(&random) % 21;
		if ((how >= 5 && how <= 8) || how == 13 || how == 14)
			CHECK(send(in->to_send, packet, PART, 0) == PART);
		ssize_t n = how == 0 ? read(zeros, to, PART) : how == 1 ? pread(zeros, to, PART, 0)
			: how == 2 ? readv(zeros, parts, 2) : how == 3 ? preadv(zeros, parts, 2, 0)
			: how == 4 ? (ssize_t)fread(to, 1, PART, stream)
			: how == 5 ? recv(in->from, to, PART, 0) : how == 6 ? recvfrom(in->from, to, PART, 0, NULL, NULL)
			: how == 7 ? recvmsg(in->from, &message, 0)
			: how == 8 ? recvmmsg(in->from, &messages, 1, 0, NULL) == 1 ? (ssize_t)messages.msg_len : -1
			: how == 9 ? preadv2(zeros, parts, 2, 0, 0) : how == 10 ? preadv64v2(zeros, parts, 2, 0, 0)
			: how == 11 ? process_vm_readv(getpid(), parts, 2, &(struct iovec){packet, PART}, 1, 0) : how == 12 ? getrandom(to, PART, 0)
			: how == 13 ? __recv_chk(in->from, to, PART, PART, 0) : how == 14 ? __recvfrom_chk(in->from, to, PART, PART, 0, NULL, NULL)
			: how == 15 ? __read_chk(zeros, to, PART, PART) : how == 16 ? __pread_chk(zeros, to, PART, 0, PART)
			: how == 17 ? __pread64_chk(zeros, to, PART, 0, PART) : how == 18 ? (ssize_t)__fread_chk(to, PART, 1, PART, stream)
			: how == 19 ? (ssize_t)__fread_unlocked_chk(to, PART, 1, PART, stream)
			: getentropy(to, 256) == 0 ? PART : -1;
		in->failed += n != PART;
	}
	return NULL;
}

/* No system call fails or falls short because its memory is being promoted. */
void test_promote_input(void) {
	enum { THREADS = 2, ROUNDS = 60 };
	const size_t size = 8 * MIB;
	char *array = opaque(calloc(1, size));
	struct input inputs[THREADS];
	pthread_t threads[THREADS];
	uint64_t calls = 0, failed = 0;
	for (int i = 0; i < THREADS; i++) {
		int pair[2];
		CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
		inputs[i] = (struct input){array, size, pair[0], pair[1], 0, 0, 0};
		CHECK(pthread_create(&threads[i], NULL, fill_on, &inputs[i]) == 0);
	}
	int promoted = 0;
	for (int round = 0; round < ROUNDS; round++) {
		fork_once();
		promoted += heap.promote(array) == 0;
	}
	stop = true;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		calls += inputs[i].calls;
		failed += inputs[i].failed;
	}
	printf("%lu calls beside %d promotions, %lu failed\n", calls, promoted, failed);
	CHECK(failed == 0, "%lu calls of %lu failed", failed, calls);
	CHECK(promoted > ROUNDS / 2, "only %d of %d promotions", promoted, ROUNDS);
}

static void *read_one(void *argument) {
	struct input *in = argument;
	in->thread = (pid_t)syscall(SYS_gettid);
	in->failed = read(in->from, in->to, in->size) != (ssize_t)in->size;
	return NULL;
}

/* Waits until a thread is in a system call. */
static void await_call(const _Atomic pid_t *thread, long number) {
	char path[64], text[256], want[16];
	snprintf(want, sizeof want, "%ld ", number);
	do {
		snprintf(path, sizeof path, "/proc/self/task/%d/syscall", *thread);
		int fd = open(path, O_RDONLY);
		ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
		text[n < 0 ? 0 : n] = 0;
		close(fd);
	} while (strncmp(text, want, strlen(want)) != 0);
}

/* What cannot be promoted stays as it is. */
void test_promote_refused(void) {
	const size_t size = 3 * MIB;
	char *p = opaque(malloc(size)), *page = (char *)(((uintptr_t)p + 4095) & ~4095ul);
	fill(p, size, 1);
	CHECK(heap.promote(&p) == -1 && heap.promote(NULL) == -1 && heap.promote(p) == -1);
	fork_once();

	/* The program waits for input that goes there. */
	int fds[2];
	char text[100] = "input";
	CHECK(pipe(fds) == 0);
	struct input in = {p, sizeof text, fds[0], -1, 0, 1, 0};
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, read_one, &in) == 0);
	int before = open_files();
	await_call(&in.thread, SYS_read);
	CHECK(heap.promote(p) == -1 && !shared(p) && open_files() == before);
	CHECK(write(fds[1], text, sizeof text) == sizeof text);
	pthread_join(thread, NULL);
	CHECK(in.failed == 0 && memcmp(p, text, sizeof text) == 0);
	CHECK(heap.promote(p) == 0);
	fork_once();

	/* It has protected a part, or mapped something over it. */
	CHECK(mprotect(page, 4096, PROT_READ) == 0 && heap.promote(p) == -1 && mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
	p[0]++;
	CHECK(mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page && heap.promote(p) == -1);
	free(p);
	CHECK(stats().live_blocks == 0);
}

/* A program that forks for ever, beside hosts that look, uses up nothing. */
void test_promote_often(void) {
	char *small = opaque(malloc(100 * KIB)), *large = opaque(malloc(2 * MIB));
	fill(small, 100 * KIB, 1);
	fill(large, 2 * MIB, 2);
	struct ndheap_block forgotten, last[2], next;
	CHECK(heap.pin(large, &forgotten) == 0, "a view that is never refreshed");
	CHECK(heap.pin(small, &last[0]) == 0 && heap.pin(large, &last[1]) == 0);
	int files = 0;
	for (int i = 0; i < 500; i++) {
		fork_once();
		char *blocks[] = {small, large};
		for (int k = 0; k < 2; k++) {
			CHECK(heap.promote(blocks[k]) == 0 && heap.pin(blocks[k], &next) == 0, "round %d", i);
			CHECK(next.flags == NDHEAP_SHAREABLE && heap.unpin(blocks[k], last[k].segment) == 0);
			last[k] = next;
		}
		if (i == 9)
			files = open_files();
	}
	CHECK(open_files() == files, "descriptors leak: %d, %d", files, open_files());
	CHECK(filled(small, 100 * KIB, 1) && filled(large, 2 * MIB, 2));
	char *seen = map_outside(&forgotten, PROT_READ);
	CHECK(filled(seen, 2 * MIB, 2));
	munmap(seen - forgotten.offset, forgotten.segment_size);
	free(small);
	free(large);
	CHECK(heap.unpin(opaque(small), last[0].segment) == 0 && heap.unpin(opaque(large), forgotten.segment) == 0);
	CHECK(stats().pinned_blocks == 1 && heap.unpin(opaque(large), last[1].segment) == 0);
	heap.trim(0);
	CHECK(stats().pinned_blocks == 0 && stats().descriptors == 0, "%u descriptors", stats().descriptors);
}
