/*
 * Streams work: a queue of operations, done one after another by a thread that lives as long as there
 * are some. Each operation is late by a time that depends on the seed alone, so that whoever does not
 * wait for it sees old data.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* --------------------------------------------------------------------------------------- marks */

bool marks_reached(const struct marks *m) {
	for (size_t i = 0; i < m->count; i++) {
		if (m->all[i].stream->done < m->all[i].position)
			return false;
	}
	return true;
}

void marks_add(struct marks *m, struct stream *s, uint64_t position) {
	if (s->done >= position)
		return;
	m->all = must(realloc(m->all, (m->count + 1) * sizeof *m->all));
	m->all[m->count++] = (struct mark){s, position};
	s->references++;
}

void marks_copy(struct marks *to, const struct marks *from) {
	for (size_t i = 0; i < from->count; i++)
		marks_add(to, from->all[i].stream, from->all[i].position);
}

void marks_clear(struct marks *m) {
	for (size_t i = 0; i < m->count; i++)
		stream_unreference(m->all[i].stream);
	free(m->all);
	*m = (struct marks){0};
}

static void wait_for_marks(const struct marks *m) {
	while (!marks_reached(m))
		wait_for_change();
}

/* ---------------------------------------------------------------------------------- operations */

void *operation_new(size_t size, CUresult (*run)(struct operation *)) {
	struct operation *o = must(calloc(1, size));
	o->run = run;
	return o;
}

void operation_free(struct operation *o) {
	if (o->drop)
		o->drop(o);
	marks_clear(&o->after);
	free(o);
}

