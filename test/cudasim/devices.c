/* Devices: how many, what they are called, what they can do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define MEMORY ((size_t)16 << 30) /* of each device */

static struct {
	size_t used;
	struct pool *usual, *current;
} devices[MAX_DEVICES];

/* Which devices this process sees, in its order: as CUDA_VISIBLE_DEVICES said when it first asked. */
static struct {
	int count, numbers[MAX_DEVICES];
} seen;

static void see(void) {
	const char *value = getenv("CUDASIM_DEVICES");
	int all = value && *value ? atoi(value) : 1;
	all = all > MAX_DEVICES ? MAX_DEVICES : all;
	const char *wish = getenv("CUDA_VISIBLE_DEVICES");
	for (int i = 0; !wish && i < all; i++)
		seen.numbers[seen.count++] = i;
	/* A number that is none ends the list. */
	for (char *end; wish && seen.count < MAX_DEVICES; wish = end + 1) {
		long n = strtol(wish, &end, 10);
		if (end == wish || n < 0 || n >= all)
			break;
		seen.numbers[seen.count++] = (int)n;
		if (*end != ',')
			break;
	}
}

int device_count(void) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, see);
	return seen.count;
}

int device_number(CUdevice device) {
	return device_valid(device) ? seen.numbers[device] : -1;
}

CUdevice device_of_number(int number) {
	for (int i = 0; i < device_count(); i++)
		if (seen.numbers[i] == number)
			return i;
	return -1;
}

bool device_valid(CUdevice device) {
	return device >= 0 && device < device_count();
}

size_t *device_used(CUdevice device) {
	return &devices[device].used;
}

CUresult device_charge(CUdevice device, size_t bytes) {
	TRY(allocation_fault());
	if (bytes > MEMORY - devices[device].used)
		return CUDA_ERROR_OUT_OF_MEMORY;
	devices[device].used += bytes;
	return CUDA_SUCCESS;
}

struct pool **device_pool(CUdevice device, bool current) {
	return current ? &devices[device].current : &devices[device].usual;
}

static CUresult enter_device(CUdevice device) {
	TRY(enter());
	return device_valid(device) ? CUDA_SUCCESS : leave(CUDA_ERROR_INVALID_DEVICE);
}

CUresult cuDeviceGetCount(int *count) {
	TRY(enter());
	*count = device_count();
	return leave(CUDA_SUCCESS);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
	TRY(enter_device(ordinal));
	*device = ordinal;
	return leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
	TRY(enter_device(device));
	if (length > 0)
		snprintf(name, (size_t)length, "ndbridge simulated GPU");
	return leave(CUDA_SUCCESS);
}

/* The same in all processes: it is by its UUID that a peer knows a device. */
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
	TRY(enter_device(device));
	memcpy(uuid->bytes, "ndbridge-cudasim", 16);
	uuid->bytes[15] = (char)('0' + device_number(device));
	return leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
	return (cuDeviceGetUuid)(uuid, device);
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
	TRY(enter_device(device));
	*bytes = MEMORY;
	return leave(CUDA_SUCCESS);
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
	TRY(enter_device(device));
	*major = 9;
	*minor = 0;
	return leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device) {
	TRY(enter_device(device));
	snprintf(id, (size_t)length, "0000:%02X:00.0", device + 1);
	return leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id) {
	TRY(enter());
	unsigned bus;
	if (sscanf(id, "%*x:%x:", &bus) != 1 && sscanf(id, "%x:", &bus) != 1)
		return leave(CUDA_ERROR_INVALID_VALUE);
	*device = (CUdevice)bus - 1;
	return leave(device_valid(*device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE);
}

static int limit_of(CUdevice_attribute attribute) {
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
		return 1024;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
		return 64;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
		return 2147483647;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
	case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
	case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
		return 65536;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
		return 49152;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
		return 232448;
	case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
		return 32;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
		return 2048;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
		return 32;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		return 4;
	case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
	case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
		return 1000000;
	case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
		return 2147483647;
	case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
	case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
		return BLOCK_ALIGN;
	case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
		return 5120;
	case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
		return 50 << 20;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		return 9;
	default:
		return 0;
	}
}

/* Newer than the header. */
#define HOST_MEMORY_POOLS_SUPPORTED ((CUdevice_attribute)144)

static bool has(CUdevice_attribute attribute, bool *known) {
	*known = true;
	if (attribute == HOST_MEMORY_POOLS_SUPPORTED)
		return true;
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
	case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
	case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
	case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
	case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
	case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
	case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
	case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
		return true;
	case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
		return !faults.no_register;
	case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1:
	case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1:
	case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
		return !faults.no_words;
	case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
		return !faults.no_ipc;
	case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
		return !faults.no_export;
	default:
		*known = false;
		return false;
	}
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
	TRY(enter_device(device));
	if ((int)attribute < 1)
		return leave(CUDA_ERROR_INVALID_VALUE);
	bool known;
	*value = has(attribute, &known);
	if (!known)
		*value = limit_of(attribute);
	if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
		*value = device + 1;
	if (attribute == CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES)
		*value = faults.no_export ? 0 : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	return leave(CUDA_SUCCESS);
}

static CUresult peer(CUdevice a, CUdevice b, int *can) {
	TRY(enter_device(a));
	*can = device_valid(b) && a != b && !faults.no_peer;
	return leave(device_valid(b) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice other) {
	return peer(device, other, can);
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice other) {
	(void)attribute;
	return peer(device, other, value);
}

CUresult cuMemGetInfo(size_t *unused, size_t *total) {
	struct context *c;
	TRY(enter_context(&c));
	*total = MEMORY;
	*unused = MEMORY - devices[c->device].used;
	return leave(CUDA_SUCCESS);
}

CUresult cuDriverGetVersion(int *version) {
	*version = faults.version;
	return CUDA_SUCCESS;
}
