/*
 * A program that began without the library, and loads it late.
 *
 * What LD_PRELOAD does at the start is done here when the first chunk is to be promoted: each library of the program keeps the
 * addresses of the functions that it calls in slots, which the loader has filled, and in those of the libc's malloc, of what changes what is
 * mapped, and of what fills memory, ours take their place. So whoever frees, resizes or maps over what is being promoted waits, as
 * ever. But all memory stays the libc's: no library need know of the heap to free it.
 *
 * Not covered are pointers to the libc's functions that the program has kept elsewhere, as dlsym gives them, slots that lead to a
 * profiler's functions, and libraries that are loaded after the last promotion, until the next one. They free a chunk around us, which
 * outside.c bears, unless it happens in the very moment in which a piece of it is mapped. So who asks for a promotion sees to it that an
 * object keeps the memory, whose library has slots.
 *
 * Sources: System V ABI, AMD64 supplement, "Relocation"; ELF for the Arm 64-bit Architecture, "Relocation"; glibc, dl_iterate_phdr(3).
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heap.h"

#if defined(__x86_64__)
enum { CALLED = R_X86_64_JUMP_SLOT, KEPT = R_X86_64_GLOB_DAT, POINTER = R_X86_64_64 };
#else
enum { CALLED = R_AARCH64_JUMP_SLOT, KEPT = R_AARCH64_GLOB_DAT, POINTER = R_AARCH64_ABS64 };
#endif

static struct function {
	const char *name;
	uintptr_t ours, libcs; /* libcs: 0 if it has none */
} functions[] = {
	{.name = "malloc"}, {.name = "calloc"}, {.name = "realloc"}, {.name = "reallocarray"}, {.name = "posix_memalign"},
	{.name = "aligned_alloc"}, {.name = "memalign"}, {.name = "valloc"}, {.name = "pvalloc"}, {.name = "free"}, {.name = "cfree"},
	{.name = "free_sized"}, {.name = "free_aligned_sized"}, /* the malloc family */
	{.name = "mmap"}, {.name = "mmap64"}, {.name = "munmap"}, {.name = "mremap"}, {.name = "shmat"}, {.name = "mprotect"},
	{.name = "pkey_mprotect"}, {.name = "madvise"}, {.name = "mlock"}, {.name = "mlock2"}, /* what is mapped */
	{.name = "setrlimit"}, {.name = "setrlimit64"}, {.name = "prlimit"}, {.name = "prlimit64"}, /* limits */
	{.name = "read"}, {.name = "pread"}, {.name = "pread64"}, {.name = "recv"}, {.name = "recvfrom"}, {.name = "readv"},
	{.name = "preadv"}, {.name = "preadv64"}, {.name = "preadv2"}, {.name = "preadv64v2"}, {.name = "process_vm_readv"},
	{.name = "getrandom"}, {.name = "getentropy"}, {.name = "recvmsg"}, {.name = "recvmmsg"}, {.name = "fread"}, {.name = "fread_unlocked"},
	{.name = "__read_chk"}, {.name = "__pread_chk"}, {.name = "__pread64_chk"}, {.name = "__recv_chk"}, {.name = "__recvfrom_chk"},
	{.name = "__fread_chk"}, {.name = "__fread_unlocked_chk"}, /* what fills memory */
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

/* What is known of a library whose slots are looked at. */
struct library {
	struct span all, code;
	uintptr_t base;
	const ElfW(Sym) *symbols; /* NULL: it has none */
	const char *names;
	struct {
		const ElfW(Rela) *from;
		size_t count;
	} tables[2]; /* of relocations */
};

static struct library read_library(const struct dl_phdr_info *info) {
	struct library l = {.all = span_of(info, 0), .code = span_of(info, PF_X), .base = info->dlpi_addr};
	const ElfW(Dyn) *d = NULL;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; d && d->d_tag != DT_NULL; d++) {
		/* The loader has made addresses of these, but for libraries whose table it cannot write to. */
		uintptr_t at = in_span(&l.all, d->d_un.d_ptr) ? d->d_un.d_ptr : l.base + d->d_un.d_ptr;
		switch (d->d_tag) {
		case DT_SYMTAB: l.symbols = (const ElfW(Sym) *)at; break;
		case DT_STRTAB: l.names = (const char *)at; break;
		case DT_RELA: l.tables[0].from = (const ElfW(Rela) *)at; break;
		case DT_RELASZ: l.tables[0].count = d->d_un.d_val / sizeof(ElfW(Rela)); break;
		case DT_JMPREL: l.tables[1].from = (const ElfW(Rela) *)at; break;
		case DT_PLTRELSZ: l.tables[1].count = d->d_un.d_val / sizeof(ElfW(Rela)); break;
		}
	}
	return l;
}

static const char *name_of(const struct library *l, const ElfW(Rela) *r) { return l->names + l->symbols[ELF64_R_SYM(r->r_info)].st_name; }

