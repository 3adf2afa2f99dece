/*
 * dlsym. Who is linked with the libc gets the functions of ours that stand in front of it. Who asks the handle of a library
 * for one shall get the same: memory that the heap knows would else be freed, resized or mapped over behind its
 * back, as by ctypes.CDLL("libc.so.6").free, or by the free of any library that is linked with the libc. The same goes
 * for the functions of CUDA's driver (captures.c).
 */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>

#include "heap.h"

#if defined(__GLIBC__) && defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
__asm__(".symver dlvsym,dlvsym@GLIBC_2.2.5");
#elif defined(__GLIBC__) && defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
__asm__(".symver dlvsym,dlvsym@GLIBC_2.17");
#else
#error "say which version of dlsym is the oldest one here, and how to jump to it"
#endif

void *next_version(const char *name, const char *version) { return dlvsym(next_library, name, version); }

struct place {
	uintptr_t from, size;
};
static struct place libc, own;

static int find_places(struct dl_phdr_info *library, size_t size, void *unused) {
	(void)size, (void)unused;
	uintptr_t end = 0;
	for (int i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &library->dlpi_phdr[i];
		if (part->p_type == PT_LOAD && part->p_vaddr + part->p_memsz > end)
			end = part->p_vaddr + part->p_memsz;
	}
	if ((uintptr_t)gnu_get_libc_version - library->dlpi_addr < end)
		libc = (struct place){library->dlpi_addr, end};
	if ((uintptr_t)lookups_start - library->dlpi_addr < end)
		own = (struct place){library->dlpi_addr, end};
	return 0;
}

void lookups_start(void) { dl_iterate_phdr(find_places, NULL); }

static bool lies_in(const struct place *p, const void *function) { return (uintptr_t)function - p->from < p->size; }

/*
 * For RTLD_DEFAULT and RTLD_NEXT (0 and -1), the libc's dlsym looks at where it will return to. So ours is a jump to
 * it, whatever the compiler's options are. Only what is asked of a library's handle takes another way.
 */
void first_dlsym(void);
void *(*next_dlsym)(void *, const char *) = (void *(*)(void *, const char *))(void (*)(void))first_dlsym;

/* Sanitizers ask for functions before they have begun themselves. */
__attribute__((used, no_sanitize("thread", "address"))) static void resolve_dlsym(void) {
	void *found = dlvsym(next_library, "dlsym", OLDEST);
	if (!found)
		die("the libc lacks dlsym", NULL);
	next_dlsym = (void *(*)(void *, const char *))found;
}

/*
 * Ours, if the program's libraries are linked with ours in place of the function of the libc's. Whoever stands between us and the
 * libc, and asks for what is behind itself, gets that.
 */
static void *ours_for(const char *name, void *found) {
	void *linked = next_dlsym(RTLD_DEFAULT, name);
	bool behind_us = next_dlsym(RTLD_NEXT, name) == found;
	return behind_us && lies_in(&own, linked) ? linked : found;
}

__attribute__((used, no_sanitize("thread", "address"))) static void *dlsym_of(void *library, const char *name) {
	void *found = next_dlsym(library, name);
	if (!found)
		return NULL;
	if (name[0] == 'c' && name[1] == 'u')
		return captures_in_front(name, found);
	return lies_in(&libc, found) ? ours_for(name, found) : found;
}

#if defined(__x86_64__)
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, @function\n"
	"dlsym:\n"
	"	lea 1(%rdi), %rax\n"
	"	cmp $1, %rax\n"
	"	ja dlsym_of\n"
	"	jmp *next_dlsym(%rip)\n"
	".size dlsym, .-dlsym\n"
	".hidden first_dlsym\n"
	".globl first_dlsym\n"
	".type first_dlsym, @function\n"
	"first_dlsym:\n"
	"	push %rdi\n"
	"	push %rsi\n"
	"	sub $8, %rsp\n"
	"	call resolve_dlsym\n"
	"	add $8, %rsp\n"
	"	pop %rsi\n"
	"	pop %rdi\n"
	"	jmp *next_dlsym(%rip)\n"
	".size first_dlsym, .-first_dlsym\n");
#else
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, %function\n"
	"dlsym:\n"
	"	add x2, x0, #1\n"
	"	cmp x2, #1\n"
	"	b.hi dlsym_of\n"
	"1:	adrp x16, next_dlsym\n"
	"	ldr x16, [x16, #:lo12:next_dlsym]\n"
	"	br x16\n"
	".size dlsym, .-dlsym\n"
	".hidden first_dlsym\n"
	".globl first_dlsym\n"
	".type first_dlsym, %function\n"
	"first_dlsym:\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	stp x0, x1, [sp, #16]\n"
	"	bl resolve_dlsym\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	b 1b\n"
	".size first_dlsym, .-first_dlsym\n");
#endif
