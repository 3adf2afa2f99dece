#define _GNU_SOURCE
#include "frames.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#define FUNCTIONS(X)                                       \
	X(void *, PyInterpreterState_Main, (void))         \
	X(uintptr_t, PyInterpreterState_ThreadHead, (void *)) \
	X(uintptr_t, PyThreadState_Next, (uintptr_t))      \
	X(uintptr_t, PyThreadState_Get, (void))            \
	X(ndpy, PyCell_Get, (ndpy))                        \
	X(ndpy, PyFunction_GetGlobals, (ndpy))             \
	X(ndpy, PyFunction_GetCode, (ndpy))

// Each is there from some version on.
#define NEWER(X)                                        \
	X(ndpy, PyThreadState_GetFrame, (uintptr_t))    \
	X(ndpy, PyFrame_GetBack, (ndpy))                \
	X(ndpy, PyFrame_GetCode, (ndpy))                \
	X(ndpy, PyFrame_GetGlobals, (ndpy))             \
	X(ndpy, PyFrame_GetVar, (ndpy, ndpy))           \
	X(ndpy, PyFrame_GetLocals, (ndpy))              \
	X(int, PyFrame_GetLasti, (ndpy))

static struct {
#define X(result, name, arguments) result(*name) arguments;
	FUNCTIONS(X)
	NEWER(X)
#undef X
	ndpy PyCell_Type, PyFrame_Type;
} api; // filled once by ndpy_open_frames

#define FIELD(type, o, offset) (*(type *)((o) + (offset)))

// Where a version, in all its releases, has what it has no function for: offsets, and 0 for what a function gives.
struct layout {
	const char *version;
	uint16_t frame;               // of a thread's state
	uint16_t filled;              // of one that is listed before it is filled: what is not 0 when it is
	uint16_t back, code, globals; // of a frame
	uint16_t inner;               // where a frame has the address of what has the rest; 0: it has that itself
	uint16_t space, fast;         // f_locals, and the variables of a function
	uint8_t sets, deletes;        // the instructions that set and delete an attribute
};

static const struct layout layouts[] = {
	{"3.8.", .frame = 24, .back = 24, .code = 32, .globals = 48, .space = 56, .fast = 360, .sets = 95, .deletes = 96},
	{"3.9.", .globals = 48, .space = 56, .fast = 360, .sets = 95, .deletes = 96},
	{"3.10.", .globals = 48, .space = 56, .fast = 352, .sets = 95, .deletes = 96},
	{"3.11.", .filled = 56, .inner = 24, .space = 24, .fast = 72, .sets = 95, .deletes = 96},
	{"3.12.", .inner = 24, .space = 40, .sets = 95, .deletes = 96},
	{"3.13.", .sets = 108, .deletes = 63},
	{"3.14.", .sets = 110, .deletes = 61},
};

static struct layout at;
static bool known;      // ndpy_open_frames has found all
static size_t ident_at; // where the state of a thread has its ident; 0: not known

// All states are larger than this.
enum { STATE_WORDS = 24 };

static void find_ident(void) {
	const uintptr_t *state = (const uintptr_t *)api.PyThreadState_Get();
	for (size_t i = 1; i < STATE_WORDS && !ident_at; i++)
		if (state[i] == ndpy_thread()) ident_at = i;
}

static bool threads_have_frames(void) {
	for (uintptr_t t = ndpy_first_thread(); t; t = ndpy_next_thread(t)) {
		ndpy frame = ndpy_thread_frame(t);
		bool good = !frame || ndpy_class(frame) == api.PyFrame_Type;
		if (good) ndpy_decref(frame);
		if (!good) return false;
	}
	return true;
}

static bool open_functions(void) {
	bool all = true;
#define X(result, name, arguments) all &= (*(void **)&api.name = dlsym(RTLD_DEFAULT, #name)) != NULL;
	FUNCTIONS(X)
#undef X
	const char *version = ndpy_version();
	for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
		if (strncmp(version, layouts[i].version, strlen(layouts[i].version)) == 0) at = layouts[i];
	return all;
}

