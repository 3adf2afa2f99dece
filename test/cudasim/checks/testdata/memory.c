/* What the driver says of memory, by its kind. */
#include "checks.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static uint64_t attribute(CUpointer_attribute a, CUdeviceptr p) {
	uint64_t value = 0;
	OK(cuPointerGetAttribute(&value, a, p));
	return value;
}

#define TYPE(p) attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p)

static void check_device_memory(CUcontext mine) {
	CUdeviceptr p = memory_of(0), inside = p + 40;
	void *unused;
	CHECK(TYPE(inside) == CU_MEMORYTYPE_DEVICE);
	CHECK(attribute(CU_POINTER_ATTRIBUTE_CONTEXT, inside) == (uintptr_t)mine);
	CHECK(attribute(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside) == p);
	CHECK(attribute(CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside) == SIZE);
	CHECK(attribute(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, inside) == 1);
	CHECK(attribute(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, inside) == 0);
	CHECK(attribute(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, inside) == 0);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&unused, CU_POINTER_ATTRIBUTE_HOST_POINTER, inside));

	uint64_t id = attribute(CU_POINTER_ATTRIBUTE_BUFFER_ID, p);
	OK(cuMemFree(p));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&unused, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
	CUdeviceptr again = memory_of(0);
	CHECK(again == p && attribute(CU_POINTER_ATTRIBUTE_BUFFER_ID, again) != id);
}

static void check_plain_memory(void) {
	int here = 0, ordinal = 0;
	uint64_t type = 1;
	EXPECT(CUDA_ERROR_INVALID_VALUE,
	       cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)&here));
	CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
	void *places[] = {&type, &ordinal};
	OK(cuPointerGetAttributes(2, wanted, places, (CUdeviceptr)&here));
	CHECK(type == 0 && ordinal == -2);
}

void check_attributes(void) {
	CUcontext mine = use_primary();
	check_device_memory(mine);
	check_plain_memory();
	void *pinned;
	OK(cuMemHostAlloc(&pinned, SIZE, 0));
	CHECK(TYPE((CUdeviceptr)pinned) == CU_MEMORYTYPE_HOST);
	CHECK(attribute(CU_POINTER_ATTRIBUTE_HOST_POINTER, (CUdeviceptr)pinned) == (uintptr_t)pinned);
	CHECK(attribute(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, (CUdeviceptr)pinned) == 0);

	CUdeviceptr managed;
	OK(cuMemAllocManaged(&managed, SIZE, CU_MEM_ATTACH_GLOBAL));
	CHECK(TYPE(managed) == CU_MEMORYTYPE_DEVICE && attribute(CU_POINTER_ATTRIBUTE_IS_MANAGED, managed) == 1);
	CHECK(attribute(CU_POINTER_ATTRIBUTE_HOST_POINTER, managed) == managed);
	OK(cuMemsetD32(managed, 5, COUNT));
	OK(cuCtxSynchronize());
	CHECK(((uint32_t *)managed)[COUNT - 1] == 5); /* the CPU reads it */

	CUdeviceptr from_pool;
	CUmemoryPool pool;
	OK(cuMemAllocAsync(&from_pool, SIZE, NULL));
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	CHECK(attribute(CU_POINTER_ATTRIBUTE_CONTEXT, from_pool) == 0);
	CHECK(attribute(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, from_pool) == (uintptr_t)pool);
	CHECK(attribute(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, from_pool) == 0);
	CHECK(attribute(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, from_pool) == 0);

	CUmemPoolProps on_host = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				  .location = {.type = CU_MEM_LOCATION_TYPE_HOST}};
	CUdeviceptr host_block, unused;
	OK(cuMemPoolCreate(&pool, &on_host));
	OK(cuMemAllocFromPoolAsync(&host_block, SIZE, pool, NULL));
	CHECK(TYPE(host_block) == CU_MEMORYTYPE_HOST);
	CHECK(attribute(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, host_block) == 0);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&unused, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, host_block));
	*(int *)host_block = 1;
}

