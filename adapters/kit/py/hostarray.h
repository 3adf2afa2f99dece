// The host's memory as Python objects of the type ndbridge.HostArray, which speak DLPack, the array interface and the
// buffer protocol.
//
// What ends with the last user of an array needs neither Go nor the GIL: a deleter of DLPack may be called on any thread,
// and after the interpreter has ended.
#ifndef NDBRIDGE_HOSTARRAY_H
#define NDBRIDGE_HOSTARRAY_H

#include "capi.h"

// A mapping of the host's memory. It is unmapped when it has been dropped and no array in it is in use; if its size is 0,
// by somebody else.
typedef struct ndpy_segment ndpy_segment;
ndpy_segment *ndpy_new_segment(uintptr_t address, size_t size); // takes the mapping over; NULL: no memory
void ndpy_drop_segment(ndpy_segment *s);
unsigned ndpy_segment_arrays(ndpy_segment *s); // how many arrays in it are in use
void ndpy_read_segment(uintptr_t from, void *to, size_t n); // from lies in one that is not closed meanwhile

typedef struct {
	ndpy_segment *segment;
	uintptr_t data;  // address of the element with index [0, ..., 0]
	uintptr_t held;  // of a 32-bit word that counts the arrays that are in use; 0: there is none
	size_t len, itemsize; // bytes: of all elements, and of one
	const char *format, *typestr; // live forever; no format: NULL
	uint8_t code, bits;           // DLPack's; code 3, a handle: DLPack cannot say what the elements are
	uint16_t lanes;
	int readonly;
	int gpu; // the device; -1: host memory
} ndpy_host_array;

// Makes the type, once. Objects of this Python begin with so many bytes. Gives -1 with an error if it cannot.
int ndpy_open_host_arrays(size_t header);
ndpy ndpy_new_host_array(const ndpy_host_array *a, int ndim, const ptrdiff_t *shape, const ptrdiff_t *strides);

// DLPack's capsule of a host array, whatever __dlpack__ would refuse: one that is not versioned does not say that the
// memory is read-only.
ndpy ndpy_host_array_capsule(ndpy o, int versioned);

// From now on its __dlpack__ gives capsules that do not say so, too.
void ndpy_host_array_unsigned(ndpy o);

ndpy ndpy_new_ints(const ptrdiff_t *v, int n); // a tuple of ints

#endif
