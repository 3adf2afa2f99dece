#include "capi.h"

#include <unistd.h>

// The child has one thread, this one, and nobody to return to: in Go nothing works any more. It ends as a process
// whose last thread does.
ndpy ndpy_call_once(ndpy f, ndpy args, ndpy kw) {
	pid_t self = getpid();
	ndpy result = ndpy_call(f, args, kw);
	if (getpid() != self) _exit(0);
	return result;
}
