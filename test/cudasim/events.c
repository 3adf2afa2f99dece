/* Events: places in the queues of streams. Those between processes keep their state in a page that both map. */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "events.h"

static struct event *events;

static void unreference(struct event *e) {
	if (--e->references)
		return;
	marks_clear(&e->recorded);
	if (e->shared)
		munmap(e->shared, sizeof *e->shared);
	if (e->fd >= 0)
		close(e->fd);
	free(e);
}

struct event *event_new(struct context *c, unsigned flags) {
	struct event *e = must(calloc(1, sizeof *e));
	*e = (struct event){.context = c, .flags = flags, .references = 1, .fd = -1, .next = events};
	events = e;
	handle_add(EVENT, e);
	return e;
}

static void retire(struct event *e) {
	struct event **p = &events;
	while (*p != e)
		p = &(*p)->next;
	*p = e->next;
	handle_remove(e);
	unreference(e);
}

void context_free_events(struct context *c) {
	for (struct event *e = events, *next; e; e = next) {
		next = e->next;
		if (e->context == c)
			retire(e);
	}
}

CUresult cuEventCreate(CUevent *out, unsigned flags) {
	struct context *c;
	TRY(enter_context(&c));
	unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
	if (flags & ~known || (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING)))
		return leave(CUDA_ERROR_INVALID_VALUE);
	struct event *e = event_new(c, flags);
	CUresult result = flags & CU_EVENT_INTERPROCESS ? event_share(e) : CUDA_SUCCESS;
	*out = (CUevent)e;
	return leave(result);
}

CUresult cuEventDestroy(CUevent handle) {
	TRY(enter());
	if (!handle_is(EVENT, handle))
		return leave(CUDA_ERROR_INVALID_HANDLE);
	retire((struct event *)handle);
	return leave(CUDA_SUCCESS);
}

/* ---------------------------------------------------------------------------------- recording */

struct recording {
	struct operation operation;
	struct event *event;
	uint64_t number; /* of a shared event's recordings */
};

static CUresult run_recording(struct operation *o) {
	struct recording *r = (struct recording *)o;
	struct event *e = r->event;
	lock();
	e->time_us = now_us();
	unlock();
	if (e->shared)
		atomic_store(&e->shared->done, r->number);
	return CUDA_SUCCESS;
}

static void drop_recording(struct operation *o) {
	struct recording *r = (struct recording *)o;
	/* Also if the context broke first: the other process must not wait for it for ever. */
	if (r->event->shared)
		atomic_store(&r->event->shared->done, r->number);
	unreference(r->event);
}

static CUresult record(struct event *e, struct stream *s, const struct marks *after) {
	struct recording *r = operation_new(sizeof *r, run_recording);
	r->operation.drop = drop_recording;
	r->operation.prompt = true;
	r->event = e;
	e->references++;
	if (after)
		marks_copy(&r->operation.after, after);
	if (e->shared)
		r->number = atomic_fetch_add(&e->shared->recorded, 1) + 1;
	bool captured = s->capture != NULL;
	TRY(stream_queue(s, &r->operation));
	marks_clear(&e->recorded);
	e->captured = captured;
	if (!captured)
		marks_add(&e->recorded, s, s->queued);
	return CUDA_SUCCESS;
}

CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream, unsigned flags) {
	struct context *c;
	struct stream *s;
	(void)flags;
	TRY(enter_context(&c));
	struct event *e = (struct event *)handle;
	if (!handle_is(EVENT, handle))
		return leave(CUDA_ERROR_INVALID_HANDLE);
	CUresult result = stream_of(c, stream, &s);
	if (result == CUDA_SUCCESS)
		result = e->context == s->context ? record(e, s, NULL) : CUDA_ERROR_INVALID_HANDLE;
	return leave(result);
}

CUresult cuEventRecord(CUevent handle, CUstream stream) {
	return cuEventRecordWithFlags(handle, stream, 0);
}

/* So many may be outstanding: on an H100 (driver 580), the next one waited in the driver. */
enum { CONTEXT_RECORDS = 56 };

