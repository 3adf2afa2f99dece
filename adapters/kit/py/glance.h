// A glance at an object: whether it is the array that it was, in one call. What is compared is written down
// as a row of words, so that to take a glance and to take another are the same code.
#ifndef NDBRIDGE_GLANCE_H
#define NDBRIDGE_GLANCE_H

#include "capi.h"

enum { NDPY_MARKS = 5, NDPY_WORDS = 160 };

// By what an object is known again. What is 0 does not count.
typedef struct {
	ndpy type;                // its exact type
	int itself;               // it is that very object
	uint32_t data;            // where its struct has the pointer to its elements, and if so:
	uint32_t rank, shape, strides; // the number of its axes (an int), and two arrays of so many intptr_t
	uint32_t object, flags;   // a PyObject *, and an int
	uintptr_t tensor;         // an int (*)(PyObject *, DLTensor *) of DLPack
	ndpy attributes[NDPY_MARKS], methods[NDPY_MARKS]; // str: what they give lives forever, as True does
	ndpy numbers[NDPY_MARKS][2]; // str: attributes, or attributes of those, that are an int or a tuple of them
} ndpy_marks;

typedef struct {
	ndpy_marks marks;
	uint64_t forks;
	size_t count; // of the words
	uint64_t words[NDPY_WORDS];
} ndpy_glance;

// Counts the forks of this process from now on. Gives 0, or an error number.
int ndpy_watch_forks(void);

// Takes a glance at o by the marks that *g has. Gives 0 if o does not have them, never an error.
int ndpy_look(ndpy o, ndpy_glance *g);

// Tells whether a glance would be the same again.
int ndpy_same(ndpy o, const ndpy_glance *g);

// Takes the GIL on this thread, unless it is held, tells whether the global variable of that name is what it
// was, and gives the GIL back, unless it was held or waited for. Once *shut is not 0, nothing of Python is
// touched. The result is 1 if it is what it was, and 2 more if the GIL is held.
int ndpy_same_global(uintptr_t state, int held, const uint32_t *shut, ndpy name, const ndpy_glance *g);

#endif