static CUresult state(const struct stream *s) {
	return s->context_id == s->context->id ? context_state(s->context) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

bool context_broken(const struct operation *o) {
	lock();
	bool broken = state(o->stream) != CUDA_SUCCESS;
	unlock();
	return broken;
}

void pass_time(const struct operation *o, uint64_t us) {
	enum { STEP = 500 };
	for (uint64_t now = now_us(), end = now + us; now < end && !context_broken(o); now = now_us())
		pause_us(end - now < STEP ? (unsigned)(end - now) : STEP);
}

void *read_slowly(const struct operation *o, const void *from, size_t size, uint64_t more_us) {
	enum { GARBAGE = 0xbd };
	unsigned char *first = memcpy(must(malloc(size)), from, size);
	if (o->delay_us + more_us == 0)
		return first;
	pass_time(o, o->delay_us + more_us);
	const unsigned char *second = from;
	if (memcmp(first, second, size) == 0)
		return first;
	fprintf(stderr, "cudasim: memory at %p changed while it was read\n", from);
	for (size_t i = 0; i < size; i++) {
		if (first[i] != second[i])
			first[i] = GARBAGE;
	}
	return first;
}

/* Between half of the longest delay and all of it. */
static unsigned delay_of(const struct stream *s) {
	unsigned half = sim_delay_us / 2;
	return half + seeded((unsigned)s->id, (unsigned)s->done, sim_delay_us - half + 1);
}

/* Operations of a broken context are not done, only dropped: nothing may wait for them for ever. */
static CUresult perform(struct operation *o) {
	struct stream *s = o->stream;
	while (!marks_reached(&o->after) && state(s) == CUDA_SUCCESS)
		wait_for_change();
	if (state(s) != CUDA_SUCCESS)
		return CUDA_SUCCESS;
	o->delay_us = o->prompt ? 0 : delay_of(s);
	unlock();
	if (!o->reads)
		pass_time(o, o->delay_us);
	CUresult result = o->run(o);
	lock();
	return result;
}

static void *work(void *argument) {
	struct stream *s = argument;
	lock();
	while (s->first) {
		struct operation *o = s->first;
		CUresult result = perform(o);
		if (result != CUDA_SUCCESS && state(s) == CUDA_SUCCESS)
			context_fail(s->context, result);
		s->first = o->next;
		if (!s->first)
			s->last = &s->first;
		s->done++;
		operation_free(o);
		pthread_cond_broadcast(&sim_changed);
	}
	s->working = false;
	stream_unreference(s);
	unlock();
	return NULL;
}

/* The program's signals are not for threads that it does not know of. */
static bool start_thread(struct stream *s) {
	sigset_t every, before;
	pthread_t thread;
	sigfillset(&every);
	pthread_sigmask(SIG_BLOCK, &every, &before);
	bool started = pthread_create(&thread, NULL, work, s) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (started)
		pthread_detach(thread);
	return started;
}

/* The default stream waits for all blocking ones, and they for it. */
static CUresult order(struct stream *s, struct operation *o) {
	struct context *c = s->context;
	if (s->flags & CU_STREAM_NON_BLOCKING)
		return CUDA_SUCCESS;
	if (s != c->legacy) {
		marks_add(&o->after, c->legacy, c->legacy->queued);
		return CUDA_SUCCESS;
	}
	for (struct stream *t = c->streams; t; t = t->next) {
		if (t == s || t->flags & CU_STREAM_NON_BLOCKING)
			continue;
		if (t->capture) {
			t->capture_broken = true;
			return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
		}
		marks_add(&o->after, t, t->queued);
	}
	return CUDA_SUCCESS;
}

CUresult stream_queue(struct stream *s, struct operation *o) {
	o->stream = s;
	CUresult result = state(s);
	if (result == CUDA_SUCCESS && s->capture)
		return graph_add(s->capture, o);
	if (result == CUDA_SUCCESS)
		result = order(s, o);
	if (result != CUDA_SUCCESS) {
		operation_free(o);
		return result;
	}
	if (s->queued - s->done >= s->room)
		wait_closed(s->context, &s->done, s->queued + 1 - s->room);
	*s->last = o;
	s->last = &o->next;
	s->queued++;
	if (!s->working) {
		s->working = true;
		s->references++;
		if (!start_thread(s))
			must(NULL);
	}
	return CUDA_SUCCESS;
}

/* ---------------------------------------------------------------------------- streams as objects */

/* The real driver's queues are bounded, too; this is about what one holds. */
enum { QUEUE_ROOM = 1024 };

struct stream *stream_create(struct context *c, unsigned flags, int priority) {
	static uint64_t ids;
	struct stream *s = must(calloc(1, sizeof *s));
	s->context = c;
	s->context_id = c->id;
	s->flags = flags;
	s->priority = priority;
	s->room = QUEUE_ROOM;
	s->id = ++ids;
	s->references = 1;
	s->last = &s->first;
	s->next = c->streams;
	c->streams = s;
	handle_add(STREAM, s);
	return s;
}

/* A stream that is destroyed still does what it was given. */
void stream_retire(struct stream *s) {
	s->destroyed = true;
	handle_remove(s);
	stream_unreference(s);
}

void stream_unreference(struct stream *s) {
	if (--s->references)
		return;
	struct stream **p = &s->context->streams;
	while (*p != s)
		p = &(*p)->next;
	*p = s->next;
	free(s);
}

static struct stream *of_this_thread(struct context *c) {
	for (struct stream *s = c->streams; s; s = s->next) {
		if (s->per_thread && !s->destroyed && pthread_equal(s->thread, pthread_self()))
			return s;
	}
	struct stream *s = stream_create(c, CU_STREAM_DEFAULT, 0);
	s->per_thread = true;
	s->thread = pthread_self();
	return s;
}

CUresult stream_of(struct context *c, CUstream handle, struct stream **s) {
	if (!handle || handle == CU_STREAM_LEGACY)
		*s = c->legacy;
	else if (handle == CU_STREAM_PER_THREAD)
		*s = of_this_thread(c);
	else if (handle_is(STREAM, handle))
		*s = (struct stream *)handle;
	else
		return CUDA_ERROR_INVALID_HANDLE;
	return context_state((*s)->context);
}

CUresult stream_finish(struct stream *s) {
	struct context *c = s->context;
	struct marks m = {0};
	if (s->capture) {
		s->capture_broken = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	marks_add(&m, s, s->queued);
	wait_for_marks(&m);
	marks_clear(&m);
	return context_state(c);
}

CUresult context_finish(struct context *c) {
	struct marks m = {0};
	for (struct stream *s = c->streams; s; s = s->next)
		marks_add(&m, s, s->queued);
	wait_for_marks(&m);
	marks_clear(&m);
	return context_state(c);
}
