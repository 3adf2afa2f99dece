#define _GNU_SOURCE
#include "fingerprint.h"
#include "fields.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

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

static bool word_behind(ndpy o, const ndpy_marks *m, struct row *r) {
	ndpy behind = FIELD(ndpy, o, m->pointer);
	return behind && word(r, FIELD(uint64_t, behind, m->behind));
}

// What a thread of the program's may change without the GIL.
static bool loose_words(ndpy o, const ndpy_marks *m, struct row *r) {
	return (!m->tensor || tensor_words(o, m, r)) && (!m->pointer || word_behind(o, m, r));
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

static bool plain(struct row *r, ndpy o) {
	enum { INT = 1 << 24, TUPLE = 1 << 26, STR = 1 << 28 }; // flags of types
	if (o == ndpy_none()) return word(r, 'n');
	if (ndpy_is(o, INT)) return word(r, 'i') && number(r, o);
	if (ndpy_is(o, TUPLE)) {
		ndpy_incref(o);
		return word(r, 't') && numbered(r, o);
	}
	ptrdiff_t n;
	uint64_t text = 0;
	const char *utf8 = ndpy_is(o, STR) ? ndpy_utf8(o, &n) : NULL;
	if (!utf8 || n > (ptrdiff_t)sizeof text) return false;
	memcpy(&text, utf8, (size_t)n);
	return word(r, 's') && word(r, text);
}

// Takes over the dict, or 0. Its items are written in order, each as a key and a value.
static bool dictionary(struct row *r, ndpy dict) {
	enum { DICT = 1 << 29 };
	ndpy items = dict && ndpy_is(dict, DICT) ? ndpy_dict_items(dict) : 0;
	bool good = items != 0;
	for (ptrdiff_t i = 0; good && i < ndpy_tuple_len(items); i++) {
		ndpy pair = ndpy_tuple_item(items, i);
		good = plain(r, ndpy_tuple_item(pair, 0)) && plain(r, ndpy_tuple_item(pair, 1));
	}
	if (items) ndpy_decref(items);
	if (dict) ndpy_decref(dict);
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
	if (ndpy_class(o) != m->type || ndpy_gone(m->weak, m->type) || (m->itself && !word(r, o))) return false;
	if ((m->data && !struct_words(o, m, r)) || !loose_words(o, m, r)) return false;
	for (int i = 0; i < m->attribute_count; i++)
		if (!constant(r, ndpy_get_of(o, m->type, m->attributes[i]))) return false;
	for (int i = 0; i < m->method_count; i++)
		if (!constant(r, ndpy_ask(o, m->methods[i]))) return false;
	for (int i = 0; i < m->number_count; i++)
		if (!numbered(r, get_through(o, m->numbers[i]))) return false;
	return !m->dict || dictionary(r, ndpy_get_of(o, m->type, m->dict));
}

// Whether what a class defines gives way to what an object's own __dict__ has, as the default of a dataclass's field does.
static bool gives_way(ndpy class, ndpy key) {
	static ndpy names[2]; // the GIL is held
	static const char *const texts[] = {"__set__", "__delete__"};
	ndpy found = ndpy_class_get(class, key);
	for (int i = 0; found && i < 2; i++) {
		if (!names[i] && !(names[i] = ndpy_new_interned(texts[i], strlen(texts[i])))) ndpy_clear();
		if (!names[i] || ndpy_class_get(ndpy_class(found), names[i])) return false;
	}
	return found != 0;
}

// The attribute that the object's own __dict__ has, or a field: a new reference, or 0 without an error.
static ndpy own_attribute(ndpy o, ndpy key) {
	ndpy class = ndpy_class(o);
	if (ndpy_class_has(class, key) && !ndpy_is_field(ndpy_class_get(class, key))) {
		ndpy own = gives_way(class, key) ? ndpy_own_dict(o) : 0;
		ndpy found = own ? ndpy_dict_get(own, key) : 0;
		ndpy_clear();
		ndpy_decref(own);
		return found;
	}
	ndpy v = ndpy_field(o, ndpy_class_get(class, key), key);
	if (!v) ndpy_clear();
	return v;
}

// What a getter in C gives: a new reference, or 0 without an error.
static ndpy gotten(ndpy o, ndpy key) {
	ndpy v = ndpy_is_getter(ndpy_class_get(ndpy_class(o), key)) ? ndpy_get_generic(o, key) : 0;
	if (!v) ndpy_clear();
	return v;
}

static ndpy gotten_if(ndpy o, ndpy key, const ndpy_asked *a) {
	const ndpy *one_of = a->registries;
	bool holds = !one_of[0];
	for (int i = 0; !holds && i < NDPY_REGISTRIES && one_of[i]; i++) {
		ndpy v = gotten(o, one_of[i]);
		holds = v == ndpy_true();
		ndpy_decref(v);
	}
	return holds && (!a->unless || ndpy_steady(a->unless)) ? gotten(o, key) : 0;
}

// The object itself, if it still has what is expected: a new reference, or 0 without an error.
static ndpy beside(ndpy o, const ndpy_step *s) {
	ndpy v = ndpy_gone(s->weak_expected, s->expected) ? 0 : gotten(o, s->key);
	enum { SEQUENCES = 3 << 25 }; // flags of types: list and tuple
	if (v && s->index >= 0) {
		ndpy item = ndpy_is(v, SEQUENCES) ? ndpy_sequence_get(v, s->index) : 0;
		ndpy_decref(v);
		v = item;
	}
	ndpy_decref(v); // its owner has it
	if (!v || v != s->expected) return 0;
	ndpy_incref(o);
	return o;
}

void ndpy_hooks(ndpy class, ndpy hooks[NDPY_HOOKS]) {
	static ndpy names[NDPY_HOOKS]; // the GIL is held
	static const char *const texts[NDPY_HOOKS] = {"__getattr__", "__getitem__"};
	for (int i = 0; i < NDPY_HOOKS; i++) {
		if (!names[i] && !(names[i] = ndpy_new_interned(texts[i], strlen(texts[i])))) ndpy_clear();
		hooks[i] = names[i] ? ndpy_class_get(class, names[i]) : 0;
	}
}

// What was found on the way from one object, for more steps that ask as one has: the step, whose demands were met, or
// NULL; and the object's dicts, each a reference, or 0.
struct way {
	const ndpy_step *met;
	ndpy own, registries[NDPY_REGISTRIES];
};

static void drop_dicts(struct way *w) {
	if (!w->own) return;
	ndpy_decref(w->own);
	ndpy_decref_all(w->registries, NDPY_REGISTRIES);
	*w = (struct way){.met = w->met};
}

static ndpy registered(ndpy o, const ndpy_step *s, struct way *w) {
	const ndpy_asked *a = &s->asked;
	bool item = a->kind == NDPY_REGISTERED_ITEM;
	if (!item && ndpy_class_has(a->type, s->key)) return 0;
	if (!w->own && !(w->own = ndpy_own_dict(o))) {
		ndpy_clear();
		return 0;
	}
	ndpy found = item ? 0 : ndpy_dict_get(w->own, s->key);
	for (int i = 0; !found && i < NDPY_REGISTRIES && a->registries[i]; i++) {
		if (!w->registries[i]) w->registries[i] = ndpy_dict_get(w->own, a->registries[i]);
		if (w->registries[i]) found = ndpy_dict_get(w->registries[i], s->key);
	}
	return found;
}

// Whether the class is what it was.
static bool is_met(const ndpy_asked *a) {
	if (ndpy_gone(a->weak, a->type)) return false;
	if (a->kind == NDPY_GLOBAL || a->kind == NDPY_KEY || a->kind == NDPY_INDEX) return true;
	if (!ndpy_class_generic(a->type) && !ndpy_leads(a->type)) return false;
	if (a->kind == NDPY_ATTRIBUTE || a->kind == NDPY_GETTER || a->kind == NDPY_BESIDE || a->kind == NDPY_LOCAL) return true;
	ndpy hooks[NDPY_HOOKS];
	ndpy_hooks(a->type, hooks);
	for (int i = 0; i < NDPY_HOOKS; i++)
		if (hooks[i] != a->hooks[i] || ndpy_gone(a->weak_hooks[i], hooks[i])) return false;
	return true;
}

static ndpy item(ndpy o, ndpy key) {
	ndpy dict = ndpy_dict_behind(o);
	return dict ? ndpy_dict_get(dict, key) : 0;
}

static ndpy follow(ndpy o, const ndpy_step *s, struct way *w) {
	const ndpy_asked *a = &s->asked;
	if (ndpy_class(o) != a->type) return 0;
	if (!w->met || memcmp(a, &w->met->asked, sizeof *a) != 0) {
		drop_dicts(w);
		if (!is_met(a)) return 0;
		w->met = s;
	}
	switch (a->kind) {
	case NDPY_ATTRIBUTE: return own_attribute(o, s->key);
	case NDPY_GLOBAL: return ndpy_dict_get(ndpy_module_dict(o), s->key);
	case NDPY_KEY: return item(o, s->key);
	case NDPY_LOCAL: return ndpy_waiting_local(o, s->key);
	case NDPY_INDEX: return ndpy_sequence_get(o, s->index);
	case NDPY_GETTER: return gotten_if(o, s->key, a);
	case NDPY_BESIDE: return beside(o, s);
	case NDPY_REGISTERED:
	case NDPY_REGISTERED_ITEM: return registered(o, s, w);
	default: return 0;
	}
}

ndpy ndpy_follow(ndpy o, const ndpy_step *s) {
	struct way w = {0};
	ndpy found = follow(o, s, &w);
	drop_dicts(&w);
	return found;
}

// The objects along the steps of a watch, each with a reference.
struct trail {
	ndpy globals; // of __main__: a reference, or 0
	const ndpy_step *steps;
	int length; // of at
	ndpy at[NDPY_STEPS + 1];
	struct way from[NDPY_STEPS + 1]; // from each of them
};

static void cut(struct trail *t, int length) {
	while (t->length > length) {
		ndpy_decref(t->at[--t->length]);
		drop_dicts(&t->from[t->length]);
	}
}

static void end_trail(struct trail *t) {
	cut(t, 0);
	ndpy_decref(t->globals);
}

// Borrowed, or 0: what it was when the trail first needed it.
static ndpy globals_of(struct trail *t) {
	if (!t->globals && (t->globals = ndpy_globals())) ndpy_incref(t->globals);
	return t->globals;
}

// The object that the steps lead to, which the trail holds, or 0 without an error. What the steps have in common with
// those before is not followed again.
static ndpy find(const ndpy_watch *w, struct trail *t) {
	const ndpy_step *steps = (const ndpy_step *)w->steps;
	ndpy base = w->base ? w->base : globals_of(t);
	if (!base) return 0;
	int n = 0;
	if (t->length > 0 && t->at[0] == base) {
		while (n < w->count && n < t->length - 1 && memcmp(&steps[n], &t->steps[n], sizeof *steps) == 0) n++;
		cut(t, n + 1);
	} else {
		cut(t, 0);
		ndpy_incref(base);
		t->at[t->length++] = base;
	}
	t->steps = steps;
	for (; n < w->count; n++) {
		ndpy next = follow(t->at[n], &steps[n], &t->from[n]);
		if (!next) return 0;
		t->at[t->length++] = next;
	}
	return t->at[n];
}

int ndpy_watch_begin(ndpy_watch *w, ndpy o, uint64_t *to) {
	struct trail t = {0};
	struct row r = {.write = to, .limit = NDPY_WORDS};
	bool begun = find(w, &t) == o && words(o, &w->marks, &r);
	if (!begun) ndpy_clear();
	end_trail(&t);
	w->length = r.count;
	return begun;
}

static bool dead(const ndpy_watch *w) {
	return w->dead || (w->under && ((const ndpy_watch *)w->under)->dead);
}

// The object that is the same as it was, which the trail holds, or 0.
static ndpy same(const ndpy_watch *w, struct trail *t) {
	ndpy o = dead(w) ? 0 : find(w, t);
	struct row r = {.compare = (const uint64_t *)w->words, .limit = w->length};
	if (!o || words(o, &w->marks, &r)) return o;
	ndpy_clear();
	return 0;
}

int ndpy_watch_same(const ndpy_watch *w) {
	struct trail t = {0};
	bool is = same(w, &t) != 0;
	end_trail(&t);
	return is;
}

// Whether an object that was the same still has its memory, which a thread of the program's may have replaced since,
// without the GIL.
static bool there(const ndpy_watch *w, ndpy o) {
	const ndpy_marks *m = &w->marks;
	struct row r = {.compare = (const uint64_t *)w->words, .limit = w->length};
	bool is = m->tensor && !m->itself && !m->data ? loose_words(o, m, &r) : words(o, m, &r);
	if (!is) ndpy_clear();
	return is;
}

int ndpy_watch_moved(const ndpy_watch *w, ndpy o, uint64_t *to) {
	struct row r = {.write = to, .limit = w->length};
	if (dead(w) || !words(o, &w->marks, &r)) {
		ndpy_clear();
		return 0;
	}
	const uint64_t *before = (const uint64_t *)w->words;
	return r.count == w->length && memcmp(to + 1, before + 1, (r.count - 1) * sizeof *to) == 0;
}

// Copies that are made together, in one call of the kernel, which finds out whether the memory can be read. A thread of
// the program's may free it meanwhile, without the GIL: nobody sees a copy before the object is known to have had the
// memory to the end.
enum {
	BATCH = 64,
	LINE = 64, // of a cache
	ROOM = NDPY_APART + 2 * LINE,
};

// What is read for a copy: whole lines, which are where the memory is. They lie in the file as they lie in memory, so that the
// kernel takes each number at once, however many bytes were read before it.
static struct iovec lines(const ndpy_check *c) {
	uintptr_t from = c->from / LINE * LINE;
	return (struct iovec){(void *)from, (c->from + c->size + LINE - 1) / LINE * LINE - from};
}

struct batch {
	int count;
	size_t size;
	ndpy_check *checks[BATCH];
	ndpy objects[BATCH]; // with references
	struct iovec from[BATCH];
};

// Where the copies are read. The file is opened before the program runs, and is none that the program could have closed.
static struct {
	int file;
	char *mapped; // ROOM bytes, or NULL
} apart;

void ndpy_open_checks(void) {
	if (apart.mapped) return;
	enum { CLOEXEC = 1, NOEXEC_SEAL = 8 }; // of MFD_; the second one Linux knows from 6.3 on, and may demand
	// glibc has a function for it from 2.27 on.
	apart.file = (int)syscall(SYS_memfd_create, "ndbridge-checks", CLOEXEC | NOEXEC_SEAL);
	if (apart.file < 0) apart.file = (int)syscall(SYS_memfd_create, "ndbridge-checks", CLOEXEC);
	if (ftruncate(apart.file, ROOM) != 0) return;
	void *mapped = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, apart.file, 0);
	if (mapped != MAP_FAILED) apart.mapped = mapped;
}

