// Keeps Go's threads from disturbing the program. All of this happens before Go starts, in the thread that loads the
// library: Go's threads inherit what that thread has, and the program's threads do not, since the bootstrap loads the
// library in a thread of its own.
//
// Signals. The kernel gives a signal that is sent to the process to any thread that does not block it. A program that
// blocks a signal in its own threads, to wait for it, would lose the signal to a thread of the plugin, or end by it.
// So Go's threads block all signals but faults. But Go unblocks some signals in every thread: those that the runtime's
// table of signals marks so. Most of them are faults; the others are for Go's profiler, for the ends of child
// processes, and for the C library musl. Go has no setting for this, so those marks are erased from the table.
//
// The end of Go. When Go cannot go on (a panic that nothing recovers, descriptors that the program has closed under
// it), it ends the process. The program must not end with the plugin. So the system calls by which Go does that are
// held up, and the guard decides what becomes of them.
#define _GNU_SOURCE
#include "process.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

// An entry of runtime.sigtable, whose index is the number of the signal.
struct entry {
	int32_t flags;
	const char *name;
	int64_t length;
};

enum { NOTIFY = 1 << 0, PANIC = 1 << 3, UNBLOCK = 1 << 7, IGNORE = 1 << 8 };

// By which the table is known. The linker does not keep its name where C could refer to it.
static const char first[] = "SIGNONE: no trap";

// Where this library lies.
struct library {
	uintptr_t begin, end;
	uintptr_t code, code_end;
	struct entry *table;
};

static bool is_table(const struct library *l, const struct entry *e) {
	uintptr_t name = (uintptr_t)e->name;
	return e->length == (int64_t)strlen(first) && name >= l->begin && name < l->end - sizeof first &&
	       memcmp(e->name, first, strlen(first)) == 0 && e[SIGSEGV].flags == (PANIC | UNBLOCK) &&
	       e[SIGPROF].flags == (NOTIFY | UNBLOCK) && e[SIGCHLD].flags == (NOTIFY | UNBLOCK | IGNORE);
}

static int find(struct dl_phdr_info *info, size_t size, void *found) {
	(void)size;
	struct library *l = found;
	*l = (struct library){.begin = UINTPTR_MAX};
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD) continue;
		uintptr_t begin = info->dlpi_addr + p->p_vaddr, end = begin + p->p_filesz;
		if (begin < l->begin) l->begin = begin;
		if (end > l->end) l->end = end;
		if (p->p_flags & PF_X) l->code = begin, l->code_end = end;
	}
	if ((uintptr_t)first < l->begin || (uintptr_t)first >= l->end) return 0; // another library
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_W)) continue;
		uintptr_t begin = info->dlpi_addr + p->p_vaddr, end = begin + p->p_filesz;
		for (uintptr_t at = (begin + 7) & ~(uintptr_t)7; at + NSIG * sizeof(struct entry) <= end && !l->table; at += 8)
			if (is_table(l, (struct entry *)at)) l->table = (struct entry *)at;
	}
	return 1;
}

static void block_signals(struct entry *table) {
	sigset_t all;
	sigfillset(&all);
	static const int faults[] = {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&all, faults[i]);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	if (!table) return; // another version of Go; TestSignalsStayTheProgramsOwn then fails
	static const int marked[] = {SIGPROF, SIGCHLD, SIGSTKFLT, 34};
	for (size_t i = 0; i < sizeof marked / sizeof *marked; i++) table[marked[i]].flags &= ~UNBLOCK;
}

#define FIELD(field) ((uint32_t)offsetof(struct seccomp_data, field))
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (field))
#define IF(test, value, then, otherwise) BPF_JUMP(BPF_JMP | (test) | BPF_K, (uint32_t)(value), (then), (otherwise))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, (what))

// Holds up exit_group, tgkill for any signal but that of Go's own business, and write to standard error, where Go says
// why it ends: each only where it is called from this library. What else the thread calls goes on as ever: the program's
// own code may run in Go's threads.
static void hold_up(uintptr_t code, uintptr_t end) {
	const uint32_t low = FIELD(instruction_pointer), high = low + 4; // both machines are little-endian
	struct sock_filter filter[] = {
		/* 0 */ LOAD(FIELD(arch)),
		/* 1 */ IF(BPF_JEQ, ARCHITECTURE, 0, 18),
		/* 2 */ LOAD(FIELD(nr)),
		/* 3 */ IF(BPF_JEQ, __NR_exit_group, 6, 0),
		/* 4 */ IF(BPF_JEQ, __NR_write, 3, 0),
		/* 5 */ IF(BPF_JEQ, __NR_tgkill, 0, 14),
		/* 6 */ LOAD(FIELD(args[2])),
		/* 7 */ IF(BPF_JEQ, SIGURG, 12, 2),
		/* 8 */ LOAD(FIELD(args[0])),
		/* 9 */ IF(BPF_JEQ, STDERR_FILENO, 0, 10),
		/* 10 */ LOAD(high),
		/* 11 */ IF(BPF_JGE, code >> 32, 0, 8),
		/* 12 */ IF(BPF_JGT, end >> 32, 7, 0),
		/* 13 */ IF(BPF_JGT, code >> 32, 2, 0), // beyond the 4 GiB in which the code begins
		/* 14 */ LOAD(low),
		/* 15 */ IF(BPF_JGE, code & UINT32_MAX, 0, 4),
		/* 16 */ LOAD(high),
		/* 17 */ IF(BPF_JEQ, end >> 32, 0, 3), // before those in which it ends
		/* 18 */ LOAD(low),
		/* 19 */ IF(BPF_JGE, end & UINT32_MAX, 0, 1),
		/* 20 */ RETURN(SECCOMP_RET_ALLOW),
		/* 21 */ RETURN(SECCOMP_RET_USER_NOTIF),
	};
	struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return;
	// Where this is not to be had (before Linux 5.0), the program ends with Go.
	nd_go_ends = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

int nd_go_ends = -1;

// Runs before Go's own constructor, which starts it.
__attribute__((constructor(101))) static void confine(void) {
	if (syscall(SYS_gettid) == getpid()) return; // not by the bootstrap: this thread is the program's
	struct library l = {0};
	dl_iterate_phdr(find, &l);
	block_signals(l.table);
	hold_up(l.code, l.code_end);
}
