/* Events, for the files that record and share them. */
#ifndef CUDASIM_EVENTS_H
#define CUDASIM_EVENTS_H

#include <stdio.h>

#include "sim.h"

/* Where two processes keep what they know of one event. */
struct shared_event {
	_Atomic uint64_t recorded, done; /* recordings so far; the last of them that was reached */
};

struct event {
	struct context *context;
	unsigned flags, references;
	struct marks recorded;
	bool captured;
	uint64_t time_us; /* when it was reached last */
	struct shared_event *shared;
	int fd;     /* of shared, in the process that made the event */
	pid_t peer; /* in the others: that process */
	struct event *next;
};

struct event *event_new(struct context *c, unsigned flags);
CUresult event_share(struct event *e); /* with other processes */

#endif