// Gives how many bytes could be read. To write them into a file takes the kernel a fraction of what it takes to read them
// as another process would, but the program may have limited how large its files are.
static ssize_t read_apart(const struct batch *b) {
	if (!apart.mapped) return 0;
	ssize_t got = pwritev(apart.file, b->from, b->count, 0);
	if (got == (ssize_t)b->size) return got;
	struct iovec to = {apart.mapped, b->size};
	return process_vm_readv(getpid(), &to, 1, b->from, (unsigned long)b->count, 0);
}

static void flush(struct batch *b) {
	ssize_t got = b->count == 0 ? 0 : read_apart(b);
	char *from = apart.mapped;
	for (int i = 0; i < b->count; i++) {
		ndpy_check *c = b->checks[i];
		got -= (ssize_t)b->from[i].iov_len;
		c->same = got >= 0 && there((const ndpy_watch *)c->watch, b->objects[i]);
		if (c->same) memcpy((void *)c->to, from + c->from % LINE, c->size);
		from += b->from[i].iov_len;
		ndpy_decref(b->objects[i]);
	}
	b->count = 0;
	b->size = 0;
}

static void add(struct batch *b, ndpy_check *c, ndpy o) {
	struct iovec read = lines(c);
	if (b->count == BATCH || b->size + read.iov_len > ROOM) flush(b);
	ndpy_incref(o);
	b->checks[b->count] = c;
	b->objects[b->count] = o;
	b->from[b->count++] = read;
	b->size += read.iov_len;
}

// Copies what stays while the GIL is held, unless it has a page to itself: a program may have unmapped that.
static bool copy_owned(const ndpy_check *c, ndpy o) {
	const uintptr_t page = 4096; // the least that there is
	const ndpy_marks *m = &((const ndpy_watch *)c->watch)->marks;
	bool has_page = (c->from + page - 1) / page < (c->from + c->size) / page;
	if (has_page || !m->data || !(FIELD(unsigned, o, m->flags) & m->owned)) return false;
	memcpy((void *)c->to, (const void *)c->from, c->size);
	return true;
}

void ndpy_check_all(uintptr_t state, const uint32_t *shut, ndpy_check *checks, size_t n) {
	struct trail t = {0};
	struct batch b;
	b.count = 0;
	b.size = 0;
	ndpy_enter(state);
	for (ndpy_check *c = checks; c < checks + n && !__atomic_load_n(shut, __ATOMIC_ACQUIRE); c++) {
		ndpy o = same((const ndpy_watch *)c->watch, &t);
		c->same = o != 0;
		if (o && c->size && !copy_owned(c, o)) add(&b, c, o);
	}
	flush(&b);
	end_trail(&t);
	ndpy_leave();
}
