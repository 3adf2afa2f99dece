/* Stream capture: what is given to a stream is kept in a graph instead of done. Graphs cannot be launched. */
#include <stdlib.h>

#include "sim.h"

struct graph {
	struct operation *first;
};

CUresult graph_add(struct graph *g, struct operation *o) {
	o->next = g->first;
	g->first = o;
	return CUDA_SUCCESS;
}

static void graph_free(struct graph *g) {
	for (struct operation *o = g->first, *next; o; o = next) {
		next = o->next;
		operation_free(o);
	}
	free(g);
}

bool context_captures(const struct context *c) {
	for (const struct stream *s = c->streams; s; s = s->next) {
		if (s->capture)
			return true;
	}
	return false;
}

void context_break_captures(struct context *c) {
	for (struct stream *s = c->streams; s; s = s->next)
		s->capture_broken |= s->capture != NULL;
}

static CUresult enter_stream(CUstream handle, struct stream **s) {
	struct context *c;
	TRY(enter_context(&c));
	CUresult result = stream_of(c, handle, s);
	return result == CUDA_SUCCESS ? result : leave(result);
}

CUresult cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
	struct stream *s;
	TRY(enter_stream(handle, &s));
	if (s == s->context->legacy)
		return leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	if (s->capture)
		return leave(CUDA_ERROR_ILLEGAL_STATE);
	s->capture = must(calloc(1, sizeof *s->capture));
	s->capture_broken = false;
	s->capture_global = mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
	return leave(CUDA_SUCCESS);
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *out) {
	struct stream *s;
	TRY(enter_stream(handle, &s));
	struct graph *g = s->capture;
	if (!g)
		return leave(CUDA_ERROR_ILLEGAL_STATE);
	s->capture = NULL;
	if (s->capture_broken) {
		graph_free(g);
		*out = NULL;
		return leave(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	}
	handle_add(GRAPH, g);
	*out = (CUgraph)g;
	return leave(CUDA_SUCCESS);
}

static CUstreamCaptureStatus status_of(const struct stream *s) {
	if (!s->capture)
		return CU_STREAM_CAPTURE_STATUS_NONE;
	return s->capture_broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status) {
	struct stream *s;
	TRY(enter_stream(handle, &s));
	*status = status_of(s);
	return leave(CUDA_SUCCESS);
}

CUresult cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
				const CUgraphNode **dependencies, size_t *count) {
	struct stream *s;
	TRY(enter_stream(handle, &s));
	*status = status_of(s);
	if (id)
		*id = s->id;
	if (graph)
		*graph = (CUgraph)s->capture;
	if (dependencies)
		*dependencies = NULL;
	if (count)
		*count = 0;
	return leave(CUDA_SUCCESS);
}

static _Thread_local CUstreamCaptureMode thread_mode;

/* The driver watches for calls that could break a capture; here each call that does says so itself. */
CUresult capture_check(void) {
	CUresult result = CUDA_SUCCESS;
	if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return result;
	for (struct context *c = contexts_all(); c; c = c->next) {
		for (struct stream *s = c->streams; s; s = s->next) {
			if (s->capture && s->capture_global) {
				s->capture_broken = true;
				result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
			}
		}
	}
	return result;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
	CUstreamCaptureMode before = thread_mode;
	thread_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph handle) {
	TRY(enter());
	if (!handle_is(GRAPH, handle))
		return leave(CUDA_ERROR_INVALID_VALUE);
	handle_remove(handle);
	graph_free((struct graph *)handle);
	return leave(CUDA_SUCCESS);
}
