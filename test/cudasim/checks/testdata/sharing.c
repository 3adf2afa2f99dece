/* Two processes: one makes memory, the other opens it. */
#include "checks.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

struct offer {
	CUipcMemHandle memory;
	CUipcEventHandle event;
};

/* Opens memory on which the other's work is still to be done, and waits for its event. */
static void open_offer(int socket) {
	struct offer offer;
	CUdeviceptr p, again, base;
	CUevent e;
	size_t size;
	hear(socket, &offer, sizeof offer);
	use_primary();
	OK(cuIpcOpenMemHandle(&p, offer.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	OK(cuIpcOpenMemHandle(&again, offer.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	OK(cuIpcOpenEventHandle(&e, offer.event));
	CHECK(again == p && first_word(p) == 1);
	tell(socket, "", 1); /* now the work may be done */
	OK(cuMemGetAddressRange(&base, &size, p));
	CHECK(base == p - 512 && size == 2 << 20); /* the neighbours too */
	CHECK(first_word(base) == 99);
	CUstream s = new_stream();
	CUdeviceptr copy = memory_of(0);
	OK(cuStreamWaitEvent(s, e, 0));
	OK(cuMemcpyDtoDAsync(copy, p, SIZE, s));
	OK(cuStreamSynchronize(s));
	CHECK(all_words(copy, 2));
	OK(cuMemsetD32(p, 3, COUNT));
	OK(cuCtxSynchronize());
	tell(socket, "", 1);
	OK(cuIpcCloseMemHandle(p));
	CHECK(first_word(p) == 3); /* opened twice */
	OK(cuIpcCloseMemHandle(p));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(p));
	OK(cuEventDestroy(e));
}

void check_ipc(void) {
	int socket = start_peer(open_offer);
	use_primary();
	CUdeviceptr neighbour, p, unused;
	OK(cuMemAlloc(&neighbour, 48));
	OK(cuMemsetD32(neighbour, 99, 12));
	p = memory_of(1);
	CUstream s = new_stream();
	CUevent e, private_event;
	struct offer offer;
	char byte;
	OK(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&private_event, CU_EVENT_DISABLE_TIMING));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&private_event, CU_EVENT_INTERPROCESS));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&offer.event, private_event));
	OK(cuIpcGetMemHandle(&offer.memory, p + 8));
	OK(cuIpcGetEventHandle(&offer.event, e));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenMemHandle(&unused, offer.memory, 1)); /* its own */
	/* Its work waits until the other process has seen what was there before. */
	OK(cuMemsetD32Async(p, 1, COUNT, s));
	CUdeviceptr gate;
	uint32_t *word;
	OK(cuMemAllocHost((void **)&word, 4));
	*word = 0;
	OK(cuMemHostGetDevicePointer(&gate, word, 0));
	OK(cuStreamSynchronize(s));
	OK(cuStreamWaitValue32(s, gate, 1, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuMemsetD32Async(p, 2, COUNT, s));
	OK(cuEventRecord(e, s));
	tell(socket, &offer, sizeof offer);
	hear(socket, &byte, 1);
	__atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
	hear(socket, &byte, 1);
	CHECK(all_words(p, 3));
	end_peer();
}

