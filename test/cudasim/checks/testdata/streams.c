/* Work is late, and in order only where somebody said so. */
#include "checks.h"

#include <pthread.h>

#include <stdatomic.h>

void check_late(void) {
	use_primary_slowly();
	CUstream s = new_stream();
	CUdeviceptr p = memory_of(0);
	OK(cuMemsetD32Async(p, 7, COUNT, s));
	EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
	/* Nothing but the queue keeps this from being seen: a copy beside it reads what was there. */
	CHECK(all_words(p, 0));
	OK(cuStreamSynchronize(s));
	OK(cuStreamQuery(s));
	CHECK(all_words(p, 7));
}

/*
 * Who reads what somebody writes gets neither the old nor the new. The copy of a round may come to begin
 * too late, or be over too early, so there are many.
 */
void check_race(void) {
	CUstream reader;
	CUdeviceptr p, q;
	uint32_t *new_values, seen;
	int rounds = 0;
	use_primary();
	reader = new_stream();
	p = memory_of(0);
	q = memory_of(0);
	OK(cuMemAllocHost((void **)&new_values, SIZE));
	do {
		OK(cuMemsetD32(p, 1, COUNT));
		OK(cuCtxSynchronize());
		OK(cuMemcpyDtoDAsync(q, p, SIZE, reader));
		memset(new_values, 0, SIZE);
		OK(cuMemcpyHtoD(p, new_values, SIZE)); /* nothing delays it, and it waits for nobody */
		OK(cuCtxSynchronize());
		seen = first_word(q);
	} while (seen <= 1 && ++rounds < 500);
	CHECK(seen == 0xbd); /* garbage in the byte that changed */
}

void check_default_stream(void) {
	use_primary();
	CUstream blocking, per_thread = CU_STREAM_PER_THREAD;
	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	CUdeviceptr p = memory_of(0);
	OK(cuMemsetD32Async(p, 1, COUNT, blocking));
	CHECK(all_words(p, 1)); /* a copy on the default stream waits for blocking streams */
	OK(cuMemsetD32Async(p, 2, COUNT, per_thread));
	CHECK(all_words(p, 2));
	OK(cuMemsetD32Async(p, 3, COUNT, NULL));
	OK(cuMemsetD32Async(p + 4, 4, COUNT - 1, blocking)); /* and they wait for it */
	OK(cuStreamSynchronize(blocking));
	CHECK(first_word(p) == 3 && first_word(p + 4) == 4);
}

void check_events(void) {
	use_primary_slowly();
	CUstream one = new_stream(), two = new_stream();
	CUdeviceptr p = memory_of(0), q = memory_of(0);
	CUevent e, f;
	OK(cuEventCreate(&e, 0));
	OK(cuEventCreate(&f, 0));
	OK(cuEventQuery(e)); /* never recorded: nothing to wait for */
	OK(cuEventRecord(f, one));
	OK(cuMemsetD32Async(p, 5, COUNT, one));
	OK(cuEventRecord(e, one));
	EXPECT(CUDA_ERROR_NOT_READY, cuEventQuery(e));
	OK(cuStreamWaitEvent(two, e, 0));
	OK(cuMemcpyDtoDAsync(q, p, SIZE, two));
	OK(cuStreamSynchronize(two));
	CHECK(all_words(q, 5));
	OK(cuEventSynchronize(e));
	float ms = 0;
	OK(cuEventElapsedTime(&ms, f, e));
	CHECK(ms > 0);

	/* A stream of another context may wait for it, but not record it. */
	CUcontext other;
	OK(cuCtxCreate(&other, 0, 0));
	CUstream three = new_stream();
	OK(cuStreamWaitEvent(three, e, 0));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(e, three));
	OK(cuCtxDestroy(other));
	OK(cuEventDestroy(e));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(e));
}

void check_context_event(void) {
	CUcontext mine = use_primary(), other;
	CUstream one = new_stream(), two = new_stream();
	CUdeviceptr p = memory_of(0), q = memory_of(0);
	CUevent e, foreign;
	OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	OK(cuMemsetD32Async(p, 1, COUNT, one));
	OK(cuMemsetD32Async(q, 2, COUNT, two));
	OK(cuCtxPopCurrent(NULL));
	OK(cuCtxRecordEvent(mine, e)); /* which need not be current */
	OK(cuCtxCreate(&other, 0, 0));
	OK(cuEventCreate(&foreign, CU_EVENT_DISABLE_TIMING));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuCtxRecordEvent(mine, foreign));
	CUstream waiter = new_stream();
	OK(cuStreamWaitEvent(waiter, e, 0));
	OK(cuStreamSynchronize(waiter));
	CHECK(first_word(p) == 1 && first_word(q) == 2);
}

