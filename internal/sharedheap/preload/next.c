/* The malloc behind ours, and a little memory for whoever asks while it is being looked up. */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap.h"

/*
 * dlsym itself may allocate. It runs once, at the very start of the process, on its only thread, so a
 * fixed buffer that is never given back serves.
 */
static _Alignas(16) char boot[64 * KIB];
static size_t boot_used;
static bool resolving;

bool boot_owns(const void *p) { return (uintptr_t)p - (uintptr_t)boot < sizeof boot; }

/* The size is kept in front of each piece. */
size_t boot_size(const void *p) { return ((const size_t *)p)[-2]; }

static void *boot_take(size_t size, size_t align) {
	size_t start = (boot_used + 16 + align - 1) / align * align;
	if (size > sizeof boot || start > sizeof boot - size)
		die("out of memory while looking for the next malloc", NULL);
	boot_used = (start + size + 15) / 16 * 16;
	void *p = boot + start;
	((size_t *)p)[-2] = size;
	return p;
}

/* Each of these finds the next malloc and passes the call on. */

static void *first_malloc(size_t size) {
	if (resolving)
		return boot_take(size, 16);
	next_resolve();
	return next.malloc(size);
}

static void *first_calloc(size_t count, size_t size) {
	if (resolving) /* overflow was checked; the buffer is zero */
		return boot_take(count * size, 16);
	next_resolve();
	return next.calloc(count, size);
}

static void *first_realloc(void *p, size_t size) {
	if (resolving)
		return boot_take(size, 16); /* old pieces never get here: see realloc */
	next_resolve();
	return next.realloc(p, size);
}

static void first_free(void *p) {
	next_resolve();
	next.free(p);
}

static void *first_memalign(size_t align, size_t size) {
	if (resolving)
		return boot_take(size, align < 16 ? 16 : align);
	next_resolve();
	return next.memalign(align, size);
}

static void *first_aligned_alloc(size_t align, size_t size) {
	next_resolve();
	return next.aligned_alloc(align, size);
}

static int first_posix_memalign(void **out, size_t align, size_t size) {
	next_resolve();
	return next.posix_memalign(out, align, size);
}

static void *first_valloc(size_t size) {
	next_resolve();
	return next.valloc(size);
}

static void *first_pvalloc(size_t size) {
	next_resolve();
	return next.pvalloc(size);
}

static size_t first_usable_size(void *p) {
	next_resolve();
	return next.malloc_usable_size(p);
}

static int first_close(int fd) { return (int)syscall(SYS_close, fd); }

/* The kernel's own calls: the loader may need one of these at any time. */

static void *first_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
	return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

static int first_munmap(void *p, size_t size) { return (int)syscall(SYS_munmap, p, size); }

static void *first_mremap(void *old, size_t old_size, size_t size, int flags, ...) {
	va_list rest;
	va_start(rest, flags);
	void *to = flags & MREMAP_FIXED ? va_arg(rest, void *) : NULL;
	va_end(rest);
	return (void *)syscall(SYS_mremap, old, old_size, size, flags, to);
}

static int first_mprotect(void *p, size_t size, int rights) { return (int)syscall(SYS_mprotect, p, size, rights); }

static int first_madvise(void *p, size_t size, int advice) { return (int)syscall(SYS_madvise, p, size, advice); }

static FILE *first_fopen(const char *path, const char *mode) {
	next_resolve();
	return next.fopen(path, mode);
}

static FILE *first_fopen64(const char *path, const char *mode) {
	next_resolve();
	return next.fopen64(path, mode);
}

static int first_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *end) {
	next_resolve();
	return next.pthread_cond_timedwait(condition, mutex, end);
}

struct next_malloc next = {
	.malloc = first_malloc,
	.calloc = first_calloc,
	.realloc = first_realloc,
	.free = first_free,
	.memalign = first_memalign,
	.aligned_alloc = first_aligned_alloc,
	.posix_memalign = first_posix_memalign,
	.valloc = first_valloc,
	.pvalloc = first_pvalloc,
	.malloc_usable_size = first_usable_size,
	.close = first_close,
	.mmap = first_mmap,
	.munmap = first_munmap,
	.mremap = first_mremap,
	.madvise = first_madvise,
	.mprotect = first_mprotect,
	.fopen = first_fopen,
	.fopen64 = first_fopen64,
	.pthread_cond_timedwait = first_cond_timedwait,
};

/* Of conditions as programs have them since glibc 2.3.2: dlsym gave the function for those before, up to glibc 2.35. */
#ifdef __x86_64__
static const char conditions[] = "GLIBC_2.3.2";
#else
static const char conditions[] = "GLIBC_2.17";
#endif

