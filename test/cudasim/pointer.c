/* What the driver knows about a pointer. */
#include <string.h>

#include "sim.h"

/* Writes a value of one type. */
#define ANSWER(type, value)                           \
	do {                                          \
		*(type *)data = (type)(value);        \
		return CUDA_SUCCESS;                  \
	} while (0)

static bool on_host(const struct block *b) {
	return b->memory == PINNED || b->memory == REGISTERED;
}

static bool host_pool(const struct block *b) {
	return b->memory == POOL_MEMORY && b->area->alias == (char *)b->area->base;
}

static CUresult exportable(const struct block *b) {
	return faults.no_export ? 0 : b->flags;
}

static CUresult attribute_of(void *data, CUpointer_attribute attribute, const struct block *b, uintptr_t pointer) {
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		ANSWER(CUcontext, b->context);
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		ANSWER(unsigned, on_host(b) || host_pool(b) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		if (host_pool(b))
			return CUDA_ERROR_INVALID_VALUE;
		ANSWER(CUdeviceptr, pointer);
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (!on_host(b) && !host_pool(b) && b->memory != MANAGED)
			return CUDA_ERROR_INVALID_VALUE;
		ANSWER(uintptr_t, pointer);
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		ANSWER(int, 0);
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		ANSWER(uint64_t, b->id);
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		ANSWER(unsigned, b->memory == MANAGED);
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		ANSWER(int, b->device);
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		ANSWER(unsigned, b->memory == DEVICE_MEMORY && !faults.no_ipc);
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		ANSWER(CUdeviceptr, host_pool(b) ? 0 : b->range_base);
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		ANSWER(size_t, b->range_size);
	case CU_POINTER_ATTRIBUTE_MAPPED:
		ANSWER(unsigned, 1);
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		ANSWER(uint64_t, b->memory == VMM_MEMORY || b->memory == POOL_MEMORY ? exportable(b) : 0);
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		ANSWER(unsigned, 0);
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		ANSWER(unsigned, !b->readable  ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE
				 : b->writable ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
					       : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ);
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		ANSWER(CUmemoryPool, b->pool);
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		ANSWER(size_t, b->size);
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		ANSWER(CUdeviceptr, b->base);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr pointer) {
	TRY(enter());
	struct block *b = block_find(pointer);
	return leave(b ? attribute_of(data, attribute, b, pointer) : CUDA_ERROR_INVALID_VALUE);
}

static size_t size_of(CUpointer_attribute attribute) {
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		return sizeof(unsigned);
	default:
		return sizeof(uint64_t);
	}
}

/* Unlike the other, it answers for memory that it does not know, too: with zeros, and device -2. */
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **data, CUdeviceptr pointer) {
	TRY(enter());
	struct block *b = block_find(pointer);
	for (unsigned i = 0; i < count; i++) {
		if (b && attribute_of(data[i], attributes[i], b, pointer) == CUDA_SUCCESS)
			continue;
		memset(data[i], 0, size_of(attributes[i]));
		if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
			*(int *)data[i] = -2;
	}
	return leave(CUDA_SUCCESS);
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr pointer) {
	(void)value;
	TRY(enter());
	if (attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !block_find(pointer))
		return leave(CUDA_ERROR_INVALID_VALUE);
	return leave(CUDA_SUCCESS);
}
