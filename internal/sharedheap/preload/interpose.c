/*
 * The malloc family, as every library of the process sees it: large requests of array frameworks go
 * to the heap, all else to the next malloc; and whatever comes from the heap returns to it. Of large
 * requests that go to the next malloc note is taken (outside.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heap.h"

static inline bool large(size_t size) {
	return unlikely(size >= atomic_load_explicit(&heap_threshold, memory_order_relaxed));
}

static void *share(const void *caller, size_t size, size_t align, bool zero) {
	return !heap_late && caller_in_scope(caller) ? block_take(size, align, zero, 0) : NULL;
}

static bool power_of_two(size_t n) { return n && (n & (n - 1)) == 0; }

EXPORTED void *malloc(size_t size) {
	if (large(size)) {
		void *p = share(CALLER, size, SKEW, false);
		return p ? p : outside_note(next.malloc(size));
	}
	return next.malloc(size);
}

EXPORTED void *calloc(size_t count, size_t size) {
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	if (large(bytes)) {
		void *p = share(CALLER, bytes, SKEW, true);
		return p ? p : outside_note(next.calloc(count, size));
	}
	return next.calloc(count, size);
}

static void give(void *p) {
	if (unlikely(range_owns(p)))
		block_give(p);
	else if (likely(!boot_owns(p)) && !(outside_maybe(p) && outside_give(p)))
		next.free(p);
}

EXPORTED void free(void *p) { give(p); }

/* Moves p, of old bytes, to a new place; to the heap if that is where it comes from. */
static void *move(void *p, size_t old, size_t size) {
	void *fresh = NULL;
	/* An array that grew once will grow again: leave room, which costs addresses only. */
	if (range_owns(p) && large(size))
		fresh = block_take(size, SKEW, false, size < SIZE_MAX / 2 ? 2 * size : size);
	if (!fresh)
		fresh = large(size) ? outside_note(next.malloc(size)) : next.malloc(size);
	if (!fresh)
		return NULL;
	memcpy(fresh, p, old < size ? old : size);
	give(p);
	return fresh;
}

/* Resizes what is the libc's. What grew outside stays there: mremap beats any copy. But it would not make a file longer. */
static void *resize_outside(void *p, size_t size) {
	bool known = outside_maybe(p);
	if (known && outside_leave(p)) {
		if (size)
			return move(p, next.malloc_usable_size(p), size);
		give(p);
		return NULL;
	}
	void *resized = next.realloc(p, size);
	if (!resized && size && known)
		return outside_note(p), NULL; /* it is what it was */
	return large(size) ? outside_note(resized) : resized;
}

static void *resize(void *p, size_t size, const void *caller) {
	if (!p) {
		if (!large(size))
			return next.malloc(size);
		void *fresh = share(caller, size, SKEW, false);
		return fresh ? fresh : outside_note(next.malloc(size));
	}
	if (unlikely(boot_owns(p)))
		return move(p, boot_size(p), size);
	if (likely(!range_owns(p)))
		return resize_outside(p, size);
	if (size == 0) {
		block_give(p);
		return NULL;
	}
	size_t old = block_usable(p);
	void *resized = block_resize(p, size);
	return resized ? resized : move(p, old, size);
}

EXPORTED void *realloc(void *p, size_t size) { return resize(p, size, CALLER); }

EXPORTED void *reallocarray(void *p, size_t count, size_t size) {
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return resize(p, bytes, CALLER);
}

EXPORTED int posix_memalign(void **out, size_t align, size_t size) {
	if (large(size) && power_of_two(align) && align >= sizeof(void *)) {
		void *p = share(CALLER, size, align, false);
		if (p) {
			*out = p;
			return 0;
		}
		int failed = next.posix_memalign(out, align, size);
		if (!failed)
			outside_note(*out);
		return failed;
	}
	return next.posix_memalign(out, align, size);
}

EXPORTED void *aligned_alloc(size_t align, size_t size) {
	if (large(size) && power_of_two(align)) {
		void *p = share(CALLER, size, align, false);
		return p ? p : outside_note(next.aligned_alloc(align, size));
	}
	return next.aligned_alloc(align, size);
}

EXPORTED void *memalign(size_t align, size_t size) {
	if (large(size) && power_of_two(align)) {
		void *p = share(CALLER, size, align, false);
		return p ? p : outside_note(next.memalign(align, size));
	}
	return next.memalign(align, size);
}

EXPORTED void *valloc(size_t size) {
	if (large(size)) {
		void *p = share(CALLER, size, (size_t)sysconf(_SC_PAGESIZE), false);
		return p ? p : outside_note(next.valloc(size));
	}
	return next.valloc(size);
}

EXPORTED void *pvalloc(size_t size) {
	size_t page = (size_t)sysconf(_SC_PAGESIZE), rounded = (size + page - 1) / page * page;
	if (rounded >= size && large(rounded)) {
		void *p = share(CALLER, rounded, page, false);
		return p ? p : outside_note(next.pvalloc(size));
	}
	return next.pvalloc(size);
}

EXPORTED size_t malloc_usable_size(void *p) {
	if (unlikely(range_owns(p)))
		return block_usable(p);
	if (unlikely(boot_owns(p)))
		return boot_size(p);
	return next.malloc_usable_size(p);
}

/* Other names of free: of the C of 2023, and of the libc of before 2017. */
void free_sized(void *p, size_t size);
void free_aligned_sized(void *p, size_t align, size_t size);
void cfree(void *p);

EXPORTED void free_sized(void *p, size_t size) {
	(void)size;
	give(p);
}

EXPORTED void free_aligned_sized(void *p, size_t align, size_t size) {
	(void)align;
	(void)size;
	give(p);
}

EXPORTED void cfree(void *p) { give(p); }
