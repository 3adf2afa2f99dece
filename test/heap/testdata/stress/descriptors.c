/* Descriptors: the program must not notice the heap's. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "stress.h"

/* Programs that use select: however many blocks there are, the numbers below 1024 are the program's. */
void test_select(void) {
	enum { BLOCKS = 10000 };
	static char *p[BLOCKS];
	struct rlimit files;
	CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
	unsigned long many = files.rlim_max < 8192 ? files.rlim_max : 8192;
	limit(RLIMIT_NOFILE, many);
	for (int round = 0; round < 2; round++) {
		if (round == 1)
			limit(RLIMIT_NOFILE, FD_SETSIZE); /* the usual one */
		for (int i = 0; i < BLOCKS; i++) {
			p[i] = opaque(malloc(MIB));
			CHECK(p[i]);
			p[i][0] = 1;
		}
		CHECK(shared(p[0]) && shared(p[BLOCKS - 1]));
		int opened = 0, last, mine[FD_SETSIZE];
		while ((last = dup(2)) >= 0 && last < FD_SETSIZE)
			mine[opened++] = last;
		close(last);
		CHECK(opened >= (round == 1 || many < 2 * FD_SETSIZE ? 880 : 1010), "%d descriptors of 1024", opened);
		fd_set set;
		FD_ZERO(&set);
		FD_SET(mine[opened - 1], &set);
		struct timeval none = {0};
		CHECK(select(mine[opened - 1] + 1, NULL, NULL, &set, &none) >= 0);
		while (opened > 0)
			close(mine[--opened]);
		for (int i = 0; i < BLOCKS; i++)
			free(p[i]);
		heap.trim(0);
	}
}

static void close_each(void) {
	for (int fd = 3; fd < 8000; fd++)
		close(fd);
}

static void close_each_range(void) {
	CHECK(close_range(3, 20, 0) == 0 && close_range(21, 1030, 0) == 0 && close_range(1031, 1031, 0) == 0);
	CHECK(close_range(1032, ~0u, 0) == 0);
	errno = 0;
	CHECK(close_range(4, 3, 0) == -1 && errno == EINVAL);
}

static void close_from(void) { closefrom(3); }

/* A program that closes all descriptors closes its own, and sees nothing of the heap's. */
void test_closing(void) {
	enum { BLOCKS = 10, MINE = 5 };
	void (*const ways[])(void) = {close_each, close_each_range, close_from};
	for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
		char *p[BLOCKS], *small = opaque(malloc(100 * KIB));
		int fds[BLOCKS], mine[MINE], between = -1;
		for (int i = 0; i < BLOCKS; i++) {
			struct ndheap_block b;
			p[i] = opaque(malloc(2 * MIB));
			CHECK(heap.pin(p[i], &b) == 0 && unpin(p[i]) == 0 && b.fd >= FD_SETSIZE, "descriptor %d", b.fd);
			CHECK(fcntl(b.fd, F_GETFD) & FD_CLOEXEC);
			fds[i] = b.fd;
			if (i == BLOCKS / 2) /* one of the program's among the heap's */
				between = fcntl(2, F_DUPFD, FD_SETSIZE);
			else if (i < MINE)
				mine[i] = dup(2);
		}
		errno = 0;
		CHECK(close(fds[3]) == -1 && errno == EBADF, "as for any number that the program has not opened");
		ways[way]();
		for (int i = 0; i < MINE; i++)
			CHECK(fcntl(mine[i], F_GETFD) == -1 && errno == EBADF, "way %zu", way);
		CHECK(between > FD_SETSIZE && fcntl(between, F_GETFD) == -1, "way %zu", way);
		for (int i = 0; i < BLOCKS; i++) {
			CHECK(shared(p[i]), "way %zu", way);
			free(p[i]);
		}
		CHECK(shared(small));
		free(small);
	}
}