/* Whether the program itself, which is the first library, calls the libc's malloc. */
static int find_call(struct dl_phdr_info *info, size_t size, void *data) {
	struct library l = read_library(info);
	(void)size;
	for (int i = 0; i < 2 && l.symbols; i++)
		for (const ElfW(Rela) *r = l.tables[i].from; r < l.tables[i].from + l.tables[i].count; r++)
			if (ELF64_R_TYPE(r->r_info) == CALLED && strcmp(name_of(&l, r), "malloc") == 0)
				*(bool *)data |= *(uintptr_t *)(l.base + r->r_offset) == (uintptr_t)next.malloc;
	return 1;
}

bool links_to_libc(void *self) {
	if (!next_library)
		return false;
	for (int i = 0; i < FUNCTIONS; i++) {
		functions[i].ours = (uintptr_t)next_dlsym(self, functions[i].name);
		functions[i].libcs = (uintptr_t)next_dlsym(next_library, functions[i].name);
	}
	bool calls = false; /* a program at fixed addresses gives one of its own as malloc's */
	dl_iterate_phdr(find_call, &calls);
	return calls || next_dlsym(RTLD_DEFAULT, "malloc") == (void *)next.malloc;
}

static void *page_of(uintptr_t at) { return (void *)(at & ~(uintptr_t)(sysconf(_SC_PAGESIZE) - 1)); }

/* Whether a page can be written to. */
static bool writable(void *page) { return next.madvise(page, (size_t)sysconf(_SC_PAGESIZE), MADV_POPULATE_WRITE) == 0; }

/* Puts an address into a slot. False: the kernel refuses. */
static bool put(uintptr_t slot, uintptr_t function) {
	const size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
	void *page = page_of(slot);
	bool stays = writable(page); /* so: the loader may be filling it, and others write there */
	if (next.mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0)
		return false;
	__atomic_store_n((uintptr_t *)slot, function, __ATOMIC_SEQ_CST);
	return stays || next.mprotect(page, page_size, PROT_READ) == 0;
}

static const struct function *function_called(const char *name) {
	for (int i = 0; i < FUNCTIONS; i++)
		if (functions[i].libcs && strcmp(functions[i].name, name) == 0)
			return &functions[i];
	return NULL;
}

/* Whether a function of that name may be one of ours: most are C++'s. */
static bool maybe_ours(const char *name) { return name[0] == '_' ? name[1] == '_' : strchr("acfgmprsv", name[0]) != NULL; }

/* What a slot leads to before its function is first called, in a library that is bound lazily: the library itself. */
static bool unbound(const struct library *l, unsigned kind, uintptr_t value) { return kind == CALLED && in_span(&l->all, value); }

/* The first slot that was filled, which is the program's own or that of a library that it is linked with: it stays. */
static uintptr_t first, first_value;

/* Whether somebody who does the same as we, as memray does, has put back what was there before. */
static bool undone(void) { return first && __atomic_load_n((uintptr_t *)first, __ATOMIC_RELAXED) != first_value; }

/* Fills the slots of a library, but not those among its code, whose pages would cease to be that. */
static bool fill(const struct library *l, const ElfW(Rela) *table, size_t count, bool *filled) {
	for (const ElfW(Rela) *r = table; r < table + count; r++) {
		unsigned kind = ELF64_R_TYPE(r->r_info);
		if (kind != CALLED && kind != KEPT && (kind != POINTER || r->r_addend))
			continue;
		const char *name = name_of(l, r);
		const struct function *f = maybe_ours(name) ? function_called(name) : NULL;
		uintptr_t slot = l->base + r->r_offset;
		if (!f || slot % sizeof slot || !in_span(&l->all, slot) || in_span(&l->code, slot))
			continue;
		uintptr_t value = __atomic_load_n((uintptr_t *)slot, __ATOMIC_RELAXED);
		if (value != f->libcs && !unbound(l, kind, value))
			continue;
		if (!put(slot, f->ours))
			return false;
		*filled = true;
		if (!first)
			first = slot, first_value = f->ours;
	}
	return true;
}

struct visit {
	unsigned long long loads; /* how many libraries were ever loaded */
	bool filled, failed;
};

static int count_loads(struct dl_phdr_info *info, size_t size, void *data) {
	((struct visit *)data)->loads = size >= offsetof(struct dl_phdr_info, dlpi_subs) ? info->dlpi_adds : 0;
	return 1;
}

static int visit_library(struct dl_phdr_info *info, size_t size, void *data) {
	struct visit *v = data;
	struct library l = read_library(info);
	count_loads(info, size, data);
	if (!l.symbols || l.all.from == libc_span.from || l.all.from == own_span.from)
		return 0;
	for (int i = 0; i < 2; i++)
		v->failed |= !fill(&l, l.tables[i].from, l.tables[i].count, &v->filled);
	return v->failed;
}

bool links_take(void) {
	static unsigned long long seen;
	static bool settled;
	struct visit v = {0};
	if (settled) {
		dl_iterate_phdr(count_loads, &v);
		if (v.loads == seen && !undone())
			return true;
	}
	if (!writable(page_of((uintptr_t)&settled))) /* a kernel that cannot say */
		return false;
	dl_iterate_phdr(visit_library, &v);
	settled = !v.failed && !v.filled; /* a library that was being loaded has slots that are filled only now */
	seen = v.loads;
	if (v.failed)
		return false;
	atomic_store(&heap_threshold, heap_threshold_configured); /* of what is large note is taken */
	return true;
}
