#include "fingerprint.h"

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
	bool good = true;
	if (ndpy_is(answer, TUPLE)) {
		ptrdiff_t n = ndpy_tuple_len(answer);
		good = word(r, (uint64_t)n);
		for (ptrdiff_t i = 0; good && i < n; i++) good = number(r, ndpy_tuple_item(answer, i));
	} else {
		good = number(r, answer);
	}
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

// The attribute that only the object's own __dict__ can have: a new reference, or 0 without an error.
static ndpy own_attribute(ndpy o, ndpy key) {
	if (ndpy_class_has(o, key)) return 0;
	ndpy v = ndpy_get_generic(o, key);
	if (!v) ndpy_clear();
	return v;
}

static ndpy registered(ndpy o, const ndpy_step *s) {
	if (ndpy_class_has(o, s->key)) return 0;
	ndpy dict = ndpy_own_dict(o), found = 0;
	if (!dict) {
		ndpy_clear();
		return 0;
	}
	found = ndpy_dict_get(dict, s->key);
	for (int i = 0; !found && i < NDPY_REGISTRIES && s->registries[i]; i++) {
		ndpy registry = ndpy_dict_get(dict, s->registries[i]);
		if (!registry) continue;
		found = ndpy_dict_get(registry, s->key);
		ndpy_decref(registry);
	}
	ndpy_decref(dict);
	return found;
}

ndpy ndpy_follow(ndpy o, const ndpy_step *s) {
	ndpy type = ndpy_type(o);
	ndpy_decref(type); // o has one
	if (type != s->type) return 0;
	switch (s->kind) {
	case NDPY_ATTRIBUTE: return own_attribute(o, s->key);
	case NDPY_GLOBAL: return ndpy_dict_get(ndpy_module_dict(o), s->key);
	case NDPY_KEY: return ndpy_dict_get(o, s->key);
	case NDPY_INDEX: return ndpy_sequence_get(o, s->index);
	case NDPY_REGISTERED: return registered(o, s);
	default: return 0;
	}
}

static ndpy find(const ndpy_watch *w) {
	ndpy o = w->base ? w->base : ndpy_globals();
	if (!o) return 0;
	ndpy_incref(o);
	const ndpy_step *steps = (const ndpy_step *)w->steps;
	for (int i = 0; o && i < w->count; i++) {
		ndpy next = ndpy_follow(o, &steps[i]);
		ndpy_decref(o);
		o = next;
	}
	return o;
}

int ndpy_watch_begin(ndpy_watch *w, ndpy o, uint64_t *to) {
	ndpy found = find(w);
	if (found) ndpy_decref(found);
	struct row r = {.write = to, .limit = NDPY_WORDS};
	if (found != o || !words(o, &w->marks, &r)) {
		ndpy_clear();
		return 0;
	}
	w->length = r.count;
	return 1;
}

int ndpy_watch_same(const ndpy_watch *w) {
	if (w->dead) return 0;
	ndpy o = find(w);
	if (!o) return 0;
	struct row r = {.compare = (const uint64_t *)w->words, .limit = w->length};
	bool same = words(o, &w->marks, &r);
	if (!same) ndpy_clear();
	ndpy_decref(o);
	return same;
}

int ndpy_watch_moved(const ndpy_watch *w, ndpy o, uint64_t *to) {
	struct row r = {.write = to, .limit = NDPY_WORDS};
	if (w->dead || !words(o, &w->marks, &r)) {
		ndpy_clear();
		return 0;
	}
	const uint64_t *before = (const uint64_t *)w->words;
	return r.count == w->length && memcmp(to + 1, before + 1, (r.count - 1) * sizeof *to) == 0;
}

void ndpy_check_all(uintptr_t state, const uint32_t *shut, ndpy_check *checks, size_t n) {
	ndpy_enter(state);
	for (ndpy_check *c = checks; c < checks + n; c++) {
		c->same = !__atomic_load_n(shut, __ATOMIC_ACQUIRE) && ndpy_watch_same((const ndpy_watch *)c->watch);
		if (c->same && c->size) memcpy((void *)c->to, (const void *)c->from, c->size);
	}
	ndpy_leave();
}
