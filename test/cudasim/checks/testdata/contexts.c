/* Initialisation and contexts. */
#include "checks.h"

#include <pthread.h>

void check_no_context(void) {
	CUdeviceptr p = 0;
	CUcontext c;
	size_t size;
	int n;
	EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&n));
	EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc(&p, SIZE));
	EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuCtxGetCurrent(&c));
	OK(cuInit(0));
	OK(cuDeviceGetCount(&n));
	CHECK(n == 1);
	OK(cuCtxGetCurrent(&c));
	CHECK(c == NULL);
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&p, SIZE));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemGetAddressRange(&p, &size, 1));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuStreamSynchronize(NULL));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent(&c));
	EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&c, 1));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent((CUcontext)&n));
}

static void *without_context(void *argument) {
	CUcontext c;
	OK(cuCtxGetCurrent(&c));
	CHECK(c == NULL); /* each thread has contexts of its own */
	return argument;
}

void check_contexts(void) {
	CUcontext primary = use_primary(), own, current;
	unsigned flags;
	int active;
	size_t before, now, total;
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, without_context, NULL) == 0 && pthread_join(thread, NULL) == 0);
	OK(cuMemGetInfo(&before, &total));
	OK(cuCtxCreate(&own, 0, 0));
	CHECK(own != primary);
	CUdeviceptr p = memory_of(3);
	CUstream s = new_stream();
	OK(cuCtxPushCurrent(primary));
	OK(cuMemsetD32(p, 4, COUNT)); /* memory of another context of the same device */
	OK(cuCtxSynchronize());
	CHECK(all_words(p, 4));
	OK(cuCtxPopCurrent(&current));
	CHECK(current == primary);
	OK(cuCtxDestroy(own));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent(own));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(s)); /* it went with its context */
	OK(cuMemGetInfo(&now, &total));
	CHECK(now == before);

	OK(cuDevicePrimaryCtxRelease(0));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(!active);
	EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc(&p, SIZE));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
	use_primary();
	OK(cuMemAlloc(&p, SIZE));
}

static void in_child(int socket) {
	int n;
	(void)socket;
	EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuInit(0));
	EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&n));
	EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuCtxSynchronize());
	_exit(0);
}

void check_fork_child(void) {
	use_primary();
	CUstream s = new_stream();
	OK(cuMemsetD32Async(memory_of(0), 1, COUNT, s)); /* with a thread at work */
	start_peer(in_child);
	end_peer();
	OK(cuStreamSynchronize(s));
}

void check_devices(void) {
	setenv("CUDASIM_DEVICES", "2", 1);
	CUcontext first = use_primary(), second;
	CUuuid one, two;
	int n, ordinal;
	OK(cuDeviceGetCount(&n));
	OK(cuDeviceGetUuid(&one, 0));
	OK(cuDeviceGetUuid(&two, 1));
	CHECK(n == 2 && memcmp(&one, &two, sizeof one) != 0);
	OK(cuDevicePrimaryCtxRetain(&second, 1));
	OK(cuCtxPushCurrent(second));
	CUdeviceptr p = memory_of(1);
	OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
	CHECK(ordinal == 1);
	CUcontext owner;
	OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	CHECK(owner == second && owner != first);
}
