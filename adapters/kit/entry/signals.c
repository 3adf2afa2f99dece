// Lets Go's threads keep all signals blocked that they are born with.
//
// The kernel gives a signal that is sent to the process to any thread that does not block it. A program that blocks
// a signal in its own threads, to wait for it, would lose the signal to a thread of the plugin, or end by it. So the
// bootstrap loads the plugin with all signals blocked, which Go's threads inherit. But Go unblocks some signals in
// every thread: those that the runtime's table of signals marks so. Most of them are faults; the others are for Go's
// profiler, for the ends of child processes, and for the C library musl. Go has no setting for this, so the marks of
// those others are erased from the table before Go reads it.
#define _GNU_SOURCE
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// An entry of runtime.sigtable, whose index is the number of the signal.
struct entry {
	int32_t flags;
	const char *name;
	int64_t length;
};

enum { NOTIFY = 1 << 0, PANIC = 1 << 3, SET_STACK = 1 << 6, UNBLOCK = 1 << 7, IGNORE = 1 << 8 };

// By which the table is known. Its name is none of the symbols that the library is linked with.
static const char first[] = "SIGNONE: no trap";

// Where this library lies.
struct library {
	uintptr_t begin, end;
	struct entry *table;
};

static bool is_table(const struct library *l, const struct entry *e) {
	if ((uintptr_t)(e + NSIG) > l->end || e->length != (int64_t)strlen(first)) return false;
	uintptr_t name = (uintptr_t)e->name;
	return name >= l->begin && name < l->end - sizeof first && memcmp(e->name, first, strlen(first)) == 0 &&
	       e[SIGSEGV].flags == (PANIC | UNBLOCK) && e[SIGPROF].flags == (NOTIFY | UNBLOCK) &&
	       e[SIGCHLD].flags == (NOTIFY | UNBLOCK | IGNORE);
}

static int find(struct dl_phdr_info *info, size_t size, void *found) {
	(void)size;
	struct library *l = found;
	l->begin = UINTPTR_MAX, l->end = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD) continue;
		uintptr_t begin = info->dlpi_addr + p->p_vaddr, end = begin + p->p_filesz;
		if (begin < l->begin) l->begin = begin;
		if (end > l->end) l->end = end;
	}
	if ((uintptr_t)first < l->begin || (uintptr_t)first >= l->end) return 0; // another library
	for (int i = 0; i < info->dlpi_phnum && !l->table; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_W)) continue;
		uintptr_t begin = info->dlpi_addr + p->p_vaddr, end = begin + p->p_filesz;
		struct library part = {.begin = l->begin, .end = end};
		for (uintptr_t at = (begin + 7) & ~(uintptr_t)7; at + sizeof(struct entry) <= end && !l->table; at += 8)
			if (is_table(&part, (struct entry *)at)) l->table = (struct entry *)at;
	}
	return 1;
}

// Runs before Go's own constructor, which starts it.
__attribute__((constructor(101))) static void erase_marks(void) {
	struct library l = {0};
	dl_iterate_phdr(find, &l);
	if (!l.table) return; // another version of Go; TestSignalsStayTheProgramsOwn then fails
	static const int unneeded[] = {SIGPROF, SIGCHLD, SIGSTKFLT, 34};
	for (size_t i = 0; i < sizeof unneeded / sizeof *unneeded; i++) l.table[unneeded[i]].flags &= ~UNBLOCK;
}
