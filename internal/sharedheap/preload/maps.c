/*
 * What the kernel says of the mappings of memory outside the heap. All but maps_find_torn runs on the keeper, whose table of
 * descriptors is its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap.h"

#ifndef MADV_COLD
#define MADV_COLD 20
#endif

static struct {
	int fd;
	char text[4096];
	size_t next, end;
	bool failed; /* to be read */
} maps;

static bool begin(const char *file) {
	maps.fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC);
	maps.next = maps.end = 0;
	maps.failed = false;
	return maps.fd >= 0;
}

/* The next line, its end cut off if it is long. */
static bool read_line(char *line, size_t size) {
	size_t used = 0;
	for (;;) {
		if (maps.next == maps.end) {
			ssize_t n = next.read(maps.fd, maps.text, sizeof maps.text);
			if (n <= 0)
				return maps.failed = n < 0, false;
			maps.next = 0;
			maps.end = (size_t)n;
		}
		char c = maps.text[maps.next++];
		if (c == '\n')
			break;
		if (used < size - 1)
			line[used++] = c;
	}
	line[used] = '\0';
	return true;
}

/* Whether the line of a mapping says that it is private memory of the program's, to be read and written. */
static bool ordinary_mapping(const char *rest) {
	if (strncmp(rest, " rw-p ", 6) != 0)
		return false;
	const char *path = rest + 6; /* after the offset, the device and the inode */
	for (int field = 0; field < 3; field++) {
		path += strcspn(path, " ");
		path += strspn(path, " ");
	}
	return !*path || strncmp(path, "[anon:", 6) == 0 || strncmp(path, "/memfd:ndbridge-heap", 20) == 0;
}

/* Whether the program has locked a mapping, of which a page is given, or has said on which NUMA nodes its pages belong. */
static bool special(uintptr_t at) {
	enum { DEFAULT = 0, OF_ADDRESS = 2 };
	int policy = DEFAULT;
	/* The kernel refuses this of locked pages, and of huge ones. Else the page is merely the first to go if memory is scarce. */
	return next.madvise((void *)at, (size_t)sysconf(_SC_PAGESIZE), MADV_COLD) != 0 ||
	       (syscall(SYS_get_mempolicy, &policy, NULL, 0, at, OF_ADDRESS) == 0 && policy != DEFAULT);
}

/*
 * Skips what smaps says of a mapping down to its last line, the flags: whether the program has given no advice there that a file would not
 * keep. A library that was loaded late has not heard of it.
 */
static bool unadvised(void) {
	static const char *const advice[] = {" dc", " dd", " wf", " mg"}; /* not for children, not in core dumps, ... */
	char line[256];
	do {
		if (!read_line(line, sizeof line))
			return false;
	} while (strncmp(line, "VmFlags:", 8) != 0);
	for (size_t i = 0; i < sizeof advice / sizeof *advice; i++)
		if (strstr(line, advice[i]))
			return false;
	return true;
}

bool maps_ordinary(uintptr_t from, uintptr_t to) {
	char line[256];
	if (!begin(heap_late ? "/proc/self/smaps" : "/proc/self/maps"))
		return false;
	while (from < to && read_line(line, sizeof line)) {
		char *rest;
		uintptr_t start = strtoull(line, &rest, 16), end = *rest == '-' ? strtoull(rest + 1, &rest, 16) : 0;
		if (end <= from)
			continue;
		if (start > from || !ordinary_mapping(rest) || special(from) || (heap_late && !unadvised()))
			break;
		from = end;
	}
	syscall(SYS_close, maps.fd);
	return from >= to;
}

/* What the line of a mapping says that shares a file of the heap's. False: it does not. */
static bool heap_mapping(const char *line, uintptr_t *from, size_t *size, uint64_t *offset, uint64_t *inode) {
	const char *rights = strchr(line, ' ');
	if (!rights || rights[4] != 's' || !strstr(rights, "/memfd:ndbridge-heap"))
		return false;
	char *rest;
	*from = strtoull(line, &rest, 16);
	*size = strtoull(rest + 1, &rest, 16) - *from;
	*offset = strtoull(rest + 6, &rest, 16); /* after the rights */
	*inode = strtoull(rest + 1 + strcspn(rest + 1, " "), NULL, 10);
	return true;
}

bool maps_count(void) {
	char line[256];
	uintptr_t from;
	size_t size;
	uint64_t offset, inode;
	if (!begin("/proc/self/maps"))
		return false;
	for (uint32_t i = 1; i < segment_count; i++)
		segments[i].seen = 0;
	while (read_line(line, sizeof line)) {
		if (!heap_mapping(line, &from, &size, &offset, &inode))
			continue;
		for (uint32_t i = 1; i < segment_count; i++)
			if (segments[i].inode == inode && from - segments[i].base == offset)
				segments[i].seen += size;
	}
	syscall(SYS_close, maps.fd);
	return !maps.failed;
}

static bool count(const void *unused) { return (void)unused, maps_count(); }

void maps_find_torn(void) {
	bool some = false;
	for (uint32_t i = 1; i < segment_count; i++) {
		const struct segment *s = &segments[i];
		some |= s->state == SEGMENT_SHARED && s->live && !range_owns((void *)s->base);
	}
	if (some && keeper_run(count, NULL))
		return;
	for (uint32_t i = 1; i < segment_count; i++)
		segments[i].seen = segments[i].size;
}

void touch(uintptr_t at) {
	_Atomic uint8_t *byte = (_Atomic uint8_t *)at;
	uint8_t value = atomic_load_explicit(byte, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(byte, &value, value, memory_order_relaxed, memory_order_relaxed))
		; /* compilers may leave out any operation that changes nothing, but for this one */
}

bool map_privately(uintptr_t base, uint64_t size, int fd, uint64_t offset) {
	int how = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
	if (next.mmap((void *)base, size, PROT_READ | PROT_WRITE, how, fd, (off_t)offset) == MAP_FAILED)
		return false;
	touch(base); /* else core dumps would leave it out, as they do with private mappings of files that nobody has written to */
	return true;
}

bool maps_separate(const void *segment) {
	const struct segment *s = segment;
	char line[256];
	uintptr_t from;
	size_t size;
	uint64_t offset, inode;
	if (!begin("/proc/self/maps"))
		return false;
	bool all = true;
	while (read_line(line, sizeof line)) {
		if (!heap_mapping(line, &from, &size, &offset, &inode) || inode != s->inode || from - s->base != offset)
			continue;
		all &= map_privately(from, size, s->fd, offset);
		if (!offset)
			outside_part(from, MADV_NORMAL);
	}
	syscall(SYS_close, maps.fd);
	return all;
}

/* Whether there is something at an address: the kernel reads a mask before it finds that it does not know what to do with it. */
static bool readable(uintptr_t at) { return syscall(SYS_rt_sigprocmask, -1, at & ~(uintptr_t)7, NULL, sizeof(uint64_t)) == 0 || errno != EFAULT; }

bool maps_read(void *to, uintptr_t from, size_t size) {
	struct iovec here = {to, size}, there = {(void *)from, size};
	ssize_t n = syscall(SYS_process_vm_readv, getpid(), &here, 1, &there, 1, 0);
	if (n >= 0 || errno == EFAULT)
		return n == (ssize_t)size;
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE); /* the system call is forbidden here */
	for (uintptr_t at = from; at < from + size; at = (at | (page - 1)) + 1)
		if (!readable(at))
			return false;
	memcpy(to, (const void *)from, size);
	return true;
}
