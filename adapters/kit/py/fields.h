// Attributes that an object has in its own struct, or as an item of the tuple that it is: those of __slots__ and of named tuples.
// To get one runs no code of the program's.
#ifndef NDBRIDGE_FIELDS_H
#define NDBRIDGE_FIELDS_H

#include "capi.h"

#include <stdbool.h>

// Whether what a class has for a name is such an attribute of its objects. found may be 0.
bool ndpy_is_field(ndpy found);

// Whether it is one, or a getter in C, as classes of extension modules have them.
bool ndpy_is_getter(ndpy found);

// Gives the names of such attributes that classes of Python code, and tuples, define for the objects of a class: at most max, each
// a new reference.
size_t ndpy_fields(ndpy class, ndpy *keys, size_t max);

#endif
