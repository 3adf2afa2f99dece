/* Memory pools: one file each, whose addresses are all reserved when the pool is made. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

#define POOL_SIZE ((size_t)8 << 30) /* of addresses; memory is taken when it is used */
#define POINTER_MAGIC 0x6e646273696d7074u

struct pool {
	struct area *area;
	CUdevice device;
	bool on_host, imported, destroyed;
	unsigned handle_types;
	size_t used, used_high, blocks;
	uint64_t values[16]; /* of attributes that are only remembered */
};

/* What an exported pointer says. */
struct place {
	uint64_t magic, offset, size, id;
};

static struct pool *pool_new(CUdevice device, bool on_host, unsigned types, int fd, size_t size) {
	struct area *a = fd < 0 ? NULL : area_new(size, on_host);
	if (!a) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	a->fd = fd;
	if (!area_back(a, 0, size, fd, 0)) {
		area_free(a);
		return NULL;
	}
	struct pool *p = must(calloc(1, sizeof *p));
	*p = (struct pool){.area = a, .device = device, .on_host = on_host, .handle_types = types};
	handle_add(POOL, p);
	return p;
}

static void settle(struct pool *p) {
	if (!p->destroyed || p->blocks)
		return;
	area_free(p->area);
	free(p);
}

/* The pool that a device has from the start; its memory cannot be exported. */
static struct pool *usual_pool(CUdevice device) {
	struct pool **p = device_pool(device, false);
	if (!*p)
		*p = must(pool_new(device, false, 0, memory_file("pool", device, POOL_SIZE), POOL_SIZE));
	return *p;
}

