/* Stream memory operations: a stream writes a word, or waits until somebody has. */
#include "sim.h"

struct word {
	struct operation operation;
	CUdeviceptr address;
	uint64_t value;
	unsigned flags;
	bool wide;
};

static CUresult run_write(struct operation *o) {
	struct word *w = (struct word *)o;
	struct area *area;
	lock();
	char *p = pin(w->address, w->wide ? 8 : 4, true, &area);
	unlock();
	if (!p)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	if (w->wide)
		__atomic_store_n((uint64_t *)p, w->value, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n((uint32_t *)p, (uint32_t)w->value, __ATOMIC_SEQ_CST);
	lock();
	unpin(area);
	unlock();
	return CUDA_SUCCESS;
}

static bool satisfied(const struct word *w, uint64_t value) {
	switch (w->flags & 3) {
	case CU_STREAM_WAIT_VALUE_GEQ: /* by difference, so that counters may wrap */
		return w->wide ? (int64_t)(value - w->value) >= 0 : (int32_t)((uint32_t)value - (uint32_t)w->value) >= 0;
	case CU_STREAM_WAIT_VALUE_EQ:
		return value == w->value;
	case CU_STREAM_WAIT_VALUE_AND:
		return (value & w->value) != 0;
	default:
		return ~(value | w->value) != 0;
	}
}

static CUresult run_wait(struct operation *o) {
	struct word *w = (struct word *)o;
	for (bool done = false; !done && !context_broken(o);) {
		struct area *area;
		lock();
		char *p = pin(w->address, w->wide ? 8 : 4, false, &area);
		if (p) {
			done = satisfied(w, w->wide ? __atomic_load_n((uint64_t *)p, __ATOMIC_SEQ_CST)
						    : __atomic_load_n((uint32_t *)p, __ATOMIC_SEQ_CST));
			unpin(area);
		}
		unlock();
		if (!p)
			return CUDA_ERROR_ILLEGAL_ADDRESS;
		if (!done)
			pause_us(20);
	}
	return CUDA_SUCCESS;
}

static CUresult queue(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags, bool wide, bool write) {
	struct context *c;
	struct stream *s;
	TRY(enter_context(&c));
	CUresult result = stream_of(c, stream, &s);
	if (result != CUDA_SUCCESS)
		return leave(result);
	if (faults.no_words)
		return leave(CUDA_ERROR_NOT_SUPPORTED);
	struct block *b = block_find(address);
	if (!b || address % (wide ? 8 : 4) || (write && flags & ~1u))
		return leave(CUDA_ERROR_INVALID_VALUE);
	struct word *w = operation_new(sizeof *w, write ? run_write : run_wait);
	w->operation.prompt = !write;
	w->address = address;
	w->value = value;
	w->flags = flags;
	w->wide = wide;
	return leave(stream_queue(s, &w->operation));
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
	return queue(stream, address, value, flags, false, false);
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
	return queue(stream, address, value, flags, true, false);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
	return queue(stream, address, value, flags, false, true);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
	return queue(stream, address, value, flags, true, true);
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams *operations, unsigned flags) {
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		CUstreamBatchMemOpParams *p = &operations[i];
		switch (p->operation) {
		case CU_STREAM_MEM_OP_WAIT_VALUE_32:
			TRY(cuStreamWaitValue32(stream, p->waitValue.address, p->waitValue.value, p->waitValue.flags));
			break;
		case CU_STREAM_MEM_OP_WRITE_VALUE_32:
			TRY(cuStreamWriteValue32(stream, p->writeValue.address, p->writeValue.value, p->writeValue.flags));
			break;
		case CU_STREAM_MEM_OP_WAIT_VALUE_64:
			TRY(cuStreamWaitValue64(stream, p->waitValue.address, p->waitValue.value64, p->waitValue.flags));
			break;
		case CU_STREAM_MEM_OP_WRITE_VALUE_64:
			TRY(cuStreamWriteValue64(stream, p->writeValue.address, p->writeValue.value64, p->writeValue.flags));
			break;
		default:
			return CUDA_ERROR_NOT_SUPPORTED;
		}
	}
	return CUDA_SUCCESS;
}
