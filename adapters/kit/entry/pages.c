// Gives back pages of this library that nobody needs for a while: they would count as the program's. Nothing was written there, so who reads
// them after all gets them from the file.
#define _GNU_SOURCE
#include "lifecycle.h"
#include "process.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct range {
	uintptr_t from, to;
};

// What is only read of this library: its code, its constants, and what the loader reads.
static struct {
	struct range parts[8];
	int count;
	struct range relocations;
} only_read;

static bool holds(const struct dl_phdr_info *library, uintptr_t address) {
	for (int i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &library->dlpi_phdr[i];
		if (part->p_type == PT_LOAD && address - (library->dlpi_addr + part->p_vaddr) < part->p_memsz) return true;
	}
	return false;
}

// The whole pages of an area.
static struct range pages(uintptr_t at, uintptr_t length) {
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	return (struct range){(at + page - 1) & -page, (at + length) & -page};
}

static void find_relocations(const struct dl_phdr_info *library, const ElfW(Dyn) *entry) {
	uintptr_t table = 0, length = 0;
	for (; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_RELA) table = entry->d_un.d_ptr;
		if (entry->d_tag == DT_RELASZ) length = entry->d_un.d_val;
		if (entry->d_tag == DT_TEXTREL) only_read.count = 0; // the loader has written to the code
	}
	if (table < library->dlpi_addr) table += library->dlpi_addr; // some C libraries make it an address
	struct range r = pages(table, length);
	if (r.from < r.to && holds(library, r.from) && holds(library, r.to - 1)) only_read.relocations = r;
}

static int find(struct dl_phdr_info *library, size_t size, void *self) {
	(void)size;
	const ElfW(Dyn) *dynamic = NULL;
	if (!holds(library, (uintptr_t)self)) return 0;
	for (int i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &library->dlpi_phdr[i];
		uintptr_t at = library->dlpi_addr + part->p_vaddr;
		if (part->p_type == PT_DYNAMIC) dynamic = (const ElfW(Dyn) *)at;
		if (part->p_type == PT_LOAD && !(part->p_flags & PF_W) && only_read.count < 8)
			only_read.parts[only_read.count++] = pages(at, part->p_memsz);
	}
	if (dynamic) find_relocations(library, dynamic);
	return 1;
}

// Looks while the library is being loaded: later, the loader's lock may be another thread's, or that of one which is not there after a fork.
__attribute__((constructor(101))) static void find_pages(void) {
	static const char self;
	dl_iterate_phdr(find, (void *)&self);
}

static void forget(const struct range *r) { madvise((void *)r->from, r->to - r->from, MADV_DONTNEED); }

// The table of relocations is a tenth of the plugin. The loader has read all of it, and nobody reads it again.
void nd_forget_relocations(void) {
	const struct range *r = &only_read.relocations;
	// Or a kernel that maps files in huge pages would map the table again, together with what lies beside it.
	madvise((void *)r->from, r->to - r->from, MADV_NOHUGEPAGE);
	forget(r);
}

static void *forget_all(void *unused) {
	const struct timespec for_go = {.tv_nsec = 50000000}; // to fall asleep. What it needs before that it would get again
	nanosleep(&for_go, NULL);
	for (int i = 0; i < only_read.count; i++) forget(&only_read.parts[i]);
	return unused;
}

void nd_rest(void) { nd_run_thread(forget_all); }
