#include "glance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

// DLTensor, as dlpack.h has it.
struct tensor {
	void *data;
	int32_t device[2], rank;
	uint8_t code, bits;
	uint16_t lanes;
	int64_t *shape, *strides; // strides may be NULL
	uint64_t offset;
};

enum { MAX_RANK = 64 };

// A fork makes memory private that was shared, so what was granted before one is not granted again after
// it. The two numbers are equal while no fork is under way.
static _Atomic uint64_t begun, done;

static void fork_begins(void) { atomic_fetch_add(&begun, 1); }
static void fork_is_done(void) { atomic_fetch_add(&done, 1); }

int ndpy_watch_forks(void) { return pthread_atfork(fork_begins, fork_is_done, NULL); }

// Where words are written, or compared with those that were.
struct row {
	uint64_t *write;
	const uint64_t *compare;
	size_t count, limit;
};

static bool word(struct row *r, uint64_t w) {
	if (r->count == r->limit) return false;
	size_t i = r->count++;
	if (r->write) r->write[i] = w;
	return r->write || r->compare[i] == w;
}

static bool numbers(struct row *r, const int64_t *n, int64_t rank) {
	for (int64_t i = 0; i < rank; i++)
		if (!word(r, (uint64_t)n[i])) return false;
	return true;
}

#define FIELD(type, o, offset) (*(type *)((char *)(o) + (offset)))

static bool struct_words(ndpy o, const ndpy_marks *m, struct row *r) {
	int rank = FIELD(int, o, m->rank);
	return rank >= 0 && rank <= MAX_RANK && word(r, FIELD(uint64_t, o, m->data)) && word(r, (uint64_t)rank) &&
	       numbers(r, FIELD(int64_t *, o, m->shape), rank) && numbers(r, FIELD(int64_t *, o, m->strides), rank) &&
	       word(r, FIELD(uint64_t, o, m->object)) && word(r, FIELD(unsigned, o, m->flags));
}

static bool tensor_words(ndpy o, const ndpy_marks *m, struct row *r) {
	struct tensor t = {0};
	if (((int (*)(ndpy, struct tensor *))m->tensor)(o, &t) != 0) return false;
	return t.rank >= 0 && t.rank <= MAX_RANK && (t.strides || t.rank == 0) && word(r, (uint64_t)t.data + t.offset) &&
	       word(r, (uint64_t)t.rank) && numbers(r, t.shape, t.rank) && numbers(r, t.strides, t.rank) &&
	       word(r, (uint64_t)t.code << 24 | (uint64_t)t.bits << 16 | t.lanes) &&
	       word(r, (uint64_t)(uint32_t)t.device[0] << 32 | (uint32_t)t.device[1]);
}

// Takes over the answer, a new reference or 0.
static bool constant(struct row *r, ndpy answer) {
	if (!answer) return false;
	ndpy_decref(answer);
	return word(r, answer);
}

static bool number(struct row *r, ndpy o) {
	long long n = ndpy_int64(o);
	return !(n == -1 && ndpy_failed()) && word(r, (uint64_t)n);
}

// Takes over the answer, an int, a tuple of ints, or 0.
static bool numbered(struct row *r, ndpy answer) {
	if (!answer) return false;
	enum { TUPLE = 1 << 26 }; // Py_TPFLAGS_TUPLE_SUBCLASS
	ndpy type = ndpy_type(answer);
	bool good = true;
	if (ndpy_type_flags(type) & TUPLE) {
		ptrdiff_t n = ndpy_tuple_len(answer);
		good = word(r, (uint64_t)n);
		for (ptrdiff_t i = 0; good && i < n; i++) good = number(r, ndpy_tuple_item(answer, i));
	} else {
		good = number(r, answer);
	}
	ndpy_decref(type);
	ndpy_decref(answer);
	return good;
}

static ndpy get_through(ndpy o, const ndpy path[2]) {
	ndpy first = ndpy_get(o, path[0]);
	if (!first || !path[1]) return first;
	ndpy second = ndpy_get(first, path[1]);
	ndpy_decref(first);
	return second;
}

static bool words(ndpy o, const ndpy_marks *m, struct row *r) {
	ndpy type = ndpy_type(o);
	ndpy_decref(type); // o has one
	if (type != m->type || (m->itself && !word(r, o))) return false;
	if (m->data && !struct_words(o, m, r)) return false;
	if (m->tensor && !tensor_words(o, m, r)) return false;
	for (int i = 0; i < NDPY_MARKS && m->attributes[i]; i++)
		if (!constant(r, ndpy_get(o, m->attributes[i]))) return false;
	for (int i = 0; i < NDPY_MARKS && m->methods[i]; i++)
		if (!constant(r, ndpy_ask(o, m->methods[i]))) return false;
	for (int i = 0; i < NDPY_MARKS && m->numbers[i][0]; i++)
		if (!numbered(r, get_through(o, m->numbers[i]))) return false;
	return true;
}

int ndpy_look(ndpy o, ndpy_glance *g) {
	uint64_t ended = atomic_load(&done);
	g->forks = atomic_load(&begun);
	if (g->forks != ended) return 0;
	struct row r = {.write = g->words, .limit = NDPY_WORDS};
	if (!words(o, &g->marks, &r)) {
		ndpy_clear();
		return 0;
	}
	g->count = r.count;
	return 1;
}

int ndpy_same(ndpy o, const ndpy_glance *g) {
	struct row r = {.compare = g->words, .limit = g->count};
	if (words(o, &g->marks, &r)) return atomic_load(&begun) == g->forks;
	ndpy_clear();
	return 0;
}

int ndpy_same_global(uintptr_t state, int held, const uint32_t *shut, ndpy name, const ndpy_glance *g) {
	int same = 0;
	if (!held) held = ndpy_enter(state);
	if (!__atomic_load_n(shut, __ATOMIC_ACQUIRE)) {
		ndpy o = ndpy_global(name);
		if (o) {
			same = ndpy_same(o, g);
			ndpy_decref(o);
		} else {
			ndpy_clear();
		}
	}
	if (!held) ndpy_leave();
	return same | held << 1;
}