/* Of CUDA 12.5, newer than the header: the event is reached when all that the context has been given is done. */
EXPORTED CUresult cuCtxRecordEvent(CUcontext context, CUevent event);
CUresult cuCtxRecordEvent(CUcontext context, CUevent handle) {
	TRY(enter());
	struct context *c = (struct context *)context;
	struct event *e = (struct event *)handle;
	if (faults.no_record || faults.version < 12050)
		return leave(CUDA_ERROR_NOT_SUPPORTED);
	if (!handle_is(CONTEXT, context))
		return leave(CUDA_ERROR_INVALID_CONTEXT);
	if (!handle_is(EVENT, handle) || e->context != c)
		return leave(CUDA_ERROR_INVALID_HANDLE);
	if (context_captures(c)) {
		context_break_captures(c);
		return leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	}
	if (!c->recorder) {
		c->recorder = stream_create(c, CU_STREAM_NON_BLOCKING, 0);
		c->recorder->room = CONTEXT_RECORDS;
	}
	struct marks everything = {0};
	for (struct stream *s = c->streams; s; s = s->next)
		marks_add(&everything, s, s->queued);
	CUresult result = record(e, c->recorder, &everything);
	marks_clear(&everything);
	return leave(result);
}

/* ------------------------------------------------------------------------------------ waiting */

/* Has the process at the other end of a shared event gone, so that nobody will reach it? */
static bool orphaned(const struct event *e) {
	char path[32];
	return e->peer && (snprintf(path, sizeof path, "/proc/%d", e->peer), access(path, F_OK) != 0);
}

static bool shared_reached(const struct event *e, uint64_t number) {
	return atomic_load(&e->shared->done) >= number || orphaned(e);
}

static bool reached(const struct event *e) {
	if (e->shared)
		return shared_reached(e, atomic_load(&e->shared->recorded));
	return marks_reached(&e->recorded);
}

static CUresult run_nothing(struct operation *o) {
	(void)o;
	return CUDA_SUCCESS;
}

static CUresult run_shared_wait(struct operation *o) {
	struct recording *r = (struct recording *)o;
	while (!shared_reached(r->event, r->number) && !context_broken(o))
		pause_us(20);
	return CUDA_SUCCESS;
}

static void drop_shared_wait(struct operation *o) {
	unreference(((struct recording *)o)->event);
}

static CUresult wait_on_stream(struct event *e, struct stream *s) {
	if (e->captured || s->capture)
		return e->captured && s->capture ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	struct recording *r = operation_new(sizeof *r, e->shared ? run_shared_wait : run_nothing);
	r->operation.prompt = true;
	if (e->shared) {
		r->event = e;
		r->number = atomic_load(&e->shared->recorded);
		r->operation.drop = drop_shared_wait;
		e->references++;
	} else {
		marks_copy(&r->operation.after, &e->recorded);
	}
	return stream_queue(s, &r->operation);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent handle, unsigned flags) {
	struct context *c;
	struct stream *s;
	(void)flags;
	TRY(enter_context(&c));
	if (!handle_is(EVENT, handle))
		return leave(CUDA_ERROR_INVALID_HANDLE);
	CUresult result = stream_of(c, stream, &s);
	return leave(result == CUDA_SUCCESS ? wait_on_stream((struct event *)handle, s) : result);
}

static CUresult enter_event(CUevent handle, struct event **e) {
	TRY(enter());
	*e = (struct event *)handle;
	CUresult result = handle_is(EVENT, handle) ? context_state((*e)->context) : CUDA_ERROR_INVALID_HANDLE;
	if (result == CUDA_SUCCESS && (*e)->captured)
		result = CUDA_ERROR_CAPTURED_EVENT;
	return result == CUDA_SUCCESS ? result : leave(result);
}

CUresult cuEventQuery(CUevent handle) {
	struct event *e;
	TRY(enter_event(handle, &e));
	return leave(reached(e) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult cuEventSynchronize(CUevent handle) {
	struct event *e;
	TRY(enter_event(handle, &e));
	struct context *c = e->context;
	e->references++;
	if (e->shared) {
		uint64_t number = atomic_load(&e->shared->recorded);
		while (!shared_reached(e, number) && context_state(c) == CUDA_SUCCESS) {
			unlock();
			pause_us(20);
			lock();
		}
	} else {
		struct marks m = {0}; /* what is recorded now, whatever is recorded later */
		marks_copy(&m, &e->recorded);
		while (!marks_reached(&m))
			wait_for_change();
		marks_clear(&m);
	}
	unreference(e);
	return leave(context_state(c));
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
	struct event *a, *b;
	TRY(enter_event(start, &a));
	unlock();
	TRY(enter_event(end, &b));
	if ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING)
		return leave(CUDA_ERROR_INVALID_HANDLE);
	if (!reached(a) || !reached(b))
		return leave(CUDA_ERROR_NOT_READY);
	if (!a->time_us || !b->time_us)
		return leave(CUDA_ERROR_INVALID_HANDLE);
	*milliseconds = (float)(int64_t)(b->time_us - a->time_us) / 1000;
	return leave(CUDA_SUCCESS);
}
