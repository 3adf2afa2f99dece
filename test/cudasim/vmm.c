/* Virtual memory management: physical memory, reserved addresses, and mappings of the one to the other. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim.h"

struct physical {
	int fd;
	size_t size;
	CUdevice device;
	unsigned handle_types;
	unsigned handles;  /* held by the program */
	unsigned mappings; /* that keep the memory also without a handle */
	bool imported;
	uint64_t id;
};

static struct area *reservations;

static void physical_settle(struct physical *p) {
	if (p->handles == 0 && handle_is(PHYSICAL, p))
		handle_remove(p);
	if (p->handles || p->mappings)
		return;
	if (!p->imported)
		*device_used(p->device) -= p->size;
	close(p->fd);
	free(p);
}

static CUresult enter_physical(CUmemGenericAllocationHandle handle, struct physical **p) {
	TRY(enter());
	*p = (struct physical *)handle;
	return handle_is(PHYSICAL, *p) ? CUDA_SUCCESS : leave(CUDA_ERROR_INVALID_VALUE);
}

static CUmemGenericAllocationHandle physical_new(int fd, size_t size, CUdevice device, unsigned types, bool imported) {
	struct physical *p = must(calloc(1, sizeof *p));
	*p = (struct physical){.fd = fd, .size = size, .device = device, .handle_types = types, .handles = 1,
			       .imported = imported, .id = next_id()};
	handle_add(PHYSICAL, p);
	return (CUmemGenericAllocationHandle)p;
}

static bool types_known(unsigned types) {
	return (types & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t size, const CUmemAllocationProp *wish,
		     unsigned long long flags) {
	TRY(enter());
	if (flags || !size || size % SEGMENT_SIZE || wish->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    wish->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return leave(CUDA_ERROR_INVALID_VALUE);
	if (!device_valid(wish->location.id))
		return leave(CUDA_ERROR_INVALID_DEVICE);
	if (!types_known(wish->requestedHandleTypes))
		return leave(CUDA_ERROR_NOT_SUPPORTED);
	CUresult result = device_charge(wish->location.id, size);
	if (result != CUDA_SUCCESS)
		return leave(result);
	int fd = memory_file("vmm", wish->location.id, size);
	if (fd < 0) {
		*device_used(wish->location.id) -= size;
		return leave(CUDA_ERROR_OUT_OF_MEMORY);
	}
	*out = physical_new(fd, size, wish->location.id, wish->requestedHandleTypes, false);
	return leave(CUDA_SUCCESS);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
	struct physical *p;
	TRY(enter_physical(handle, &p));
	p->handles--;
	physical_settle(p);
	return leave(CUDA_SUCCESS);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *address) {
	TRY(enter());
	struct block *b = block_find((uintptr_t)address);
	if (!b || b->memory != VMM_MEMORY)
		return leave(CUDA_ERROR_INVALID_VALUE);
	if (b->physical->handles++ == 0)
		handle_add(PHYSICAL, b->physical);
	*out = (CUmemGenericAllocationHandle)b->physical;
	return leave(CUDA_SUCCESS);
}

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
				      CUmemAllocationHandleType type, unsigned long long flags) {
	struct physical *p;
	TRY(enter_physical(handle, &p));
	if (faults.no_export)
		return leave(CUDA_ERROR_NOT_SUPPORTED);
	if (flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !(p->handle_types & type))
		return leave(CUDA_ERROR_INVALID_VALUE);
	int fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return leave(CUDA_ERROR_OPERATING_SYSTEM);
	*(int *)out = fd;
	return leave(CUDA_SUCCESS);
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *handle, CUmemAllocationHandleType type) {
	TRY(enter());
	CUdevice device;
	size_t size;
	int given = (int)(intptr_t)handle;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !memory_file_is(given, "vmm", &device, &size))
		return leave(CUDA_ERROR_INVALID_VALUE);
	if (!device_valid(device))
		return leave(CUDA_ERROR_INVALID_DEVICE);
	CUresult result = allocation_fault();
	int fd = result == CUDA_SUCCESS ? fcntl(given, F_DUPFD_CLOEXEC, 0) : -1;
	if (result == CUDA_SUCCESS && fd < 0)
		result = CUDA_ERROR_OPERATING_SYSTEM;
	if (result == CUDA_SUCCESS)
		*out = physical_new(fd, size, device, type, true);
	return leave(result);
}

CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *p, CUmemAllocationGranularity_flags o) {
	(void)o;
	TRY(enter());
	*out = SEGMENT_SIZE;
	return leave(p->type == CU_MEM_ALLOCATION_TYPE_PINNED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *out, CUmemGenericAllocationHandle handle) {
	struct physical *p;
	TRY(enter_physical(handle, &p));
	*out = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .requestedHandleTypes = (CUmemAllocationHandleType)p->handle_types,
				     .location = {CU_MEM_LOCATION_TYPE_DEVICE, p->device}};
	return leave(CUDA_SUCCESS);
}

