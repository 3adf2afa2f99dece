/*
 * The gate between system calls that fill memory (filling.c) and promotion (promote.c).
 *
 * While a piece of a block is being promoted nobody can write there. Threads wait, but a system call would fail with
 * EFAULT. So each call that may write into the heap's memory says where. A piece is closed only when no call writes
 * there, and a call that comes while it is closed waits until it is open again.
 *
 * Calls come from signal handlers and between vfork and exec, and may never return (siglongjmp, a thread that is
 * cancelled). So all this takes no lock, and a place that is never given back only keeps its addresses from being
 * promoted.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "heap.h"

/* A test builds the heap without the gate, to see that the tests of promotion notice. */
#ifdef HEAP_TEST_GATE_OPEN
static const bool works = false;
#else
static const bool works = true;
#endif

enum { PLACES = 64, PAUSE_US = 20, TRIES = 1000 };

/* Where calls under way write. A place is free if its end is 0. */
static struct {
	_Atomic uintptr_t from, to;
} places[PLACES];
static _Atomic uint32_t elsewhere; /* calls under way for which there was no place: they may write anywhere */

/* The piece that is closed. from is written before to, and read after it. */
static _Atomic uintptr_t closed_from, closed_to;

void gate_open(void) {
	atomic_store(&closed_to, 0);
	atomic_store(&closed_from, 0);
}

static bool closed(uintptr_t from, uintptr_t to) {
	return from < atomic_load(&closed_to) && to > atomic_load(&closed_from);
}

static bool filled(uintptr_t from, uintptr_t to) {
	for (unsigned i = 0; works && i < PLACES; i++) {
		if (atomic_load(&places[i].to) > from && atomic_load(&places[i].from) < to)
			return true;
	}
	return works && atomic_load(&elsewhere) != 0;
}

bool gate_close(uintptr_t from, size_t size, const _Atomic uint32_t *give_up) {
	for (int i = 0; i < TRIES && !atomic_load(give_up); i++) {
		/* First say that it is closed, then look: a call does it the other way round. */
		atomic_store(&closed_from, from);
		atomic_store(&closed_to, works ? from + size : 0);
		if (!filled(from, from + size))
			return true;
		gate_open();
		usleep(PAUSE_US);
	}
	return false;
}

void gate_forget(void) {
	gate_open();
	memset(places, 0, sizeof places);
	atomic_store(&elsewhere, 0);
}

/* While only one bound of a place is written, it stands for more than it should, never for less. */

static int take_place(uintptr_t from, uintptr_t to) {
	unsigned first = (unsigned)((uintptr_t)__builtin_frame_address(0) >> 12);
	for (unsigned i = 0; i < PLACES; i++) {
		unsigned n = (first + i) % PLACES;
		uintptr_t end = 0;
		if (atomic_compare_exchange_strong(&places[n].to, &end, to)) {
			atomic_store(&places[n].from, from);
			return (int)n;
		}
	}
	atomic_fetch_add(&elsewhere, 1);
	return GATE_NO_PLACE;
}

void gate_leave_place(int place) {
	if (place >= 0) {
		atomic_store(&places[place].from, 0);
		atomic_store(&places[place].to, 0);
	} else if (place == GATE_NO_PLACE) {
		atomic_fetch_sub(&elsewhere, 1);
	}
}

int gate_take_place(const void *p, size_t size) {
	int saved = errno;
	uintptr_t from = (uintptr_t)p, to = from + size < from ? UINTPTR_MAX : from + size;
	int place = take_place(from, to);
	while (closed(from, to)) {
		gate_leave_place(place);
		usleep(PAUSE_US);
		place = take_place(from, to);
	}
	errno = saved;
	return place;
}
