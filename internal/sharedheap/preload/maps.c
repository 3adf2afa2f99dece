/*
 * What the kernel says of mappings. All but maps_find_torn and maps_empty runs on the keeper, whose table of descriptors is its own; what
 * maps_separate does to segments whose files are the program's runs on the thread that forks.
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

struct maps {
	int fd;
	char text[2048];
	size_t next, end;
	bool failed; /* to be read */
};

static bool begin(struct maps *maps, const char *file) {
	maps->fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC);
	maps->next = maps->end = 0;
	maps->failed = false;
	return maps->fd >= 0;
}

/* The next line, its end cut off if it is long. */
static bool read_line(struct maps *maps, char *line, size_t size) {
	size_t used = 0;
	for (;;) {
		if (maps->next == maps->end) {
			ssize_t n = next.read(maps->fd, maps->text, sizeof maps->text);
			if (n <= 0)
				return maps->failed = n < 0, false;
			maps->next = 0;
			maps->end = (size_t)n;
		}
		char c = maps->text[maps->next++];
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
static bool unadvised(struct maps *maps) {
	static const char *const advice[] = {" dc", " dd", " wf", " mg"}; /* not for children, not in core dumps, ... */
	char line[256];
	do {
		if (!read_line(maps, line, sizeof line))
			return false;
	} while (strncmp(line, "VmFlags:", 8) != 0);
	for (size_t i = 0; i < sizeof advice / sizeof *advice; i++)
		if (strstr(line, advice[i]))
			return false;
	return true;
}

bool maps_ordinary(uintptr_t from, uintptr_t to) {
	struct maps maps;
	char line[256];
	if (!begin(&maps, heap_late ? "/proc/self/smaps" : "/proc/self/maps"))
		return false;
	while (from < to && read_line(&maps, line, sizeof line)) {
		char *rest;
		uintptr_t start = strtoull(line, &rest, 16), end = *rest == '-' ? strtoull(rest + 1, &rest, 16) : 0;
		if (end <= from)
			continue;
		if (start > from || !ordinary_mapping(rest) || special(from) || (heap_late && !unadvised(&maps)))
			break;
		from = end;
	}
	syscall(SYS_close, maps.fd);
	return from >= to;
}

/* What a line says of a mapping. */
struct mapping {
	uintptr_t from;
	size_t size;
	int rights;
	uint64_t offset, inode;
	bool shared;
};

/* What the line of a mapping says of a file of the heap's. False: it is none. */
static bool heap_mapping(const char *line, struct mapping *m) {
	const char *rights = strchr(line, ' ');
	if (!rights || !strstr(rights, "/memfd:ndbridge-heap"))
		return false;
	char *rest;
	m->shared = rights[4] == 's';
	m->from = strtoull(line, &rest, 16);
	m->size = strtoull(rest + 1, &rest, 16) - m->from;
	m->rights = (rights[1] == 'r') * PROT_READ | (rights[2] == 'w') * PROT_WRITE | (rights[3] == 'x') * PROT_EXEC;
	m->offset = strtoull(rest + 6, &rest, 16); /* after the rights */
	m->inode = strtoull(rest + 1 + strcspn(rest + 1, " "), NULL, 10);
	return true;
}

/* Calls visit with each mapping of a file of the heap's, in order. It reports whether all of them could be read, and visit has said true of each. */
static bool each_heap_mapping(bool (*visit)(const struct mapping *, const void *), const void *argument) {
	struct maps maps;
	char line[256];
	struct mapping m;
	if (!begin(&maps, "/proc/self/maps"))
		return false;
	bool all = true;
	while (read_line(&maps, line, sizeof line))
		all &= !heap_mapping(line, &m) || visit(&m, argument);
	syscall(SYS_close, maps.fd);
	return all && !maps.failed;
}

/* Whether a mapping shares the part of a segment's file that belongs at its address. */
static bool shares(const struct mapping *m, const struct segment *s) {
	return m->shared && m->inode == s->inode && m->from - s->base == m->offset;
}

static bool count_mapping(const struct mapping *m, const void *unused) {
	for (uint32_t i = 1; i < segment_count; i++)
		if (shares(m, &segments[i]))
			segments[i].seen += m->size;
	return (void)unused, true;
}

bool maps_count(void) {
	for (uint32_t i = 1; i < segment_count; i++)
		segments[i].seen = 0;
	return each_heap_mapping(count_mapping, NULL);
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
	uint8_t value = 0; /* a guess: to read first would be a page fault more */
	while (!atomic_compare_exchange_weak_explicit(byte, &value, value, memory_order_relaxed, memory_order_relaxed))
		; /* compilers may leave out any operation that changes nothing, but for this one */
}

/*
 * Maps a file privately somewhere, so that core dumps will contain it. They leave out a private mapping of a file as long as the kernel does not
 * count on pages of its own there. It does from the first page on that is written to; also if that page lies beyond the
 * end of the file, where there is none to be copied, which costs least.
 */
static char *map_dumped(uint64_t size, int rights, int fd, uint64_t offset) {
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int all = PROT_READ | PROT_WRITE;
	char *p = next.mmap(NULL, size + page, all, MAP_PRIVATE | MAP_NORESERVE, fd, (off_t)offset);
	if (p == MAP_FAILED)
		return NULL;
	bool counts = next.madvise(p + size, page, MADV_POPULATE_WRITE) == 0 || errno == EFAULT; /* else Linux is older than 5.14 */
	if (counts && (rights == all || next.mprotect(p, size, rights) == 0))
		return p;
	next.munmap(p, size + page);
	return NULL;
}

bool map_privately(uintptr_t base, uint64_t size, int rights, int fd, uint64_t offset) {
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = map_dumped(size, rights, fd, offset);
	bool moved = p && next.mremap(p, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)base) != MAP_FAILED;
	if (moved)
		next.munmap(p + size, page);
	else if (p)
		next.munmap(p, size + page);
	if (moved)
		return true;
	int how = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
	if (next.mmap((void *)base, size, rights, how, fd, (off_t)offset) == MAP_FAILED)
		return false;
	if (rights & PROT_WRITE)
		touch(base + size - page); /* most blocks have not used their last page */
	return true;
}

void maps_copy(uintptr_t from, uintptr_t to) {
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	if (next.madvise((void *)from, to - from, MADV_POPULATE_WRITE) == 0)
		return;
	for (uintptr_t at = from; at < to; at += page)
		touch(at);
}

/* Maps a piece of a segment privately, with the rights that the program has left it. */
static bool separate(const struct mapping *m, const void *segment) {
	const struct segment *s = segment;
	if (!shares(m, s))
		return true;
	/* What somebody else may write to is copied at once, and only what can be written to can be copied. */
	bool copies = s->granted && !(m->rights & PROT_WRITE);
	bool done = map_privately(m->from, m->size, copies ? PROT_READ | PROT_WRITE : m->rights, s->fd, m->offset);
	if (done && s->granted)
		maps_copy(m->from, m->from + m->size);
	done = done && (!copies || next.mprotect((void *)m->from, m->size, m->rights) == 0);
	if (!m->offset && !range_owns((void *)s->base))
		outside_part(m->from, MADV_NORMAL);
	return done;
}

bool maps_separate(const void *segment) { return each_heap_mapping(separate, segment); }

static bool empty(const struct mapping *m, const void *span) {
	const struct span *of = span;
	uintptr_t from = m->from > of->from ? m->from : of->from, to = m->from + m->size < of->to ? m->from + m->size : of->to;
	int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
	return from >= to || next.mmap((void *)from, to - from, m->rights, how, -1, 0) != MAP_FAILED;
}

bool maps_known(void) {
	struct maps maps;
	if (!begin(&maps, "/proc/self/maps"))
		return false;
	syscall(SYS_close, maps.fd);
	return true;
}

bool maps_empty(uintptr_t from, uintptr_t to) {
	struct span span = {from, to};
	return each_heap_mapping(empty, &span);
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
