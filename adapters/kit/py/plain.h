// Plain objects (numbers, text, and containers of them) read and made many at a time: a call from Go costs more than
// most of them. Neither runs code of the program's.
//
// Pieces are plain objects in the order in which they would be printed: a container comes before its items.
#ifndef NDBRIDGE_PLAIN_H
#define NDBRIDGE_PLAIN_H

#include "capi.h"

enum {
	NDPY_NONE,
	NDPY_FALSE,
	NDPY_TRUE,
	NDPY_INT,
	NDPY_BIG,
	NDPY_FLOAT,
	NDPY_COMPLEX,
	NDPY_STR,
	NDPY_BYTES,
	NDPY_OBJECT, // any other
	NDPY_LIST,   // this and what follows are containers
	NDPY_TUPLE,
	NDPY_SET,
	NDPY_FROZENSET,
	NDPY_DICT,
	NDPY_RECORD,
};

// Why there are no more pieces, if the end was not reached.
enum { NDPY_FINE, NDPY_FAILED, NDPY_DEEP, NDPY_CHANGED, NDPY_NO_TEXT, NDPY_TWICE };

enum { NDPY_MAX_DEPTH = 100 };

typedef struct {
	int32_t kind, negative;
	int64_t n;      // the value of an int; the length of a text or of bytes; how many items a container has: two for each key of a dict; the class of an object that was read
	double re, im;
	uintptr_t text; // of a piece read: where it is, as long as no other code runs; a big int is a text, to the base 16
	int64_t at;     // of a piece to be made: where it is in the bytes; a big int is bytes, big-endian, and -1 less those if negative
	ndpy object;    // NDPY_OBJECT: borrowed
} ndpy_piece;

// A container of which the items are read or made.
typedef struct {
	int32_t kind;
	int32_t pairs; // it is a list of pairs, which stands for a dict
	int64_t n, i;  // how many items it has, and how many have come
	ptrdiff_t position;
	ndpy o;          // of a record, its values
	ndpy names;      // of a record
	ndpy key, value; // of a dict or record: the pair that is being read or made
} ndpy_frame;

// Zero is ready to use.
typedef struct {
	int32_t depth, status;
	int64_t making; // whether objects are made, not read
	ndpy given;     // what to read next, instead of the items of frames
	ndpy held[2];   // what the texts of pieces lie in
	ndpy result;    // what was made; a new reference
	ndpy_frame frames[NDPY_MAX_DEPTH];
} ndpy_plain;

// Finds what the rest needs; *missing becomes a name that is missing, unless it is set.
void ndpy_open_plain(const char **missing);

// Reads pieces, at most max, and gives how many: of o, if it is not 0, or else of what was given. An NDPY_OBJECT is the last of them: what stands for it can be given then.
// If there are fewer and none is an NDPY_OBJECT or NDPY_BIG, status says why.
size_t ndpy_read_plain(ndpy_plain *p, ndpy o, ndpy_piece *pieces, size_t max);

// Gives a container whose items are read next; of a record a tuple of its values, and one of its names. o may also be an
// object of any kind, if kind is NDPY_OBJECT.
void ndpy_give_plain(ndpy_plain *p, int kind, ndpy o, ndpy names);

// Makes objects of pieces, and gives how many it has used: fewer if status says why. The reference that result is
// belongs to the caller.
size_t ndpy_make_plain(ndpy_plain *p, const ndpy_piece *pieces, size_t n, const char *bytes);

// Gives back what p holds, whatever became of it.
void ndpy_clear_plain(ndpy_plain *p);

#endif
