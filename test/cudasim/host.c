/* Host memory that the device can reach: pinned, registered, and managed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sim.h"

static CUresult allocate(struct context *c, size_t size, enum memory memory, unsigned flags, uintptr_t *out) {
	if (!size)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(memory == MANAGED ? device_charge(c->device, size) : allocation_fault());
	size_t whole = round_up(size, (size_t)sysconf(_SC_PAGESIZE));
	struct area *a = area_new(whole, true);
	if (!a || !area_back(a, 0, whole, -1, 0)) {
		if (a)
			area_free(a);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	block_add((struct block){.base = a->base, .size = size, .memory = memory, .area = a, .context = c,
				 .device = c->device, .flags = flags, .readable = true, .writable = true,
				 .range_base = a->base, .range_size = size});
	*out = a->base;
	return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **out, size_t size, unsigned flags) {
	struct context *c;
	TRY(enter_context(&c));
	if (flags & ~7u)
		return leave(CUDA_ERROR_INVALID_VALUE);
	return leave(allocate(c, size, PINNED, flags, (uintptr_t *)out));
}

CUresult cuMemAllocHost(void **out, size_t size) {
	return cuMemHostAlloc(out, size, 0);
}

CUresult cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned flags) {
	struct context *c;
	TRY(enter_context(&c));
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
		return leave(CUDA_ERROR_INVALID_VALUE);
	uintptr_t base;
	CUresult result = allocate(c, size, MANAGED, flags, &base);
	if (result == CUDA_SUCCESS)
		*out = base;
	return leave(result);
}

CUresult cuMemFreeHost(void *pointer) {
	struct context *c;
	TRY(enter_context(&c));
	struct block *b = block_find((uintptr_t)pointer);
	if (!b || b->memory != PINNED || b->base != (uintptr_t)pointer)
		return leave(CUDA_ERROR_INVALID_VALUE);
	settle_context(b->context);
	return leave(block_free(b)); /* nobody else could free it meanwhile */
}

/* --------------------------------------------------------------------------------- registration */

struct mapping {
	bool readable, writable;
	bool shared; /* one shared mapping holds all of it */
};

/* How this process maps [address, address+size); false if there are holes. */
static bool mapping_of(uintptr_t address, size_t size, struct mapping *m) {
	FILE *maps = fopen("/proc/self/maps", "re");
	if (!maps)
		return false;
	*m = (struct mapping){true, true, false};
	uintptr_t at = address;
	char *text = NULL;
	size_t room = 0;
	while (at < address + size && getline(&text, &room, maps) > 0) {
		unsigned long start, end;
		char mode[5];
		if (sscanf(text, "%lx-%lx %4s", &start, &end, mode) != 3 || end <= at)
			continue;
		if (start > at)
			break;
		m->readable &= mode[0] == 'r';
		m->writable &= mode[1] == 'w';
		m->shared = mode[3] == 's' && start <= address && end >= address + size;
		at = end;
	}
	free(text);
	fclose(maps);
	return at >= address + size;
}

/*
 * The real driver keeps the pages however the program's own mapping ends. So does a second mapping,
 * which only shared memory can have. It is made behind the libc's back, as the real driver pins pages: to the shared heap
 * it is no mapping of the program's.
 */
static struct area *registered_area(uintptr_t base, size_t size, bool shared) {
	size_t page = (size_t)sysconf(_SC_PAGESIZE), into = base % page;
	struct area *a = must(calloc(1, sizeof *a));
	*a = (struct area){.base = base, .size = size, .alias = (char *)base, .fd = -1, .foreign = true};
	if (shared) {
		char *again = (char *)syscall(SYS_mremap, base - into, 0, round_up(into + size, page), MREMAP_MAYMOVE);
		if (again != (char *)MAP_FAILED)
			a->alias = again + into;
	}
	return a;
}

void registered_release(struct block *b) {
	struct area *a = b->area;
	block_remove(b);
	area_free(a);
}

CUresult cuMemHostRegister(void *pointer, size_t size, unsigned flags) {
	struct context *c;
	uintptr_t base = (uintptr_t)pointer;
	TRY(enter_context(&c));
	struct mapping m;
	if (faults.no_register)
		return leave(CUDA_ERROR_NOT_SUPPORTED);
	if (!size || flags & ~15u || !mapping_of(base, size, &m) || !m.readable)
		return leave(CUDA_ERROR_INVALID_VALUE);
	if (!m.writable && !(flags & CU_MEMHOSTREGISTER_READ_ONLY))
		return leave(CUDA_ERROR_INVALID_VALUE);
	if (blocks_overlap(base, size))
		return leave(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	block_add((struct block){.base = base, .size = size, .memory = REGISTERED,
				 .area = registered_area(base, size, m.shared), .context = c, .device = c->device,
				 .flags = flags, .readable = true,
				 .writable = !(flags & CU_MEMHOSTREGISTER_READ_ONLY), .range_base = base,
				 .range_size = size});
	return leave(CUDA_SUCCESS);
}

CUresult cuMemHostUnregister(void *pointer) {
	struct context *c;
	TRY(enter_context(&c));
	struct block *b = block_find((uintptr_t)pointer);
	if (!b || b->memory != REGISTERED || b->base != (uintptr_t)pointer)
		return leave(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	settle_context(b->context);
	registered_release(b);
	return leave(CUDA_SUCCESS);
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *out, void *pointer, unsigned flags) {
	struct context *c;
	TRY(enter_context(&c));
	struct block *b = block_find((uintptr_t)pointer);
	if (flags || !b || (b->memory != PINNED && b->memory != REGISTERED))
		return leave(CUDA_ERROR_INVALID_VALUE);
	*out = (CUdeviceptr)pointer;
	return leave(CUDA_SUCCESS);
}

CUresult cuMemHostGetFlags(unsigned *flags, void *pointer) {
	struct context *c;
	TRY(enter_context(&c));
	struct block *b = block_find((uintptr_t)pointer);
	if (!b || b->memory != PINNED)
		return leave(CUDA_ERROR_INVALID_VALUE);
	*flags = b->flags | CU_MEMHOSTALLOC_DEVICEMAP;
	return leave(CUDA_SUCCESS);
}