void check_neighbours(void) {
	use_primary();
	CUdeviceptr one, two, large, base;
	size_t size;
	OK(cuMemAlloc(&one, 48));
	OK(cuMemAlloc(&two, 48));
	OK(cuMemAlloc(&large, 3 << 20));
	CHECK(two - one == 512 && large % (2 << 20) == 0);
	OK(cuMemGetAddressRange(&base, &size, two + 47));
	CHECK(base == two && size == 48);
	EXPECT(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &size, two + 48));
	/* An extent past its allocation, even though a neighbour lies there. */
	OK(cuMemsetD8(one, 1, 600));
	EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}

static void touch(int socket) {
	use_primary();
	CUdeviceptr p = memory_of(0);
	tell(socket, &p, sizeof p);
	signal(SIGSEGV, SIG_DFL); /* that of a sanitizer would end the process otherwise */
	_exit(*(volatile int *)p);
}

/* The CPU cannot touch device memory at its address: the child dies of it. */
void check_untouchable(void) {
	CUdeviceptr p;
	int socket = start_peer(touch);
	hear(socket, &p, sizeof p);
	CHECK(WIFSIGNALED(wait_for_peer()));
}

void check_registration(void) {
	use_primary();
	int fd = memfd_create("page", MFD_CLOEXEC);
	CHECK(ftruncate(fd, 4096) == 0);
	uint32_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint32_t *again = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	CUdeviceptr p;
	OK(cuMemHostRegister(page, 4096, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
	EXPECT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(page, 4096, 0));
	OK(cuMemHostGetDevicePointer(&p, page, 0));
	CHECK(p == (CUdeviceptr)page && TYPE(p) == CU_MEMORYTYPE_HOST);
	OK(cuMemsetD32(p, 6, COUNT));
	OK(cuCtxSynchronize());
	CHECK(page[COUNT - 1] == 6 && again[0] == 6);

	/* A mapping that may only be read registers only so, and is then not written. */
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(again, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
	OK(cuMemHostRegister(again, 4096, CU_MEMHOSTREGISTER_READ_ONLY | CU_MEMHOSTREGISTER_DEVICEMAP));
	CHECK(all_words((CUdeviceptr)again, 6));
	OK(cuMemHostUnregister(again));
	EXPECT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(again));

	/* The driver keeps the pages even when the program unmaps them. */
	munmap(page, 4096);
	CHECK(first_word(p) == 6);
	OK(cuMemHostUnregister(page));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister(page, 4096, 0));
	char plain[64];
	OK(cuMemHostRegister(plain, sizeof plain, 0));
	OK(cuMemsetD8((CUdeviceptr)plain, 1, sizeof plain));
	OK(cuCtxSynchronize());
	CHECK(plain[63] == 1);
	OK(cuMemHostUnregister(plain));
}

static void one_of_each(void) {
	CUdeviceptr p = memory_of(1), q, managed;
	void *pinned;
	CUevent e;
	CUstream s = new_stream();
	OK(cuMemAllocAsync(&q, SIZE, s));
	OK(cuMemAllocHost(&pinned, SIZE));
	OK(cuMemAllocManaged(&managed, SIZE, CU_MEM_ATTACH_GLOBAL));
	OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
	OK(cuMemcpyDtoDAsync(q, p, SIZE, s));
	OK(cuEventRecord(e, s));
	OK(cuStreamWaitEvent(NULL, e, 0));
	OK(cuMemFreeAsync(q, s));
	OK(cuStreamDestroy(s)); /* does what it was given */
	OK(cuEventDestroy(e));
	OK(cuMemFree(p));
	OK(cuMemFree(managed));
	OK(cuMemFreeHost(pinned));
	OK(cuCtxSynchronize());
}

void check_leaks(void) {
	setenv("CUDASIM_DELAY_US", "0", 1);
	use_primary();
	size_t before, after, total;
	one_of_each();
	OK(cuMemGetInfo(&before, &total));
	int descriptors = count_descriptors();
	for (int i = 0; i < 500; i++)
		one_of_each();
	OK(cuMemGetInfo(&after, &total));
	CHECK(after == before && count_descriptors() == descriptors);
}
