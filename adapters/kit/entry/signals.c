// Lets Go's threads keep all signals blocked that they are born with.
//
// The kernel gives a signal that is sent to the process to any thread that does not block it. A program that blocks
// a signal in its own threads, to wait for it, would lose the signal to a thread of the plugin, or end by it. So the
// bootstrap loads the plugin with all signals blocked, which Go's threads inherit. But Go unblocks some signals in
// every thread: those that the runtime's table of signals marks so. Most of them are faults; the others are for Go's
// profiler, for the ends of child processes, and for the C library musl. Go has no setting for this, so the marks of
// those others are erased from the table before Go reads it.
//
// And Go unblocks SIGURG, by which it interrupts its threads, unless GODEBUG has asyncpreemptoff=1. Where the program has a handler
// for that signal, it would be the program's that is called, before Python 3.10 on the stack of a goroutine, which is too small. The
// environment is the program's, so the variable of the runtime is set.
//
// Of faults in C code Go passes on those for which there is a handler. For others, on a thread of its own such as one that runs a
// function for a host, it prints the stacks of all goroutines, and then ends the process by SIGQUIT, for which the program has
// the handler. So there is a handler that does what would happen without Go. Go passes on none that somebody has sent, as Python's
// faulthandler does in the end: they never come to Go.
#define _GNU_SOURCE
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "process.h"

// An entry of runtime.sigtable, whose index is the number of the signal.
struct entry {
	int32_t flags;
	const char *name;
	int64_t length;
};

enum { NOTIFY = 1 << 0, PANIC = 1 << 3, SET_STACK = 1 << 6, UNBLOCK = 1 << 7, IGNORE = 1 << 8 };

// By which the table is known. Its name is none of the symbols that the library is linked with.
static const char first[] = "SIGNONE: no trap";

// An entry of runtime.dbgvars: what GODEBUG may set.
struct variable {
	const char *name;
	int64_t length;
	int32_t *value;
};

static const char preemption[] = "asyncpreemptoff";

// Where this library lies: as a file, and with its memory of zeros.
struct library {
	uintptr_t begin, end, last;
	struct entry *table;
	int32_t *preemption;
};

// Whether a Go string is this text. What is no string may lead anywhere.
static bool is_text(const struct library *l, const char *s, int64_t length, const char *text) {
	uintptr_t at = (uintptr_t)s;
	return length == (int64_t)strlen(text) && at >= l->begin && at < l->end - strlen(text) && memcmp(s, text, strlen(text)) == 0;
}

static bool is_table(const struct library *l, const struct entry *e, uintptr_t end) {
	return (uintptr_t)(e + NSIG) <= end && is_text(l, e->name, e->length, first) && e[SIGSEGV].flags == (PANIC | UNBLOCK) &&
	       e[SIGPROF].flags == (NOTIFY | UNBLOCK) && e[SIGCHLD].flags == (NOTIFY | UNBLOCK | IGNORE);
}

static bool is_preemption(const struct library *l, const struct variable *v, uintptr_t end) {
	uintptr_t value = (uintptr_t)v->value;
	return (uintptr_t)(v + 1) <= end && is_text(l, v->name, v->length, preemption) && value >= l->begin &&
	       value <= l->last - sizeof *v->value;
}

static int find(struct dl_phdr_info *info, size_t size, void *found) {
	(void)size;
	struct library *l = found;
	l->begin = UINTPTR_MAX, l->end = l->last = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD) continue;
		uintptr_t begin = info->dlpi_addr + p->p_vaddr, end = begin + p->p_filesz;
		if (begin < l->begin) l->begin = begin;
		if (end > l->end) l->end = end;
		if (begin + p->p_memsz > l->last) l->last = begin + p->p_memsz;
	}
	if ((uintptr_t)first < l->begin || (uintptr_t)first >= l->end) return 0; // another library
	uintptr_t constant = 0; // ends what only the loader writes to, in which neither of the two lies: most of what is written
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) constant = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_W)) continue;
		uintptr_t begin = info->dlpi_addr + p->p_vaddr, end = begin + p->p_filesz;
		if (begin < constant && constant < end) begin = constant;
		for (uintptr_t at = (begin + 7) & ~(uintptr_t)7; at + sizeof(struct entry) <= end; at += 8) {
			if (!l->table && is_table(l, (struct entry *)at, end)) l->table = (struct entry *)at;
			if (!l->preemption && is_preemption(l, (struct variable *)at, end)) l->preemption = ((struct variable *)at)->value;
			if (l->table && l->preemption) return 1;
		}
	}
	return 1;
}

// The faults that Go has handlers for in a library, and the handlers: the program's, and Go's in front of them.
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE};
enum { FAULTS = sizeof faults / sizeof *faults };
static struct sigaction programs[FAULTS], gos[FAULTS];

// What there is when a signal has no handler.
static void usual(int sig, siginfo_t *info, void *context) {
	(void)context;
	signal(sig, SIG_DFL);
	if (info->si_code > 0) return; // the instruction faults again
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, sig);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	raise(sig);
}

static void before_go_handles(void) {
	for (int i = 0; i < FAULTS; i++) {
		sigaction(faults[i], NULL, &programs[i]);
		if (programs[i].sa_handler != SIG_DFL) continue;
		programs[i] = (struct sigaction){.sa_sigaction = usual, .sa_flags = SA_SIGINFO | SA_ONSTACK};
		sigaction(faults[i], &programs[i], NULL);
	}
}

// Gives faults to Go, and what was sent to the program.
static void sort(int sig, siginfo_t *info, void *context) {
	for (int i = 0; i < FAULTS; i++) {
		if (faults[i] != sig) continue;
		const struct sigaction *to = info->si_code > 0 ? &gos[i] : &programs[i];
		if (to->sa_handler != SIG_IGN) to->sa_sigaction(sig, info, context);
	}
}

void nd_sort_faults(void) {
	for (int i = 0; i < FAULTS; i++) {
		sigaction(faults[i], NULL, &gos[i]);
		if (gos[i].sa_handler == SIG_DFL || gos[i].sa_handler == SIG_IGN || gos[i].sa_sigaction == sort) continue;
		struct sigaction action = gos[i];
		action.sa_sigaction = sort;
		action.sa_flags |= SA_SIGINFO;
		sigaction(faults[i], &action, NULL);
	}
}

// Runs before Go's own constructor, which starts it.
__attribute__((constructor(101))) static void before_go(void) {
	before_go_handles();
	struct library l = {0};
	dl_iterate_phdr(find, &l);
	if (!l.table || !l.preemption) return; // another version of Go; TestSignalsStayTheProgramsOwn then fails
	*l.preemption = 1;
	static const int unneeded[] = {SIGPROF, SIGCHLD, SIGSTKFLT, 34};
	for (size_t i = 0; i < sizeof unneeded / sizeof *unneeded; i++) l.table[unneeded[i]].flags &= ~UNBLOCK;
}
