// Attributes that an object has in its own struct, or as an item of the tuple that it is: those of __slots__ and of named tuples, and those
// by which functions, methods, partials, cells and generators lead to other objects. To get one runs no code of the program's.
#ifndef NDBRIDGE_FIELDS_H
#define NDBRIDGE_FIELDS_H

#include "capi.h"

#include <stdbool.h>

// Whether what a class has for a name is such an attribute of its objects. found may be 0.
bool ndpy_is_field(ndpy found);

// Whether it is one, or a getter in C, as classes of extension modules have them.
bool ndpy_is_getter(ndpy found);

// Gives the names of such attributes that classes of Python code, tuples, and the classes in C that are known to lead to other objects define
// for the objects of a class: at most max, each a new reference.
size_t ndpy_fields(ndpy class, ndpy *keys, size_t max);

// Whether it is such a class in C. A bound method does not get all attributes as object does, but these.
bool ndpy_leads(ndpy class);

// What such an attribute is, which found gives: a new reference, or 0. It may set an error.
ndpy ndpy_field(ndpy o, ndpy found, ndpy name);

// Whether o is a generator (0), a coroutine (1) or an asynchronous generator (2), exactly; else -1.
int ndpy_waits(ndpy o);

// A variable of a generator, or the like, that waits: a new reference, or 0 without an error. Frames must be open.
ndpy ndpy_waiting_local(ndpy o, ndpy name);

#endif
