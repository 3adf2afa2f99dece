/* cuMemAlloc and what belongs to it: blocks of device memory that share segments, as in the real driver. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim.h"

static struct area *segments;

enum { UNITS = SEGMENT_SIZE / BLOCK_ALIGN };

/* A run of free units in a segment that blocks share; UNITS if there is none. */
static size_t find_run(const struct area *a, size_t units) {
	size_t run = 0;
	for (size_t i = 0; i < UNITS; i++) {
		run = a->taken[i] ? 0 : run + 1;
		if (run == units)
			return i + 1 - units;
	}
	return UNITS;
}

static struct area *segment_new(struct context *c, size_t size) {
	struct area *a = area_new(size, false);
	if (!a)
		return NULL;
	a->fd = memory_file("device", c->device, size);
	if (a->fd < 0 || !area_back(a, 0, size, a->fd, 0)) {
		area_free(a);
		return NULL;
	}
	a->device = c->device;
	a->context = c;
	a->next = segments;
	segments = a;
	return a;
}

/* Blocks of up to half a segment share segments; others have one of their own. */
static struct area *place(struct context *c, size_t size, size_t *offset) {
	*offset = 0;
	if (size > SEGMENT_SIZE / 2)
		return segment_new(c, round_up(size, SEGMENT_SIZE));
	size_t units = round_up(size, BLOCK_ALIGN) / BLOCK_ALIGN, at = UNITS;
	struct area *a = segments;
	for (; a; a = a->next) {
		if (a->context == c && a->taken && (at = find_run(a, units)) < UNITS)
			break;
	}
	if (!a) {
		a = segment_new(c, SEGMENT_SIZE);
		if (!a)
			return NULL;
		a->taken = must(calloc(UNITS, 1));
		at = 0;
	}
	memset(a->taken + at, 1, units);
	*offset = at * BLOCK_ALIGN;
	return a;
}

CUresult cuMemAlloc(CUdeviceptr *out, size_t size) {
	struct context *c;
	TRY(enter_context(&c));
	if (!size)
		return leave(CUDA_ERROR_INVALID_VALUE);
	CUresult result = capture_check();
	if (result == CUDA_SUCCESS)
		result = device_charge(c->device, size);
	if (result != CUDA_SUCCESS)
		return leave(result);
	size_t offset;
	struct area *a = place(c, size, &offset);
	if (!a) {
		*device_used(c->device) -= size;
		return leave(CUDA_ERROR_OUT_OF_MEMORY);
	}
	a->blocks++;
	uintptr_t base = a->base + offset;
	block_add((struct block){.base = base, .size = size, .memory = DEVICE_MEMORY, .area = a, .context = c,
				 .device = c->device, .readable = true, .writable = true, .range_base = base,
				 .range_size = size});
	*out = base;
	return leave(CUDA_SUCCESS);
}

CUresult cuMemAllocPitch(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element) {
	if (element != 4 && element != 8 && element != 16)
		return CUDA_ERROR_INVALID_VALUE;
	*pitch = round_up(width, BLOCK_ALIGN);
	return cuMemAlloc(out, *pitch * height);
}

/* Also of pinned and managed memory, which have areas of their own. */
void segment_release(struct block *b) {
	struct area *a = b->area;
	if (b->memory != PINNED)
		*device_used(b->device) -= b->size;
	if (a->taken)
		memset(a->taken + (b->base - a->base) / BLOCK_ALIGN, 0, round_up(b->size, BLOCK_ALIGN) / BLOCK_ALIGN);
	bool last = a->blocks == 0 || --a->blocks == 0;
	block_remove(b);
	if (!last)
		return;
	for (struct area **p = &segments; *p; p = &(*p)->next) {
		if (*p == a) {
			*p = a->next;
			break;
		}
	}
	area_free(a);
}

CUresult cuMemFree(CUdeviceptr pointer) {
	struct context *c;
	TRY(enter_context(&c));
	if (!pointer)
		return leave(CUDA_SUCCESS);
	struct block *b = block_find(pointer);
	if (!b || b->base != pointer || (b->memory != DEVICE_MEMORY && b->memory != POOL_MEMORY && b->memory != MANAGED))
		return leave(CUDA_ERROR_INVALID_VALUE);
	/* Memory of pools is taken away from work that runs. */
	if (b->memory != POOL_MEMORY)
		settle_context(b->context);
	return leave(block_free(b)); /* nobody else could free it meanwhile */
}

CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr pointer) {
	struct context *c;
	TRY(enter_context(&c));
	struct block *b = block_find(pointer);
	if (!b)
		return leave(CUDA_ERROR_NOT_FOUND);
	if (base)
		*base = b->base;
	if (size)
		*size = b->size;
	return leave(CUDA_SUCCESS);
}
