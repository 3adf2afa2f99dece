/* Streams, as the program sees them. */
#include <stdlib.h>

#include "sim.h"

static CUresult enter_stream(CUstream handle, struct stream **s) {
	struct context *c;
	TRY(enter_context(&c));
	CUresult result = stream_of(c, handle, s);
	return result == CUDA_SUCCESS ? result : leave(result);
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority) {
	struct context *c;
	TRY(enter_context(&c));
	if (flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
		return leave(CUDA_ERROR_INVALID_VALUE);
	*out = (CUstream)stream_create(c, flags, priority);
	return leave(CUDA_SUCCESS);
}

CUresult cuStreamCreate(CUstream *out, unsigned flags) {
	return cuStreamCreateWithPriority(out, flags, 0);
}

CUresult cuStreamDestroy(CUstream handle) {
	TRY(enter());
	if (!handle_is(STREAM, handle))
		return leave(CUDA_ERROR_INVALID_HANDLE);
	stream_retire((struct stream *)handle);
	return leave(CUDA_SUCCESS);
}

CUresult cuStreamSynchronize(CUstream handle) {
	struct stream *s;
	TRY(enter_stream(handle, &s));
	return leave(stream_finish(s));
}

CUresult cuStreamQuery(CUstream handle) {
	struct stream *s;
	TRY(enter_stream(handle, &s));
	return leave(s->done < s->queued ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS);
}

CUresult cuStreamGetFlags(CUstream handle, unsigned *flags) {
	struct stream *s;
	TRY(enter_stream(handle, &s));
	*flags = s->flags;
	return leave(CUDA_SUCCESS);
}

CUresult cuStreamGetPriority(CUstream handle, int *priority) {
	struct stream *s;
	TRY(enter_stream(handle, &s));
	*priority = s->priority;
	return leave(CUDA_SUCCESS);
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *id) {
	struct stream *s;
	TRY(enter_stream(handle, &s));
	*id = s->id;
	return leave(CUDA_SUCCESS);
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context) {
	struct stream *s;
	TRY(enter_stream(handle, &s));
	*context = (CUcontext)s->context;
	return leave(CUDA_SUCCESS);
}

/* ----------------------------------------------------------------------------- host functions */

struct call {
	struct operation operation;
	CUhostFn function;
	CUstreamCallback callback;
	CUstream stream;
	void *argument;
};

static CUresult run_call(struct operation *o) {
	struct call *call = (struct call *)o;
	if (call->function)
		call->function(call->argument);
	else
		call->callback(call->stream, CUDA_SUCCESS, call->argument);
	return CUDA_SUCCESS;
}

static CUresult queue_call(CUstream handle, CUhostFn function, CUstreamCallback callback, void *argument) {
	struct stream *s;
	TRY(enter_stream(handle, &s));
	struct call *call = operation_new(sizeof *call, run_call);
	call->function = function;
	call->callback = callback;
	call->stream = handle;
	call->argument = argument;
	return leave(stream_queue(s, &call->operation));
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *argument) {
	return function ? queue_call(handle, function, NULL, argument) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void *argument, unsigned flags) {
	return callback && !flags ? queue_call(handle, NULL, callback, argument) : CUDA_ERROR_INVALID_VALUE;
}