/* Opens what it is told of, and keeps the first open for a while. */
static void open_moved(int socket) {
	CUipcMemHandle first, second;
	CUdeviceptr p, q;
	use_primary();
	hear(socket, &first, sizeof first);
	OK(cuIpcOpenMemHandle(&p, first, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	tell(socket, "", 1);
	hear(socket, &second, sizeof second);
	EXPECT(CUDA_ERROR_ALREADY_MAPPED, cuIpcOpenMemHandle(&q, second, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	OK(cuIpcCloseMemHandle(p));
	OK(cuIpcOpenMemHandle(&q, second, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	OK(cuIpcCloseMemHandle(q));
}

/* An allocation that is freed, and another one of a different size at its place. */
void check_moved(void) {
	int socket = start_peer(open_moved);
	CUdeviceptr kept, p, again;
	CUipcMemHandle handle;
	char byte;
	use_primary();
	OK(cuMemAlloc(&kept, 48)); /* so that the segment stays */
	OK(cuMemAlloc(&p, 1024));
	OK(cuIpcGetMemHandle(&handle, p));
	tell(socket, &handle, sizeof handle);
	hear(socket, &byte, 1);
	OK(cuMemFree(p));
	OK(cuMemAlloc(&again, 2048));
	CHECK(again == p);
	OK(cuIpcGetMemHandle(&handle, again));
	tell(socket, &handle, sizeof handle);
	end_peer();
}

/* Offers memory and an event that is never reached, and is killed. */
static void offer_and_wait(int socket) {
	struct offer offer;
	use_primary();
	CUstream s = new_stream();
	CUevent e;
	CUdeviceptr word = memory_of(0), p = memory_of(4);
	OK(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	OK(cuStreamWaitValue32(s, word, 1, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuEventRecord(e, s));
	OK(cuIpcGetMemHandle(&offer.memory, p));
	OK(cuIpcGetEventHandle(&offer.event, e));
	tell(socket, &offer, sizeof offer);
	pause();
}

void check_orphan(void) {
	int socket = start_peer(offer_and_wait);
	struct offer offer;
	CUdeviceptr p;
	CUevent e;
	hear(socket, &offer, sizeof offer);
	use_primary();
	OK(cuIpcOpenMemHandle(&p, offer.memory, 1));
	OK(cuIpcOpenEventHandle(&e, offer.event));
	EXPECT(CUDA_ERROR_NOT_READY, cuEventQuery(e));
	CUstream s = new_stream();
	OK(cuStreamWaitEvent(s, e, 0));
	EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
	kill_peer();
	OK(cuStreamSynchronize(s)); /* comes free */
	CHECK(all_words(p, 4));     /* and the memory stays */
	OK(cuIpcCloseMemHandle(p));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle(&p, offer.memory, 1));
}

/* Reserves addresses for two allocations that follow each other. */
static CUdeviceptr map_both(const CUmemGenericAllocationHandle *both, size_t size, CUmemAccess_flags access) {
	CUdeviceptr p;
	CUmemAccessDesc wish = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, access};
	OK(cuMemAddressReserve(&p, 4 * size, 0, 0, 0));
	OK(cuMemMap(p, size, 0, both[0], 0));
	OK(cuMemMap(p + size, size, 0, both[1], 0));
	OK(cuMemSetAccess(p, 2 * size, &wish, 1));
	return p;
}

static void unmap_both(CUdeviceptr p, size_t size) {
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(p, 4 * size)); /* something is mapped there */
	OK(cuMemUnmap(p, 2 * size));
	OK(cuMemAddressFree(p, 4 * size));
}

static void import_chunks(int socket) {
	size_t size;
	CUmemGenericAllocationHandle both[2];
	hear(socket, &size, sizeof size);
	use_primary();
	for (int i = 0; i < 2; i++) {
		int fd = receive_descriptor(socket);
		OK(cuMemImportFromShareableHandle(&both[i], (void *)(intptr_t)fd,
						  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
		close(fd);
	}
	CUdeviceptr p = map_both(both, size, CU_MEM_ACCESS_FLAGS_PROT_READ);
	OK(cuMemRelease(both[0])); /* the mapping keeps it */
	OK(cuMemRelease(both[1]));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemRelease(both[0]));
	CHECK(all_words(p + size - 8, 8) == false && first_word(p + size - 8) == 7 && first_word(p + size) == 8);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(p, 1, 1)); /* it may only be read */
	OK(cuStreamWriteValue32(NULL, p, 1, 0));
	EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
	EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamQuery(NULL)); /* and the context is broken for good */
	unmap_both(p, size);
}

void check_vmm(void) {
	int socket = start_peer(import_chunks);
	CUmemAllocationProp wish = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
				    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle both[2], kept;
	size_t size, before, after, total, chunk;
	use_primary();
	OK(cuMemGetInfo(&before, &total));
	OK(cuMemGetAllocationGranularity(&size, &wish, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&both[0], 100, &wish, 0));
	OK(cuMemCreate(&both[0], size, &wish, 0));
	OK(cuMemCreate(&both[1], size, &wish, 0));
	CUdeviceptr p = map_both(both, size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE), base, start;
	OK(cuMemsetD32(p, 7, size / 4));
	OK(cuMemsetD32(p + size, 8, size / 4));
	OK(cuCtxSynchronize());
	OK(cuMemGetAddressRange(&base, &chunk, p + size + 4));
	CHECK(base == p + size && chunk == size);
	OK(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + size + 4));
	OK(cuPointerGetAttribute(&chunk, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + size + 4));
	CHECK(start == p && chunk == 4 * size); /* the whole reservation */
	tell(socket, &size, sizeof size);
	for (int i = 0; i < 2; i++) {
		int fd;
		OK(cuMemRetainAllocationHandle(&kept, (void *)(p + (size_t)i * size + 40)));
		CHECK(kept == both[i]);
		OK(cuMemExportToShareableHandle(&fd, kept, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
		OK(cuMemRelease(kept));
		send_descriptor(socket, fd);
		close(fd);
	}
	end_peer();
	CHECK(first_word(p) == 7);
	unmap_both(p, size);
	OK(cuMemRelease(both[0]));
	OK(cuMemRelease(both[1]));
	OK(cuMemGetInfo(&after, &total));
	CHECK(after == before);
}

static void import_pool(int socket) {
	CUmemPoolPtrExportData data;
	CUmemoryPool pool;
	CUdeviceptr p, again;
	int fd = receive_descriptor(socket);
	hear(socket, &data, sizeof data);
	use_primary();
	OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemPoolImportPointer(&p, pool, &data));
	OK(cuMemPoolImportPointer(&again, pool, &data));
	CHECK(again == p);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&again, SIZE, pool, NULL));
	CHECK(all_words(p, 5));
	OK(cuMemsetD32(p, 6, COUNT));
	OK(cuMemFreeAsync(p, NULL));
	OK(cuCtxSynchronize());
	OK(cuMemPoolDestroy(pool));
}

void check_pool(void) {
	int socket = start_peer(import_pool);
	CUmemPoolProps wish = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			       .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
			       .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemPoolPtrExportData data;
	CUmemoryPool pool, usual;
	CUdeviceptr other, p;
	int fd;
	use_primary_slowly();
	OK(cuMemPoolCreate(&pool, &wish));
	OK(cuMemAllocFromPoolAsync(&other, 48, pool, NULL));
	OK(cuMemAllocFromPoolAsync(&p, SIZE, pool, NULL));
	OK(cuMemsetD32(p, 5, COUNT));
	OK(cuCtxSynchronize());
	OK(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemPoolExportPointer(&data, p));
	send_descriptor(socket, fd);
	close(fd);
	tell(socket, &data, sizeof data);
	end_peer();
	CHECK(all_words(p, 6));

	/* Memory comes free in the stream's order, not before. */
	CUstream s = new_stream();
	CUdeviceptr early, late;
	OK(cuMemFreeAsync(p, s));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(p, s));
	OK(cuMemAllocFromPoolAsync(&early, SIZE, pool, NULL));
	CHECK(early != p);
	OK(cuStreamSynchronize(s));
	OK(cuMemAllocFromPoolAsync(&late, SIZE, pool, NULL));
	CHECK(late == p);

	OK(cuDeviceGetDefaultMemPool(&usual, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
	       cuMemPoolExportToShareableHandle(&fd, usual, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
}

static uint32_t *map_word(int fd) {
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

/* The other process' stream answers word 0 in word 1. */
static void answer(int socket) {
	uint32_t *words = map_word(receive_descriptor(socket));
	use_primary();
	CUdeviceptr p;
	CUstream s = new_stream();
	OK(cuMemHostRegister(words, 4096, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
	OK(cuMemHostGetDevicePointer(&p, words, 0));
	OK(cuStreamWaitValue32(s, p, 1, CU_STREAM_WAIT_VALUE_GEQ));
	OK(cuStreamWriteValue32(s, p + 4, 1, 0));
	OK(cuStreamSynchronize(s));
}

void check_word_of_peer(void) {
	int socket = start_peer(answer), fd = memfd_create("words", MFD_CLOEXEC);
	CHECK(ftruncate(fd, 4096) == 0);
	uint32_t *words = map_word(fd);
	send_descriptor(socket, fd);
	use_primary();
	CUdeviceptr p;
	CUstream s = new_stream();
	OK(cuMemHostRegister(words, 4096, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
	OK(cuMemHostGetDevicePointer(&p, words, 0));
	OK(cuStreamWaitValue32(s, p + 4, 1, CU_STREAM_WAIT_VALUE_GEQ));
	EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
	__atomic_store_n(&words[0], 1, __ATOMIC_SEQ_CST);
	OK(cuStreamSynchronize(s));
	end_peer();
}
