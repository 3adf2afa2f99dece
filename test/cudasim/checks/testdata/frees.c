/* What takes memory away or brings code waits for all streams, and nobody else gets into the driver meanwhile. */
#include "checks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

static CUcontext context;
static atomic_uint calls; /* of a thread that does nothing but call */
static atomic_bool freed, over;

static void *call_again_and_again(void *unused) {
	CUcontext mine;
	(void)unused;
	while (!over) {
		OK(cuCtxGetCurrent(&mine));
		calls++;
	}
	return NULL;
}

struct end {
	CUresult (*call)(void *);
	void *of;
};

static void *run(void *argument) {
	struct end *e = argument;
	OK(cuCtxSetCurrent(context));
	OK(e->call(e->of));
	freed = true;
	return NULL;
}

/* Whether no call comes back any more: that takes a while to see. */
static bool silent(void) {
	for (int i = 0; i < 1000 && !freed; i++) {
		unsigned before = calls;
		usleep(20000);
		if (calls == before)
			return true;
	}
	return false;
}

/* Ends something while a stream waits for a word. */
static void expect_wait(CUresult (*call)(void *), void *of) {
	static uint32_t value, *word;
	static CUdeviceptr address;
	if (!word) {
		OK(cuMemHostAlloc((void **)&word, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
		OK(cuMemHostGetDevicePointer(&address, word, 0));
	}
	CUstream s = new_stream();
	OK(cuStreamWaitValue32(s, address, ++value, CU_STREAM_WAIT_VALUE_GEQ));
	struct end e = {call, of};
	pthread_t freeing, calling;
	freed = over = false;
	CHECK(pthread_create(&calling, NULL, call_again_and_again, NULL) == 0);
	CHECK(pthread_create(&freeing, NULL, run, &e) == 0);
	CHECK(silent() && !freed);
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
	pthread_join(freeing, NULL);
	over = true;
	pthread_join(calling, NULL);
	CHECK(freed);
	OK(cuStreamDestroy(s));
}

static CUresult free_memory(void *p) {
	return cuMemFree((CUdeviceptr)p);
}

static CUresult unmap(void *p) {
	return cuMemUnmap((CUdeviceptr)p, (size_t)2 << 20);
}

static CUresult load(void *ptx) {
	CUmodule module;
	return cuModuleLoadData(&module, ptx);
}

static CUresult find(void *module) {
	CUfunction function;
	return cuModuleGetFunction(&function, module, "add");
}

static CUresult unload(void *module) {
	return cuModuleUnload(module);
}

static void *mapped(void) {
	CUmemAllocationProp wish = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle h;
	CUdeviceptr p;
	OK(cuMemCreate(&h, (size_t)2 << 20, &wish, 0));
	OK(cuMemAddressReserve(&p, (size_t)2 << 20, 0, 0, 0));
	OK(cuMemMap(p, (size_t)2 << 20, 0, h, 0));
	return (void *)p;
}

void check_frees(void) {
	context = use_primary();
	void *pinned;
	static char page[8192];
	char *whole = (char *)(((uintptr_t)page + 4095) & ~(uintptr_t)4095);
	CUmodule module;
	OK(cuMemAllocHost(&pinned, SIZE));
	OK(cuMemHostRegister(whole, 4096, 0));
	static char ptx[] = ".version 8.0 .entry add(";
	OK(cuModuleLoadData(&module, ptx));
	expect_wait(cuMemFreeHost, pinned);
	expect_wait(cuMemHostUnregister, whole);
	expect_wait(free_memory, (void *)memory_of(1));
	expect_wait(unmap, mapped());
	expect_wait(load, ptx);
	expect_wait(find, module);
	OK(find(module)); /* it is there */
	expect_wait(unload, module);
}

/* Memory of pools comes free without that, whichever call frees it. */
void check_pool_frees(void) {
	use_primary();
	uint32_t *word;
	CUdeviceptr address, p, q;
	CUstream waiting = new_stream(), idle = new_stream();
	OK(cuMemHostAlloc((void **)&word, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	OK(cuMemHostGetDevicePointer(&address, word, 0));
	OK(cuMemAllocAsync(&p, SIZE, idle));
	OK(cuMemAllocAsync(&q, SIZE, idle));
	OK(cuStreamSynchronize(idle));
	OK(cuStreamWaitValue32(waiting, address, 1, CU_STREAM_WAIT_VALUE_GEQ));
	OK(cuMemFreeAsync(p, idle));
	OK(cuStreamSynchronize(idle));
	OK(cuMemFree(q));
	EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(waiting));
	__atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
	OK(cuStreamSynchronize(waiting));
}
