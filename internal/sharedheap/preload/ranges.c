/*
 * Addresses. One range is reserved once, inaccessible, so that "is this pointer ours" is one
 * comparison; parts of it are taken and given back, first fit, with neighbours joined.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "heap.h"

struct range range;
_Atomic uint32_t *owners;

/* Unused addresses, in order. */
struct extent {
	uintptr_t base;
	size_t size;
};
static struct extent *extents;
static size_t extent_count;

/* A table at a fixed address that grows in place, as far as it is needed. */
struct table {
	char *base;
	size_t size; /* usable bytes */
	size_t limit;
};
static struct table owner_table, extent_table, block_table, segment_table;

/*
 * The process whose range it is. In a child of vfork, and there alone, that is another one: a fork, by whatever call,
 * leaves 0. NULL where the kernel cannot do that.
 */
static _Atomic pid_t *owner;

bool range_borrowed(void) {
	pid_t pid = owner ? atomic_load(owner) : 0;
	return pid && pid != getpid();
}

void range_inherit(void) {
	if (owner)
		atomic_store(owner, getpid());
}

static void *reserve(size_t size, int protection) {
	return next.mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void own(void) {
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = reserve(page, PROT_READ | PROT_WRITE);
	if (p != MAP_FAILED && next.madvise(p, page, MADV_WIPEONFORK) == 0) {
		owner = p;
		range_inherit();
	} else if (p != MAP_FAILED) {
		next.munmap(p, page);
	}
}

static bool table_reserve(struct table *t, size_t limit, int protection) {
	void *base = reserve(limit, protection);
	if (base == MAP_FAILED)
		return false;
	t->base = base;
	t->size = 0;
	t->limit = limit;
	return true;
}

static void table_release(struct table *t) {
	if (t->base)
		next.munmap(t->base, t->limit);
	memset(t, 0, sizeof *t);
}

static bool table_grow(struct table *t, size_t size) {
	if (size <= t->size)
		return true;
	size_t step = MIB, wanted = (size + step - 1) / step * step;
	if (wanted > t->limit)
		wanted = t->limit;
	if (size > wanted || next.mprotect(t->base, wanted, PROT_READ | PROT_WRITE) != 0)
		return false;
	t->size = wanted;
	return true;
}

static void table_shrink(struct table *t, size_t limit) {
	limit = (limit + MIB - 1) / MIB * MIB;
	if (limit < t->size)
		limit = t->size;
	if (limit >= t->limit)
		return;
	next.munmap(t->base + limit, t->limit - limit);
	t->limit = limit;
}

bool blocks_grow(uint32_t count) { return table_grow(&block_table, count * sizeof(struct block)); }

bool segments_grow(uint32_t count) { return table_grow(&segment_table, count * sizeof(struct segment)); }

/*
 * Under strict accounting the kernel may refuse a page of a file at the moment of the first touch,
 * with SIGBUS, where malloc would have said no.
 */
static bool strict_commit(void) {
	char mode = 0;
	int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool strict = read(fd, &mode, 1) == 1 && mode == '2';
	close(fd);
	return strict;
}

/*
 * How much to reserve. Reserved addresses count against RLIMIT_AS; a program that lives under such a
 * limit keeps three quarters of it. Private mappings, which a fork needs, count against RLIMIT_DATA.
 */
static size_t reserve_goal(void) {
	struct rlimit limit;
	if (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		return 0;
	size_t goal = heap_late ? LATE_RESERVE : HEAP_RESERVE;
	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
		while (goal > limit.rlim_cur / 4)
			goal /= 2;
	}
	return goal;
}

/* The tables for a range: a segment has eight granules or more on average, and at most one gap after it. */
static size_t owners_for(size_t size) { return size / GRANULE * sizeof *owners; }
static size_t blocks_for(size_t size) { return (size / GRANULE + 1) * sizeof(struct block); }
static size_t segments_for(size_t size) { return (size / GRANULE / 8 + 1) * sizeof(struct segment); }
static size_t extents_for(size_t size) { return (size / GRANULE / 8 + 2) * sizeof(struct extent); }

static bool tables_reserve(size_t size) {
	/* The owners can be read from the start: somebody may ask about any address of the range. */
	return table_reserve(&owner_table, owners_for(size), PROT_READ) &&
	       table_reserve(&block_table, blocks_for(size), PROT_NONE) &&
	       table_reserve(&segment_table, segments_for(size), PROT_NONE) &&
	       table_reserve(&extent_table, extents_for(size), PROT_NONE) &&
	       table_grow(&block_table, sizeof(struct block)) && table_grow(&segment_table, sizeof(struct segment)) &&
	       table_grow(&extent_table, sizeof(struct extent));
}

static void tables_release(void) {
	table_release(&owner_table);
	table_release(&block_table);
	table_release(&segment_table);
	table_release(&extent_table);
}

enum ndheap_state range_reserve(void) {
	if (strict_commit())
		return NDHEAP_STRICT_COMMIT;
	for (size_t size = reserve_goal(); size >= SMALLEST_RESERVE; size /= 2) {
		size_t addresses = heap_late ? HUGE_PAGE : size; /* all blocks lie outside */
		void *base = reserve(addresses + HUGE_PAGE, PROT_NONE);
		if (base == MAP_FAILED)
			continue;
		if (!tables_reserve(size)) {
			tables_release();
			next.munmap(base, addresses + HUGE_PAGE);
			continue;
		}
		next.madvise(base, addresses + HUGE_PAGE, MADV_DONTDUMP);
		owners = (_Atomic uint32_t *)owner_table.base;
		blocks = (struct block *)block_table.base;
		segments = (struct segment *)segment_table.base;
		extents = (struct extent *)extent_table.base;
		range.base = ((uintptr_t)base + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
		extents[0] = (struct extent){range.base, addresses};
		extent_count = 1;
		own();
		atomic_store_explicit(&range.size, addresses, memory_order_release);
		return NDHEAP_ON;
	}
	return NDHEAP_NO_ADDRESSES;
}

void range_shrink(size_t limit) {
	size_t size = atomic_load(&range.size), wanted = limit / 4 / HUGE_PAGE * HUGE_PAGE;
	if (!extent_count || size <= wanted)
		return;
	struct extent *last = &extents[extent_count - 1];
	if (last->base + last->size != range.base + size)
		return;
	size_t used = last->base - range.base;
	if (wanted < used)
		wanted = used;
	if (wanted < HUGE_PAGE) /* by which one sees that there is a heap: blocks may lie outside */
		wanted = HUGE_PAGE;
	last->size = wanted - used;
	if (!last->size)
		extent_count--;
	/* First, so that nobody takes what comes to lie there for ours. */
	atomic_store_explicit(&range.size, wanted, memory_order_release);
	next.munmap((void *)(range.base + wanted), size - wanted);
	table_shrink(&owner_table, owners_for(wanted));
	table_shrink(&block_table, blocks_for(wanted));
	table_shrink(&segment_table, segments_for(wanted));
	table_shrink(&extent_table, extents_for(wanted));
}

void range_yield(size_t size) {
	struct rlimit limit;
	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size < limit.rlim_cur)
		range_shrink(0);
}

/*
 * The kernel accounts a file's pages when they are first touched, so it grants files that are larger than
 * memory and swap together. Malloc would be refused; a program that relies on that would be killed instead.
 * What malloc gets depends on the overcommit policy, memory, swap, limits and sandboxes. So let the kernel
 * decide about the mapping that malloc would ask for: that takes 2 us, the first touch of the pages far longer.
 */
bool affordable(size_t size) {
	void *p = next.mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p != MAP_FAILED && next.munmap(p, size) == 0;
}

static bool insert_extent(size_t at, uintptr_t base, size_t size) {
	if (!table_grow(&extent_table, (extent_count + 1) * sizeof(struct extent)))
		return false;
	memmove(&extents[at + 1], &extents[at], (extent_count - at) * sizeof(struct extent));
	extents[at] = (struct extent){base, size};
	extent_count++;
	return true;
}

static void remove_extent(size_t at) {
	memmove(&extents[at], &extents[at + 1], (extent_count - at - 1) * sizeof(struct extent));
	extent_count--;
}

uintptr_t range_take(size_t size, size_t align) {
	for (size_t i = 0; i < extent_count; i++) {
		struct extent e = extents[i];
		uintptr_t base = (e.base + align - 1) & ~(align - 1);
		size_t before = base - e.base;
		if (e.size < before || e.size - before < size)
			continue;
		size_t after = e.size - before - size;
		size_t granules = (base + size - range.base) / GRANULE;
		if (!table_grow(&owner_table, granules * sizeof *owners))
			return 0;
		if (before && after) {
			if (!insert_extent(i + 1, base + size, after))
				return 0;
			extents[i].size = before;
		} else if (before) {
			extents[i].size = before;
		} else if (after) {
			extents[i] = (struct extent){base + size, after};
		} else {
			remove_extent(i);
		}
		return base;
	}
	return 0;
}

void range_give(uintptr_t base, size_t size) {
	size_t low = 0, high = extent_count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (extents[middle].base < base)
			low = middle + 1;
		else
			high = middle;
	}
	bool joins_before = low > 0 && extents[low - 1].base + extents[low - 1].size == base;
	bool joins_after = low < extent_count && base + size == extents[low].base;
	if (joins_before && joins_after) {
		extents[low - 1].size += size + extents[low].size;
		remove_extent(low);
	} else if (joins_before) {
		extents[low - 1].size += size;
	} else if (joins_after) {
		extents[low] = (struct extent){base, size + extents[low].size};
	} else {
		insert_extent(low, base, size); /* if there is no room for it, the addresses are lost */
	}
}

bool range_clear(uintptr_t base, size_t size) {
	/* If even this fails, the file's pages stay until the addresses are used again. */
	return next.mmap((void *)base, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

void owners_set(uintptr_t base, size_t size, uint32_t block) {
	size_t first = (base - range.base) / GRANULE, count = size / GRANULE;
	for (size_t i = first; i < first + count; i++)
		atomic_store_explicit(&owners[i], block, memory_order_release);
}