void *next_library = RTLD_NEXT;

static void *find(const char *name) {
	void *function = strncmp(name, "pthread_cond_", 13) ? next_dlsym(next_library, name) : next_version(name, conditions);
	if (!function)
		die("the libc lacks a function", NULL);
	return function;
}

void next_resolve(void) {
	if (resolving || next.malloc != first_malloc)
		return;
	int saved = errno;
	resolving = true;
	struct next_malloc found = {
		.malloc = (void *(*)(size_t))find("malloc"),
		.calloc = (void *(*)(size_t, size_t))find("calloc"),
		.realloc = (void *(*)(void *, size_t))find("realloc"),
		.free = (void (*)(void *))find("free"),
		.memalign = (void *(*)(size_t, size_t))find("memalign"),
		.aligned_alloc = (void *(*)(size_t, size_t))find("aligned_alloc"),
		.posix_memalign = (int (*)(void **, size_t, size_t))find("posix_memalign"),
		.valloc = (void *(*)(size_t))find("valloc"),
		.pvalloc = (void *(*)(size_t))find("pvalloc"),
		.malloc_usable_size = (size_t(*)(void *))find("malloc_usable_size"),
		.close = (int (*)(int))find("close"),
		.mmap = (void *(*)(void *, size_t, int, int, int, off_t))find("mmap"),
		.munmap = (int (*)(void *, size_t))find("munmap"),
		.mremap = (void *(*)(void *, size_t, size_t, int, ...))find("mremap"),
		.madvise = (int (*)(void *, size_t, int))find("madvise"),
		.mprotect = (int (*)(void *, size_t, int))find("mprotect"),
		.fopen = (FILE *(*)(const char *, const char *))find("fopen"),
		.fopen64 = (FILE *(*)(const char *, const char *))find("fopen64"),
		.closefrom = (void (*)(int))next_dlsym(next_library, "closefrom"),
		.dup2 = (int (*)(int, int))find("dup2"),
		.dup3 = (int (*)(int, int, int))find("dup3"),
		.posix_spawn = (__typeof__(next.posix_spawn))find("posix_spawn"),
		.posix_spawnp = (__typeof__(next.posix_spawnp))find("posix_spawnp"),
		.pthread_create = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))next_dlsym(heap_late ? RTLD_DEFAULT : RTLD_NEXT, "pthread_create"),
		.pthread_cond_timedwait = (__typeof__(next.pthread_cond_timedwait))find("pthread_cond_timedwait"),
		.read = (__typeof__(next.read))find("read"),
		.pread = (__typeof__(next.pread))find("pread"),
		.pread64 = (__typeof__(next.pread64))find("pread64"),
		.recv = (__typeof__(next.recv))find("recv"),
		.recvfrom = (__typeof__(next.recvfrom))find("recvfrom"),
		.readv = (__typeof__(next.readv))find("readv"),
		.preadv = (__typeof__(next.preadv))find("preadv"),
		.preadv64 = (__typeof__(next.preadv64))find("preadv64"),
		.preadv2 = (__typeof__(next.preadv2))find("preadv2"),
		.preadv64v2 = (__typeof__(next.preadv64v2))find("preadv64v2"),
		.process_vm_readv = (__typeof__(next.process_vm_readv))find("process_vm_readv"),
		.getrandom = (__typeof__(next.getrandom))find("getrandom"),
		.getentropy = (__typeof__(next.getentropy))find("getentropy"),
		.recvmsg = (__typeof__(next.recvmsg))find("recvmsg"),
		.recvmmsg = (__typeof__(next.recvmmsg))find("recvmmsg"),
		.fread = (__typeof__(next.fread))find("fread"),
		.fread_unlocked = (__typeof__(next.fread_unlocked))find("fread_unlocked"),
		.__read_chk = (__typeof__(next.__read_chk))find("__read_chk"),
		.__pread_chk = (__typeof__(next.__pread_chk))find("__pread_chk"),
		.__pread64_chk = (__typeof__(next.__pread64_chk))find("__pread64_chk"),
		.__recv_chk = (__typeof__(next.__recv_chk))find("__recv_chk"),
		.__recvfrom_chk = (__typeof__(next.__recvfrom_chk))find("__recvfrom_chk"),
		.__fread_chk = (__typeof__(next.__fread_chk))find("__fread_chk"),
		.__fread_unlocked_chk = (__typeof__(next.__fread_unlocked_chk))find("__fread_unlocked_chk"),
	};
	next = found;
	resolving = false;
	errno = saved;
}
