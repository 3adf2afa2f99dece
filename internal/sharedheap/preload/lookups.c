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

struct span libc_span, own_span;
bool heap_late;

struct span span_of(const struct dl_phdr_info *library, uint32_t rights) {
	struct span s = {UINTPTR_MAX, 0};
	for (int i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &library->dlpi_phdr[i];
		uintptr_t from = library->dlpi_addr + part->p_vaddr, to = from + part->p_memsz;
		if (part->p_type != PT_LOAD || (part->p_flags & rights) != rights)
			continue;
		s.from = from < s.from ? from : s.from;
		s.to = to > s.to ? to : s.to;
	}
	return s;
}

/* Libraries come in the order in which they were loaded. */
static int find_spans(struct dl_phdr_info *library, size_t size, void *unused) {
	(void)size, (void)unused;
	struct span s = span_of(library, 0);
	if (in_span(&s, (uintptr_t)gnu_get_libc_version))
		libc_span = s;
	if (in_span(&s, (uintptr_t)lookups_start)) {
		own_span = s;
		heap_late = libc_span.to && libc_span.from != s.from;
	}
	return 0;
}

void lookups_start(void) {
	dl_iterate_phdr(find_spans, NULL);
	if (!heap_late)
		return;
	next_library = RTLD_DEFAULT;
	void *(*open)(const char *, int) = (void *(*)(const char *, int))next_dlsym(RTLD_DEFAULT, "dlopen"); /* of another library in older libcs */
	next_library = open ? open("libc.so.6", RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

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
	return behind_us && in_span(&own_span, (uintptr_t)linked) ? linked : found;
}

__attribute__((used, no_sanitize("thread", "address"))) static void *dlsym_of(void *library, const char *name) {
	void *found = next_dlsym(library, name);
	if (!found)
		return NULL;
	if (name[0] == 'c' && name[1] == 'u')
		return captures_in_front(name, found);
	return in_span(&libc_span, (uintptr_t)found) ? ours_for(name, found) : found;
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
