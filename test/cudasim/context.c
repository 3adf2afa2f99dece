/* Contexts, and the stack of them that each thread has. */
#include <stdlib.h>

#include "sim.h"

enum { STACK_DEPTH = 64 };

static struct context primaries[MAX_DEVICES];
static struct context *all; /* destroyed ones too: threads may have them on their stacks */
static _Thread_local struct context *stack[STACK_DEPTH];
static _Thread_local int depth;

struct context *context_current(void) {
	return depth ? stack[depth - 1] : NULL;
}

struct context *context_primary(CUdevice device) {
	return primaries[device].live ? &primaries[device] : NULL;
}

struct context *contexts_all(void) {
	return all;
}

CUresult context_state(const struct context *c) {
	return c->live ? c->error : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

void context_fail(struct context *c, CUresult error) {
	if (c->error == CUDA_SUCCESS)
		c->error = error;
	pthread_cond_broadcast(&sim_changed);
}

static void start(struct context *c, CUdevice device, unsigned flags) {
	static uint64_t ids;
	if (!c->id) {
		c->next = all;
		all = c;
	}
	c->device = device;
	c->flags = flags;
	c->id = ++ids;
	c->live = true;
	c->error = faults.lost;
	c->legacy = stream_create(c, CU_STREAM_DEFAULT, 0);
	handle_add(CONTEXT, c);
}

/* What is queued is dropped; what runs is waited for where its memory is taken away. */
static void end(struct context *c) {
	c->live = false;
	pthread_cond_broadcast(&sim_changed);
	for (struct stream *s = c->streams, *next; s; s = next) {
		next = s->next;
		if (!s->destroyed)
			stream_retire(s);
	}
	c->legacy = c->recorder = NULL;
	context_free_events(c);
	context_free_modules(c);
	context_free_memory(c);
	handle_remove(c);
}

static CUresult push(struct context *c) {
	if (depth == STACK_DEPTH)
		return CUDA_ERROR_INVALID_VALUE;
	stack[depth++] = c;
	return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------------------------- primary */

static CUresult enter_primary(CUdevice device, struct context **c) {
	TRY(enter());
	if (!device_valid(device))
		return leave(CUDA_ERROR_INVALID_DEVICE);
	*c = &primaries[device];
	(*c)->primary = true;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
	struct context *c;
	TRY(enter_primary(device, &c));
	if (c->live && c->error)
		return leave(c->error);
	if (!c->live)
		start(c, device, c->flags);
	c->retained++;
	*out = (CUcontext)c;
	return leave(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
	struct context *c;
	TRY(enter_primary(device, &c));
	if (!c->retained)
		return leave(CUDA_ERROR_INVALID_CONTEXT);
	if (--c->retained == 0 && c->live)
		end(c);
	return leave(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device) {
	struct context *c;
	TRY(enter_primary(device, &c));
	if (c->live)
		end(c);
	return leave(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
	struct context *c;
	TRY(enter_primary(device, &c));
	*flags = c->flags;
	*active = c->live;
	return leave(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
	struct context *c;
	TRY(enter_primary(device, &c));
	c->flags = flags;
	return leave(CUDA_SUCCESS);
}

/* ---------------------------------------------------------------------------------- own contexts */

CUresult cuCtxCreate(CUcontext *out, unsigned flags, CUdevice device) {
	TRY(enter());
	if (!device_valid(device))
		return leave(CUDA_ERROR_INVALID_DEVICE);
	struct context *c = must(calloc(1, sizeof *c));
	start(c, device, flags);
	*out = (CUcontext)c;
	return leave(push(c));
}

CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *parameters, int count, unsigned flags, CUdevice device) {
	(void)parameters;
	return count ? CUDA_ERROR_NOT_SUPPORTED : cuCtxCreate(out, flags, device);
}

/* Of CUDA 12.5, newer than the header. */
EXPORTED CUresult cuCtxCreate_v4(CUcontext *out, void *parameters, unsigned flags, CUdevice device);
CUresult cuCtxCreate_v4(CUcontext *out, void *parameters, unsigned flags, CUdevice device) {
	(void)parameters;
	return cuCtxCreate(out, flags, device);
}

static CUresult enter_named(CUcontext handle, struct context **c) {
	TRY(enter());
	*c = (struct context *)handle;
	return handle_is(CONTEXT, handle) ? CUDA_SUCCESS : leave(CUDA_ERROR_INVALID_CONTEXT);
}

CUresult cuCtxDestroy(CUcontext handle) {
	struct context *c;
	TRY(enter_named(handle, &c));
	if (c->primary)
		return leave(CUDA_ERROR_INVALID_CONTEXT);
	if (context_current() == c)
		depth--;
	end(c);
	return leave(CUDA_SUCCESS);
}

/* As before CUDA 4: whoever has a context counts. PyCUDA still does. */
CUresult cuCtxAttach(CUcontext *out, unsigned flags) {
	struct context *c;
	TRY(enter_context(&c));
	if (flags || c->primary)
		return leave(CUDA_ERROR_INVALID_VALUE);
	c->retained++;
	*out = (CUcontext)c;
	return leave(CUDA_SUCCESS);
}

CUresult cuCtxDetach(CUcontext handle) {
	struct context *c;
	TRY(enter_named(handle, &c));
	bool last = c->retained == 0;
	if (!last)
		c->retained--;
	unlock();
	return last ? cuCtxDestroy(handle) : CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext handle) {
	struct context *c;
	TRY(enter_named(handle, &c));
	return leave(push(c));
}

CUresult cuCtxPopCurrent(CUcontext *out) {
	TRY(enter());
	if (!depth)
		return leave(CUDA_ERROR_INVALID_CONTEXT);
	struct context *c = stack[--depth];
	if (out)
		*out = (CUcontext)c;
	return leave(CUDA_SUCCESS);
}

CUresult cuCtxSetCurrent(CUcontext handle) {
	TRY(enter());
	if (handle && !handle_is(CONTEXT, handle))
		return leave(CUDA_ERROR_INVALID_CONTEXT);
	if (depth)
		depth--;
	return leave(handle ? push((struct context *)handle) : CUDA_SUCCESS);
}

CUresult cuCtxGetCurrent(CUcontext *out) {
	TRY(enter());
	*out = (CUcontext)context_current();
	return leave(CUDA_SUCCESS);
}

CUresult cuCtxGetDevice(CUdevice *device) {
	struct context *c;
	TRY(enter_context(&c));
	*device = c->device;
	return leave(CUDA_SUCCESS);
}

CUresult cuCtxGetFlags(unsigned *flags) {
	struct context *c;
	TRY(enter_context(&c));
	*flags = c->flags;
	return leave(CUDA_SUCCESS);
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long *id) {
	struct context *c;
	if (!handle)
		TRY(enter_context(&c));
	else
		TRY(enter_named(handle, &c));
	*id = c->id;
	return leave(CUDA_SUCCESS);
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned *version) {
	struct context *c;
	if (!handle)
		TRY(enter_context(&c));
	else
		TRY(enter_named(handle, &c));
	*version = 3020;
	return leave(CUDA_SUCCESS);
}

CUresult cuCtxSynchronize(void) {
	struct context *c;
	TRY(enter_context(&c));
	if (context_captures(c)) {
		context_break_captures(c);
		return leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	}
	return leave(context_finish(c));
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit) {
	struct context *c;
	TRY(enter_context(&c));
	*value = limit == CU_LIMIT_STACK_SIZE ? 1024 : 8 << 20;
	return leave(CUDA_SUCCESS);
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
	struct context *c;
	(void)limit;
	(void)value;
	TRY(enter_context(&c));
	return leave(CUDA_SUCCESS);
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
	struct context *c;
	TRY(enter_context(&c));
	*least = 0;
	*greatest = -5;
	return leave(CUDA_SUCCESS);
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
	struct context *c;
	TRY(enter_context(&c));
	if (flags || !handle_is(CONTEXT, peer))
		return leave(CUDA_ERROR_INVALID_CONTEXT);
	return leave(faults.no_peer ? CUDA_ERROR_PEER_ACCESS_UNSUPPORTED : CUDA_SUCCESS);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
	struct context *c;
	TRY(enter_context(&c));
	return leave(handle_is(CONTEXT, peer) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT);
}