static struct pool *current_pool(CUdevice device) {
	struct pool *chosen = *device_pool(device, true);
	return chosen && handle_is(POOL, chosen) ? chosen : usual_pool(device);
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *wish) {
	TRY(enter());
	bool on_host = wish->location.type == CU_MEM_LOCATION_TYPE_HOST ||
		       wish->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
	CUdevice device = on_host ? 0 : wish->location.id;
	if (!on_host && wish->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return leave(CUDA_ERROR_INVALID_VALUE);
	if (!device_valid(device))
		return leave(CUDA_ERROR_INVALID_DEVICE);
	if (wish->handleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    (wish->handleTypes && faults.no_export))
		return leave(CUDA_ERROR_NOT_SUPPORTED);
	struct pool *p = pool_new(device, on_host, wish->handleTypes, memory_file("pool", device, POOL_SIZE), POOL_SIZE);
	*out = (CUmemoryPool)p;
	return leave(p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

static CUresult enter_pool(CUmemoryPool handle, struct pool **p) {
	TRY(enter());
	*p = (struct pool *)handle;
	return handle_is(POOL, handle) ? CUDA_SUCCESS : leave(CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
	struct pool *p;
	TRY(enter_pool(handle, &p));
	if (p == *device_pool(p->device, false))
		return leave(CUDA_ERROR_INVALID_VALUE);
	handle_remove(p);
	p->destroyed = true;
	settle(p);
	return leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device) {
	TRY(enter());
	if (!device_valid(device))
		return leave(CUDA_ERROR_INVALID_DEVICE);
	*out = (CUmemoryPool)usual_pool(device);
	return leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device) {
	TRY(enter());
	if (!device_valid(device))
		return leave(CUDA_ERROR_INVALID_DEVICE);
	*out = (CUmemoryPool)current_pool(device);
	return leave(CUDA_SUCCESS);
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle) {
	struct pool *p;
	TRY(enter_pool(handle, &p));
	if (!device_valid(device))
		return leave(CUDA_ERROR_INVALID_DEVICE);
	*device_pool(device, true) = p;
	return leave(CUDA_SUCCESS);
}

/* Of CUDA 13, newer than the header: the pool of any place. */
EXPORTED CUresult cuMemGetDefaultMemPool(CUmemoryPool *out, CUmemLocation *place, CUmemAllocationType type);
EXPORTED CUresult cuMemGetMemPool(CUmemoryPool *out, CUmemLocation *place, CUmemAllocationType type);

static CUresult pool_of_place(CUmemoryPool *out, const CUmemLocation *place, CUmemAllocationType type, bool usual) {
	static struct pool *on_host;
	if (type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (place->type == CU_MEM_LOCATION_TYPE_DEVICE && device_valid(place->id)) {
		*out = (CUmemoryPool)(usual ? usual_pool(place->id) : current_pool(place->id));
		return CUDA_SUCCESS;
	}
	if (place->type != CU_MEM_LOCATION_TYPE_HOST && place->type != CU_MEM_LOCATION_TYPE_HOST_NUMA)
		return CUDA_ERROR_INVALID_VALUE;
	if (!on_host)
		on_host = must(pool_new(0, true, 0, memory_file("pool", 0, POOL_SIZE), POOL_SIZE));
	*out = (CUmemoryPool)on_host;
	return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *out, CUmemLocation *place, CUmemAllocationType type) {
	TRY(enter());
	return leave(pool_of_place(out, place, type, true));
}

CUresult cuMemGetMemPool(CUmemoryPool *out, CUmemLocation *place, CUmemAllocationType type) {
	TRY(enter());
	return leave(pool_of_place(out, place, type, false));
}

/* --------------------------------------------------------------------------- allocation in order */

/* The first gap between the pool's blocks that is large enough. */
static uintptr_t find_gap(const struct pool *p, size_t size) {
	uintptr_t at = p->area->base, end = at + p->area->size;
	while (at + size <= end && blocks_overlap(at, size)) {
		struct block *b = block_find(at);
		at = b ? round_up(b->base + b->size, BLOCK_ALIGN) : at + BLOCK_ALIGN;
	}
	return at + size <= end ? at : 0;
}

static struct block *add_block(struct pool *p, uintptr_t base, size_t size) {
	p->blocks++;
	p->used += size;
	if (p->used > p->used_high)
		p->used_high = p->used;
	return block_add((struct block){.base = base, .size = size, .memory = POOL_MEMORY, .area = p->area,
					.device = p->device, .flags = p->handle_types, .readable = true,
					.writable = true, .range_base = base, .range_size = size, .pool = p});
}

static CUresult allocate(struct pool *p, size_t size, CUdeviceptr *out) {
	if (!size || p->imported)
		return CUDA_ERROR_INVALID_VALUE;
	TRY(device_charge(p->device, size));
	uintptr_t base = find_gap(p, size);
	if (!base) {
		*device_used(p->device) -= size;
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	add_block(p, base, size);
	*out = base;
	return CUDA_SUCCESS;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream) {
	struct context *c;
	struct stream *s;
	TRY(enter_context(&c));
	CUresult result = stream_of(c, stream, &s);
	if (result == CUDA_SUCCESS && !handle_is(POOL, pool))
		result = CUDA_ERROR_INVALID_VALUE;
	return leave(result == CUDA_SUCCESS ? allocate((struct pool *)pool, size, out) : result);
}

CUresult cuMemAllocAsync(CUdeviceptr *out, size_t size, CUstream stream) {
	struct context *c;
	struct stream *s;
	TRY(enter_context(&c));
	CUresult result = stream_of(c, stream, &s);
	return leave(result == CUDA_SUCCESS ? allocate(current_pool(s->context->device), size, out) : result);
}

void pool_release(struct block *b) {
	struct pool *p = b->pool;
	if (!p->imported)
		*device_used(b->device) -= b->size;
	p->used -= b->size;
	p->blocks--;
	block_remove(b);
	settle(p);
}

struct freeing {
	struct operation operation;
	CUdeviceptr pointer;
};

static CUresult run_freeing(struct operation *o) {
	(void)o;
	return CUDA_SUCCESS;
}

/* The memory comes free when the stream gets here, and also when its context breaks before. */
static void drop_freeing(struct operation *o) {
	pool_release(block_find(((struct freeing *)o)->pointer));
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
	struct context *c;
	struct stream *s;
	TRY(enter_context(&c));
	CUresult result = stream_of(c, stream, &s);
	if (result != CUDA_SUCCESS || !pointer)
		return leave(result);
	struct block *b = block_find(pointer);
	if (!b || b->base != pointer || b->memory != POOL_MEMORY || b->freeing || s->capture)
		return leave(CUDA_ERROR_INVALID_VALUE);
	struct freeing *f = operation_new(sizeof *f, run_freeing);
	f->operation.drop = drop_freeing;
	f->pointer = pointer;
	b->freeing = true;
	return leave(stream_queue(s, &f->operation));
}

/* ------------------------------------------------------------------------------------ attributes */

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
	struct pool *p;
	TRY(enter_pool(handle, &p));
	(void)keep;
	return leave(CUDA_SUCCESS);
}

static bool is_flag(CUmemPool_attribute attribute) {
	return attribute == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
	       attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
	       attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value) {
	struct pool *p;
	TRY(enter_pool(handle, &p));
	if (attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT || attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
		*(cuuint64_t *)value = p->used;
	else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH || attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
		*(cuuint64_t *)value = p->used_high;
	else if (is_flag(attribute))
		*(int *)value = (int)p->values[attribute];
	else if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		*(cuuint64_t *)value = p->values[attribute];
	else
		return leave(CUDA_ERROR_INVALID_VALUE);
	return leave(CUDA_SUCCESS);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value) {
	struct pool *p;
	TRY(enter_pool(handle, &p));
	if (is_flag(attribute))
		p->values[attribute] = (uint64_t) * (int *)value;
	else if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		p->values[attribute] = *(cuuint64_t *)value;
	else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH || attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
		p->used_high = p->used;
	else
		return leave(CUDA_ERROR_INVALID_VALUE);
	return leave(CUDA_SUCCESS);
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *wishes, size_t count) {
	struct pool *p;
	TRY(enter_pool(handle, &p));
	for (size_t i = 0; i < count; i++) {
		if (wishes[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE && !device_valid(wishes[i].location.id))
			return leave(CUDA_ERROR_INVALID_DEVICE);
	}
	return leave(CUDA_SUCCESS);
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool handle, CUmemLocation *location) {
	struct pool *p;
	(void)location;
	TRY(enter_pool(handle, &p));
	*flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return leave(CUDA_SUCCESS);
}

/* --------------------------------------------------------------------------------------- sharing */

CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool handle, CUmemAllocationHandleType type,
					  unsigned long long flags) {
	struct pool *p;
	TRY(enter_pool(handle, &p));
	if (faults.no_export)
		return leave(CUDA_ERROR_NOT_SUPPORTED);
	if (flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !(p->handle_types & type) || p->imported)
		return leave(CUDA_ERROR_INVALID_VALUE);
	int fd = fcntl(p->area->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return leave(CUDA_ERROR_OPERATING_SYSTEM);
	*(int *)out = fd;
	return leave(CUDA_SUCCESS);
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *handle, CUmemAllocationHandleType type,
					    unsigned long long flags) {
	TRY(enter());
	CUdevice device;
	size_t size;
	int given = (int)(intptr_t)handle;
	if (flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    !memory_file_is(given, "pool", &device, &size))
		return leave(CUDA_ERROR_INVALID_VALUE);
	if (!device_valid(device))
		return leave(CUDA_ERROR_INVALID_DEVICE);
	struct pool *p = pool_new(device, false, type, fcntl(given, F_DUPFD_CLOEXEC, 0), size);
	if (p)
		p->imported = true;
	*out = (CUmemoryPool)p;
	return leave(p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr pointer) {
	TRY(enter());
	struct block *b = block_find(pointer);
	if (!b || b->memory != POOL_MEMORY || !b->pool->handle_types || b->pool->imported || faults.no_export)
		return leave(CUDA_ERROR_INVALID_VALUE);
	struct place place = {POINTER_MAGIC, b->base - b->area->base, b->size, b->id};
	memset(out, 0, sizeof *out);
	memcpy(out, &place, sizeof place);
	return leave(CUDA_SUCCESS);
}

CUresult cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool handle, CUmemPoolPtrExportData *data) {
	struct pool *p;
	TRY(enter_pool(handle, &p));
	struct place place;
	memcpy(&place, data, sizeof place);
	if (place.magic != POINTER_MAGIC || !p->imported || !place.size || place.size > p->area->size ||
	    place.offset > p->area->size - place.size)
		return leave(CUDA_ERROR_INVALID_VALUE);
	uintptr_t base = p->area->base + place.offset;
	/* As the driver does, which does not count how often: the first free takes it from all. */
	struct block *open = block_find(base);
	if (!open && blocks_overlap(base, place.size))
		return leave(CUDA_ERROR_ALREADY_MAPPED);
	if (!open)
		add_block(p, base, place.size);
	*out = base;
	return leave(CUDA_SUCCESS);
}