/* ------------------------------------------------------------------------------------ addresses */

static struct area *reservation_of(uintptr_t base, size_t size) {
	struct area *a = reservations;
	while (a && !(a->base <= base && base + size <= a->base + a->size && base + size > base))
		a = a->next;
	return a;
}

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t alignment, CUdeviceptr wish,
			     unsigned long long flags) {
	(void)wish;
	TRY(enter());
	if (flags || !size || size % SEGMENT_SIZE || alignment > SEGMENT_SIZE)
		return leave(CUDA_ERROR_INVALID_VALUE);
	struct area *a = area_new(size, false);
	if (!a)
		return leave(CUDA_ERROR_OUT_OF_MEMORY);
	a->next = reservations;
	reservations = a;
	*out = a->base;
	return leave(CUDA_SUCCESS);
}

CUresult cuMemAddressFree(CUdeviceptr base, size_t size) {
	TRY(enter());
	struct area **p = &reservations;
	while (*p && ((*p)->base != base || (*p)->size != size))
		p = &(*p)->next;
	struct area *a = *p;
	if (!a || blocks_overlap(base, size))
		return leave(CUDA_ERROR_INVALID_VALUE);
	*p = a->next;
	area_free(a);
	return leave(CUDA_SUCCESS);
}

/* ------------------------------------------------------------------------------------- mappings */

CUresult cuMemMap(CUdeviceptr base, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
		  unsigned long long flags) {
	struct physical *p;
	TRY(enter_physical(handle, &p));
	struct area *a = reservation_of(base, size);
	if (flags || !a || size % SEGMENT_SIZE || offset || size > p->size || blocks_overlap(base, size))
		return leave(CUDA_ERROR_INVALID_VALUE);
	if (!area_back(a, base - a->base, size, p->fd, 0))
		return leave(CUDA_ERROR_MAP_FAILED);
	p->mappings++;
	block_add((struct block){.base = base, .size = size, .memory = VMM_MEMORY, .area = a, .device = p->device,
				 .flags = p->handle_types, .range_base = a->base, .range_size = a->size,
				 .physical = p});
	return leave(CUDA_SUCCESS);
}

/* Do mappings, and nothing else, fill these addresses? */
static bool mapped(uintptr_t base, size_t size) {
	uintptr_t at = base;
	while (at < base + size) {
		struct block *b = block_find(at);
		if (!b || b->memory != VMM_MEMORY || b->base != at)
			return false;
		at += b->size;
	}
	return size && at == base + size;
}

CUresult cuMemUnmap(CUdeviceptr base, size_t size) {
	TRY(enter());
	if (!mapped(base, size))
		return leave(CUDA_ERROR_INVALID_VALUE);
	struct area *a = block_find(base)->area;
	CUdevice device = block_find(base)->device;
	for (uintptr_t at = base; at < base + size;) {
		struct block *b = block_find(at);
		struct physical *p = b->physical;
		at += b->size;
		block_remove(b);
		p->mappings--;
		physical_settle(p);
	}
	area_unback(a, base - a->base, size);
	settle_device(device); /* afterwards: what still uses the memory faults */
	return leave(CUDA_SUCCESS);
}

CUresult cuMemSetAccess(CUdeviceptr base, size_t size, const CUmemAccessDesc *wishes, size_t count) {
	TRY(enter());
	if (!mapped(base, size) || !count)
		return leave(CUDA_ERROR_INVALID_VALUE);
	for (size_t i = 0; i < count; i++) {
		if (wishes[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !device_valid(wishes[i].location.id))
			return leave(CUDA_ERROR_INVALID_DEVICE);
		if (wishes[i].location.id != block_find(base)->device && faults.no_peer)
			return leave(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	}
	for (uintptr_t at = base; at < base + size;) {
		struct block *b = block_find(at);
		CUmemAccess_flags flags = wishes[count - 1].flags;
		b->readable = flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
		b->writable = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		at += b->size;
	}
	return leave(CUDA_SUCCESS);
}

CUresult cuMemGetAccess(unsigned long long *out, const CUmemLocation *location, CUdeviceptr address) {
	(void)location;
	TRY(enter());
	struct block *b = block_find(address);
	if (!b || b->memory != VMM_MEMORY)
		return leave(CUDA_ERROR_INVALID_VALUE);
	*out = b->writable   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
	       : b->readable ? CU_MEM_ACCESS_FLAGS_PROT_READ
			     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return leave(CUDA_SUCCESS);
}