int ndpy_open_frames(void) {
	bool all = open_functions();
#define X(result, name, arguments) *(void **)&api.name = dlsym(RTLD_DEFAULT, #name);
	NEWER(X)
#undef X
	api.PyCell_Type = (ndpy)dlsym(RTLD_DEFAULT, "PyCell_Type");
	api.PyFrame_Type = (ndpy)dlsym(RTLD_DEFAULT, "PyFrame_Type");
	all = all && api.PyCell_Type && api.PyFrame_Type && (at.frame || api.PyThreadState_GetFrame) &&
	      (at.back || api.PyFrame_GetBack) && (at.code || api.PyFrame_GetCode) && (at.globals || api.PyFrame_GetGlobals) &&
	      (at.space || api.PyFrame_GetLocals) && (at.fast || api.PyFrame_GetVar);
	if (!all || !threads_have_frames()) return 0;
	find_ident();
	return known = true;
}

// A thread that has not had Python's lock yet may be making its state, which is the first one then.
uintptr_t ndpy_first_thread(void) {
	enum { MOST = 100000 }; // it takes some instructions
	for (int i = 0; i < MOST; i++, sched_yield()) {
		uintptr_t t = api.PyInterpreterState_ThreadHead(api.PyInterpreterState_Main());
		if (!t || !at.filled || *(volatile uintptr_t *)(t + at.filled)) return t;
	}
	return 0;
}

uintptr_t ndpy_next_thread(uintptr_t thread) { return api.PyThreadState_Next(thread); }
unsigned long ndpy_thread_ident(uintptr_t thread) { return ident_at ? ((const uintptr_t *)thread)[ident_at] : 0; }

int ndpy_thread_is_one(unsigned long ident) {
	if (!ident_at && open_functions()) find_ident();
	if (!ident_at) return 1;
	int have = 0;
	for (uintptr_t t = ndpy_first_thread(); t; t = ndpy_next_thread(t)) have += ndpy_thread_ident(t) == ident;
	return have == 1;
}

static ndpy new_reference(ndpy o) {
	if (o) ndpy_incref(o);
	return o;
}

// Gives a new reference that a function of Python's has given, or 0 without an error.
static ndpy quiet(ndpy o) {
	if (!o) ndpy_clear();
	return o;
}

ndpy ndpy_thread_frame(uintptr_t thread) {
	if (!at.frame) return quiet(api.PyThreadState_GetFrame(thread));
	return new_reference(FIELD(ndpy, thread, at.frame));
}

ndpy ndpy_frame_back(ndpy frame) {
	if (!at.back) return quiet(api.PyFrame_GetBack(frame));
	return new_reference(FIELD(ndpy, frame, at.back));
}

ndpy ndpy_frame_code(ndpy frame) {
	if (!at.code) return quiet(api.PyFrame_GetCode(frame));
	return new_reference(FIELD(ndpy, frame, at.code));
}

ndpy ndpy_frame_globals(ndpy frame) {
	if (!at.globals) return quiet(api.PyFrame_GetGlobals(frame));
	return new_reference(FIELD(ndpy, frame, at.globals));
}

static uintptr_t inner(ndpy frame) { return at.inner ? FIELD(uintptr_t, frame, at.inner) : frame; }

ndpy ndpy_frame_space(ndpy frame) {
	// Before 3.13, PyFrame_GetLocals writes there.
	if (!at.space) return quiet(api.PyFrame_GetLocals(frame));
	return new_reference(FIELD(ndpy, inner(frame), at.space));
}

// An attribute of what is Python's own: a new reference, or 0 without an error.
static ndpy attribute(ndpy o, ndpy *key, const char *name) {
	if (!*key) *key = ndpy_new_interned(name, strlen(name)); // the GIL is held
	ndpy value = *key ? ndpy_get(o, *key) : 0;
	if (!value) ndpy_clear();
	return value;
}

// Names that code has, with a reference.
struct list {
	ndpy tuple;
	ptrdiff_t n;
};

static struct list names(ndpy code, ndpy *key, const char *name) {
	struct list l = {.tuple = attribute(code, key, name)};
	if (l.tuple) l.n = ndpy_tuple_len(l.tuple);
	return l;
}

static ptrdiff_t index_of(struct list l, ndpy name) {
	for (ptrdiff_t i = 0; i < l.n; i++)
		if (ndpy_tuple_item(l.tuple, i) == name) return i;
	return -1;
}