/* A program that puts files of its own in the place of the heap's: theirs must stay intact. */
void test_replaced(void) {
	char *p = opaque(malloc(2 * MIB)), *small = opaque(malloc(100 * KIB));
	struct ndheap_block b, s;
	CHECK(heap.pin(p, &b) == 0 && unpin(p) == 0 && heap.pin(small, &s) == 0 && unpin(small) == 0);
	char path[] = "/tmp/ndheap-stress-XXXXXX";
	int file = mkstemp(path);
	unlink(path);
	CHECK(file >= 0 && write(file, "precious", 8) == 8);
	CHECK(dup2(file, b.fd) == b.fd, "as if the number were free");
	CHECK(syscall(SYS_close, s.fd) == 0 && fcntl(file, F_DUPFD, s.fd) == s.fd);
	CHECK(heap.pin(p, &b) == 0 && b.flags == 0 && b.fd == -1, "a foreign descriptor was handed out");
	CHECK(unpin(p) == -1);
	CHECK(heap.pin(small, &b) == 0 && b.flags == 0 && unpin(small) == -1);
	memset(p, 1, 2 * MIB);
	memset(small, 1, 100 * KIB);
	free(p);
	free(small);
	heap.trim(0);
	struct stat status;
	char text[8];
	CHECK(fstat(s.fd, &status) == 0 && status.st_size == 8 && pread(s.fd, text, 8, 0) == 8);
	CHECK(memcmp(text, "precious", 8) == 0);
	CHECK(close(s.fd) == 0 && close(s.fd) == -1 && errno == EBADF, "it is the program's to close");
}

static _Atomic bool stop;

/* Goes by what Unix promises: a number that was closed is free, and the lowest that is free is the next. */
static void *take_lowest(void *unused) {
	while (!stop) {
		int saved = fcntl(0, F_DUPFD, 200);
		close(0);
		int got = open("/dev/null", O_RDONLY);
		CHECK(got == 0, "%d was the lowest", got);
		CHECK(dup2(saved, 0) == 0 && close(saved) == 0);
	}
	return unused;
}

/* Promotion takes none of the program's numbers, neither low ones nor for a moment. */
void test_promote_lowest(void) {
	pthread_t thread;
	char *p[50];
	for (uint32_t i = 0; i < 50; i++)
		fill(p[i] = opaque(malloc(MIB)), MIB, i);
	fork_once();
	int files = open_files();
	CHECK(pthread_create(&thread, NULL, take_lowest, NULL) == 0);
	for (uint32_t i = 0; i < 50; i++)
		CHECK(heap.promote(p[i]) == 0 && filled(p[i], MIB, i));
	stop = true;
	pthread_join(thread, NULL);
	CHECK(open_files() == files && stats().descriptors >= 50, "%d descriptors, %d before", open_files(), files);
	for (uint32_t i = 0; i < 50; i++) {
		CHECK(shared(p[i]));
		free(p[i]);
	}
	heap.trim(0);
	CHECK(stats().descriptors == 0 && open_files() == files);
}

/* Blocks of 1 to 4 MiB share files. A file is closed with its last block, and goes with it, also if a fork has frozen it. */
void test_large_pools(void) {
	enum { COUNT = 24 };
	char *p[COUNT];
	size_t size[COUNT];
	for (int forked = 0; forked < 2; forked++) {
		for (int i = 0; i < COUNT; i++) {
			size[i] = MIB + (size_t)i * 100 * KIB;
			fill(p[i] = opaque(malloc(size[i])), size[i], (uint32_t)i);
		}
		uint32_t files = stats().descriptors;
		CHECK(files >= 4 && files <= COUNT / 2, "%u files", files);
		if (forked)
			fork_once();
		for (int i = 1; i < COUNT; i++) {
			CHECK(filled(p[i], size[i], (uint32_t)i) && shared(p[i]) != forked);
			free(p[i]);
		}
		heap.trim(0);
		CHECK(filled(p[0], size[0], 0) && stats().descriptors == !forked, "%u files", stats().descriptors);
		free(p[0]);
		heap.trim(0);
		CHECK(stats().descriptors == 0 && stats().live_blocks == 0, "%u files", stats().descriptors);
	}
}

/* Mappings of files of the heap's. */
static int heap_mappings(void) {
	int count = 0;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	CHECK(maps);
	while (fgets(line, sizeof line, maps))
		count += strstr(line, "memfd:ndbridge-heap") != NULL;
	fclose(maps);
	return count;
}

/* Nothing of a file stays that a fork has frozen, whichever of its blocks were promoted before all of them were freed. */
void test_large_pools_promoted(void) {
	enum { COUNT = 24 };
	char *p[COUNT];
	for (int every = 1; every < 4; every++) {
		for (int i = 0; i < COUNT; i++) {
			size_t size = MIB + (size_t)(i % 4) * 750 * KIB;
			fill(p[i] = opaque(malloc(size)), size, (uint32_t)i);
		}
		fork_once();
		for (int i = 0; i < COUNT; i += every)
			CHECK(heap.promote(p[i]) == 0 && shared(p[i]));
		for (int i = 0; i < COUNT; i++)
			free(p[i]);
		heap.trim(0);
		CHECK(stats().live_blocks == 0 && heap_mappings() == 0, "%d mappings are left", heap_mappings());
	}
}
