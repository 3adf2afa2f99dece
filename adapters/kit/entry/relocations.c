// The table of relocations is a tenth of the plugin. The loader has read all of it, and nobody reads it again, but its pages
// would count as the program's.
#define _GNU_SOURCE
#include "process.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

static bool holds(const struct dl_phdr_info *library, uintptr_t address) {
	for (int i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &library->dlpi_phdr[i];
		if (part->p_type == PT_LOAD && address - (library->dlpi_addr + part->p_vaddr) < part->p_memsz) return true;
	}
	return false;
}

static const ElfW(Dyn) *dynamic(const struct dl_phdr_info *library) {
	for (int i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &library->dlpi_phdr[i];
		if (part->p_type == PT_DYNAMIC) return (const ElfW(Dyn) *)(library->dlpi_addr + part->p_vaddr);
	}
	return NULL;
}

static int forget(struct dl_phdr_info *library, size_t size, void *self) {
	(void)size;
	if (!holds(library, (uintptr_t)self)) return 0;
	uintptr_t table = 0, length = 0;
	for (const ElfW(Dyn) *entry = dynamic(library); entry && entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_RELA) table = entry->d_un.d_ptr;
		if (entry->d_tag == DT_RELASZ) length = entry->d_un.d_val;
	}
	if (table < library->dlpi_addr) table += library->dlpi_addr; // some C libraries make it an address
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (table + page - 1) & -page, to = (table + length) & -page;
	if (from >= to || !holds(library, from) || !holds(library, to - 1)) return 1;
	// Or a kernel that maps files in huge pages would map the table again, together with what lies beside it.
	madvise((void *)from, to - from, MADV_NOHUGEPAGE);
	madvise((void *)from, to - from, MADV_DONTNEED); // nothing was written there: who reads it after all gets it from the file
	return 1;
}

void nd_forget_relocations(void) {
	static const char self;
	dl_iterate_phdr(forget, (void *)&self);
}