// Where in its code a frame is, in bytes; -1: it has not begun.
static ptrdiff_t last_instruction(ndpy frame) {
	static ndpy key;
	if (api.PyFrame_GetLasti) return api.PyFrame_GetLasti(frame);
	ndpy last = attribute(frame, &key, "f_lasti");
	ptrdiff_t n = last ? (ptrdiff_t)ndpy_int64(last) : -1;
	ndpy_decref(last);
	return n;
}

// What cannot be known may be so.
static bool sets_attribute(ndpy frame, ndpy code) {
	static ndpy key;
	ndpy bytes = attribute(code, &key, "co_code");
	char *instructions;
	ptrdiff_t n, at_byte = last_instruction(frame);
	bool sets = true;
	if (bytes && ndpy_bytes(bytes, &instructions, &n) == 0) {
		uint8_t does = at_byte >= 0 && at_byte < n ? (uint8_t)instructions[at_byte] : 0;
		sets = does && (does == at.sets || does == at.deletes);
	} else {
		ndpy_clear();
	}
	ndpy_decref(bytes);
	return sets;
}

// Whether a function uses the name of an attribute or of a global variable. What cannot be known may be so.
static bool uses(ndpy code, ndpy name) {
	static ndpy key;
	struct list used = names(code, &key, "co_names");
	bool is = !used.tuple || index_of(used, name) >= 0;
	ndpy_decref(used.tuple);
	return is;
}

static bool unsteady(ndpy frame, ndpy name) {
	ndpy code = ndpy_frame_code(frame);
	bool is = code && (uses(code, name) || sets_attribute(frame, code));
	ndpy_decref(code);
	return is;
}

int ndpy_steady(ndpy name) {
	bool is = known && at.sets;
	for (uintptr_t t = is ? ndpy_first_thread() : 0; t; t = ndpy_next_thread(t))
		for (ndpy frame = ndpy_thread_frame(t), back; frame; frame = back) {
			is = is && !unsteady(frame, name);
			back = is ? ndpy_frame_back(frame) : 0;
			ndpy_decref(frame);
		}
	return is;
}

// How many of the cells before the one of an index have places of their own. From 3.11 on an argument that is a cell is
// where it was.
static ptrdiff_t cells_before(struct list cells, ptrdiff_t end, struct list vars) {
	ptrdiff_t n = 0;
	for (ptrdiff_t i = 0; i < end; i++)
		if (!at.inner || index_of(vars, ndpy_tuple_item(cells.tuple, i)) < 0) n++;
	return n;
}

static ndpy contents(ndpy o) { return o && ndpy_class(o) == api.PyCell_Type ? quiet(api.PyCell_Get(o)) : new_reference(o); }

static ndpy fast(const ndpy *slots, struct list vars, struct list cells, struct list free, ndpy name) {
	ptrdiff_t var = index_of(vars, name), cell = index_of(cells, name), outer = index_of(free, name);
	ptrdiff_t place = var;
	if (cell >= 0 && (var < 0 || !at.inner)) place = vars.n + cells_before(cells, cell, vars);
	else if (outer >= 0) place = vars.n + cells_before(cells, cells.n, vars) + outer;
	if (place < 0) return 0;
	return cell >= 0 || outer >= 0 ? contents(slots[place]) : new_reference(slots[place]);
}

ndpy ndpy_frame_local(ndpy frame, ndpy code, ndpy name) {
	if (!at.fast) return quiet(api.PyFrame_GetVar(frame, name));
	static ndpy var_key, cell_key, free_key;
	struct list vars = names(code, &var_key, "co_varnames"), cells = names(code, &cell_key, "co_cellvars"),
		    free = names(code, &free_key, "co_freevars");
	ndpy found = 0;
	if (vars.tuple && cells.tuple && free.tuple)
		found = fast((const ndpy *)(inner(frame) + at.fast), vars, cells, free, name);
	ndpy_decref(vars.tuple);
	ndpy_decref(cells.tuple);
	ndpy_decref(free.tuple);
	return found;
}

ndpy ndpy_function_code(ndpy function) { return new_reference(quiet(api.PyFunction_GetCode(function))); }
ndpy ndpy_function_globals(ndpy function) { return new_reference(quiet(api.PyFunction_GetGlobals(function))); }