void check_words(void) {
	use_primary();
	CUstream s = new_stream(), writer = new_stream();
	CUdeviceptr p = memory_of(0), word = memory_of(0);
	uint32_t *host;
	CUdeviceptr pinned;
	OK(cuMemHostAlloc((void **)&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	OK(cuMemHostGetDevicePointer(&pinned, host, 0));
	host[0] = 0xfffffffe; /* it may wrap */
	OK(cuStreamWaitValue32(s, pinned, 1, CU_STREAM_WAIT_VALUE_GEQ));
	OK(cuMemsetD32Async(p, 1, COUNT, s));
	usleep(3000);
	EXPECT(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
	__atomic_store_n(&host[0], 1, __ATOMIC_SEQ_CST); /* the CPU lets it go on */
	OK(cuStreamSynchronize(s));
	CHECK(all_words(p, 1));
	OK(cuStreamWaitValue32(s, word, 9, CU_STREAM_WAIT_VALUE_EQ)); /* and so does a stream */
	OK(cuStreamWriteValue32(writer, word, 9, 0));
	OK(cuStreamSynchronize(s));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(writer, (CUdeviceptr)&word, 9, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(writer, word + 2, 9, 0));
}

void check_capture(void) {
	CUcontext mine = use_primary();
	CUstream s = new_stream();
	CUdeviceptr p = memory_of(0);
	CUgraph graph;
	CUevent e;
	CUstreamCaptureStatus status;
	OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuMemsetD32Async(p, 1, COUNT, s));
	OK(cuStreamIsCapturing(s, &status));
	CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	OK(cuStreamEndCapture(s, &graph));
	OK(cuGraphDestroy(graph));
	OK(cuStreamSynchronize(s));
	CHECK(all_words(p, 0)); /* it was not done */

	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxRecordEvent(mine, e));
	OK(cuStreamIsCapturing(s, &status));
	CHECK(status == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
	OK(cuCtxRecordEvent(mine, e));

	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	OK(cuMemAlloc(&p, SIZE));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	OK(cuStreamEndCapture(s, &graph));
	OK(cuGraphDestroy(graph));
	OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&p, SIZE));
	EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
}

static void *open_gate(void *word) {
	usleep(100000);
	__atomic_store_n((uint32_t *)word, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* The call that finds a queue full returns when there is room: here, when the gate has been opened. */
static void fill_queue(CUstream held, uint32_t *word, unsigned room, CUresult (*give)(CUstream)) {
	pthread_t opener;
	__atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
	OK(cuStreamWaitValue32(held, (CUdeviceptr)word, 1, CU_STREAM_WAIT_VALUE_EQ));
	for (unsigned i = 0; i < room; i++)
		OK(give(held));
	CHECK(cuStreamQuery(held) == CUDA_ERROR_NOT_READY);
	CHECK(pthread_create(&opener, NULL, open_gate, word) == 0);
	OK(give(held));
	CHECK(__atomic_load_n(word, __ATOMIC_SEQ_CST) == 1);
	CHECK(pthread_join(opener, NULL) == 0);
	OK(cuCtxSynchronize());
}

static CUevent event_to_record;
static CUresult record_stream(CUstream s) { return cuEventRecord(event_to_record, s); }
static CUresult record_context(CUstream s) {
	CUcontext c;
	CUresult result = cuStreamGetCtx(s, &c);
	return result == CUDA_SUCCESS ? cuCtxRecordEvent(c, event_to_record) : result;
}

void check_full_queues(void) {
	uint32_t *word;
	use_primary();
	OK(cuEventCreate(&event_to_record, CU_EVENT_DISABLE_TIMING));
	OK(cuMemAllocHost((void **)&word, sizeof *word));
	fill_queue(new_stream(), word, 1023, record_stream);
	fill_queue(new_stream(), word, 56, record_context);
}

static void CUDA_CB store_one(void *flag) {
	atomic_store((_Atomic int *)flag, 1);
}

void check_callbacks(void) {
	use_primary_slowly();
	_Atomic int flag = 0;
	CUstream s = new_stream();
	OK(cuLaunchHostFunc(s, store_one, &flag));
	CHECK(atomic_load(&flag) == 0);
	OK(cuStreamSynchronize(s));
	CHECK(atomic_load(&flag) == 1);
}
