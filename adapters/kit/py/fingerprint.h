// Fingerprints: whether a name still leads to the array that it led to, for many names in one call. What is
// compared is a row of words, so that to take a fingerprint and to compare with one are the same code.
#ifndef NDBRIDGE_FINGERPRINT_H
#define NDBRIDGE_FINGERPRINT_H

#include "frames.h"

enum { NDPY_MARKS = 5, NDPY_WORDS = 96, NDPY_REGISTRIES = 3, NDPY_HOOKS = 2, NDPY_STEPS = 16 };

// What an object is recognised by. What is 0 does not count.
typedef struct {
	ndpy type, weak;          // its exact type, and what ndpy_weak gave for it
	int itself;               // it is that very object
	uint32_t data;            // where its struct has the pointer to its elements, and if so:
	uint32_t rank, shape, strides; // the number of its axes (an int), and two arrays of so many intptr_t
	uint32_t object, flags;   // a PyObject *, and an int
	uint32_t owned;           // flags of which each says that the elements stay while the GIL is held
	uint32_t pointer, behind; // where its struct has a pointer, and where behind that is a word; pointer 0: nowhere
	uint8_t attribute_count, method_count, number_count; // of what follows
	uintptr_t tensor;         // an int (*)(PyObject *, DLTensor *) of DLPack
	ndpy attributes[NDPY_MARKS], methods[NDPY_MARKS]; // str: what they give lives forever, as True does
	ndpy numbers[NDPY_MARKS][2]; // str: attributes, or attributes of those, that are an int or a tuple of them
	ndpy dict; // str: an attribute that is a dict of None, short str, int, and tuples of int; 0: none
} ndpy_marks;

// How one object leads to another without running code of the program's. Each kind demands a type, exactly.
enum ndpy_step_kind {
	NDPY_ATTRIBUTE = 1, // in the object's own __dict__, or a field (fields.h); its class has no other attribute of that name, and gets all as object does
	NDPY_GLOBAL,        // in the dict of a module
	NDPY_KEY,           // item of a dict, or of what ndpy_dict_behind gives
	NDPY_INDEX,         // item of a list, a tuple or a deque
	NDPY_REGISTERED,    // as NDPY_ATTRIBUTE, or else as NDPY_REGISTERED_ITEM
	NDPY_GETTER, // what a field or a getter in C of its class gives, if another one gives True, and if it is steady where unless is a name
	NDPY_BESIDE, // the object itself, if what the getter gives, or the item of that with the index, is what is expected
	NDPY_REGISTERED_ITEM, // in the first of the registries, dicts in its __dict__, that has it
	NDPY_LOCAL,           // a variable of a generator, or the like, that waits
};

// What a step demands of the class of the object that is asked, and where it looks.
typedef struct {
	int kind;
	ndpy type, weak; // the class, and what ndpy_weak gave for it
	// Of NDPY_REGISTERED and NDPY_REGISTERED_ITEM: what ndpy_hooks gave for the type, and ndpy_weak for these.
	ndpy hooks[NDPY_HOOKS], weak_hooks[NDPY_HOOKS];
	ndpy registries[NDPY_REGISTRIES]; // str; of NDPY_GETTER: the getters of which one must give True, or none
	ndpy unless; // of NDPY_GETTER: the name of ndpy_steady, or 0
} ndpy_asked;

typedef struct {
	ndpy_asked asked;
	ndpy key;  // a str, or any key
	ptrdiff_t index;           // of NDPY_BESIDE: -1 for none
	ndpy expected, weak_expected; // of NDPY_BESIDE: the object, and what ndpy_weak gave for it
} ndpy_step;

typedef struct {
	int dead;  // its references were given back: the GIL guards this
	ndpy base; // where the steps begin; 0: the global variables of __main__, a dict
	uintptr_t under; // another ndpy_watch, which is dead before base may be gone; 0: base stays
	int count; // of the steps, at most NDPY_STEPS
	uintptr_t steps; // an array of ndpy_step
	size_t length;   // of the fingerprint
	uintptr_t words; // an array of uint64_t: the fingerprint
	ndpy_marks marks;
} ndpy_watch;

// What a class has as __getattr__ and as __getitem__, borrowed, or 0.
void ndpy_hooks(ndpy class, ndpy hooks[NDPY_HOOKS]);

// What a step leads to from o: a new reference, or 0 without an error.
ndpy ndpy_follow(ndpy o, const ndpy_step *s);

// Takes the fingerprint of o, to which the steps must lead: writes its length, and its words, which are at most
// NDPY_WORDS. Gives 0 if o has none, never an error.
int ndpy_watch_begin(ndpy_watch *w, ndpy o, uint64_t *to);

// Whether the steps lead to the same object, or to one with the same fingerprint.
int ndpy_watch_same(const ndpy_watch *w);

// A watch by its address, and what is to be copied if it is the same: at most NDPY_APART bytes, from memory that the
// object has. They are shown only if the object had it until they were read. What cannot be read is not the same.
// No addresses of Go's may be written to.
typedef struct {
	uintptr_t watch, from, to;
	size_t size;
	int same; // the result
} ndpy_check;

enum { NDPY_APART = 64 << 10 };

// Is called before the program runs. If it fails, nothing that is to be copied is the same.
void ndpy_open_checks(void);

// Takes the GIL on this thread and does all checks. Once *shut is not 0, nothing of Python is touched.
void ndpy_check_all(uintptr_t state, const uint32_t *shut, ndpy_check *checks, size_t n);

// Takes the fingerprint of o as above, and tells whether it differs from that of what is watched in nothing but the
// first word, where the elements lie. There is room for as many words as w has.
int ndpy_watch_moved(const ndpy_watch *w, ndpy o, uint64_t *to);

#endif
