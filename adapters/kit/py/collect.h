// Keeps Python's garbage collector out of the plugin's threads.
//
// Before Python 3.12 whoever allocates an object runs the collection that is due, and with it finalizers of the
// program. So automatic collection is off while a thread of the plugin has the GIL, and is as the program has set it
// while code runs that may be the program's or may give the GIL away. Getters in C of a framework's classes count as the
// plugin's own. So no other code can see that it was off.
#ifndef NDBRIDGE_COLLECT_H
#define NDBRIDGE_COLLECT_H

#include "capi.h"

#include <stdbool.h>

extern bool ndpy_collect_held; // the program has collection on, and it is off; the GIL guards it

// Makes what follows hold collection off from now on, with the GIL held. Gives false where that is not possible.
bool ndpy_collect_open(void);

// Are called after a thread of the plugin has taken the GIL, and before it gives the GIL back.
void ndpy_collect_hold(void);
void ndpy_collect_restore(void);

// To the end of the block collection is as the program has it, if the condition holds. It is not evaluated if
// collection is not held off.
#define NDPY_AS_PROGRAM_IF(condition)                                                                    \
	bool as_program __attribute__((cleanup(ndpy_collect_again))) = ndpy_collect_held && (condition); \
	if (as_program) ndpy_collect_restore()
#define NDPY_AS_PROGRAM NDPY_AS_PROGRAM_IF(true)
void ndpy_collect_again(const bool *as_program);

// Conditions, which are asked while collection is held off.
bool ndpy_last(ndpy o);                // whether there is one reference to o, which may be 0
bool ndpy_computed(ndpy o, ndpy name); // whether o.name may be what a getter or a hook of a class computes
bool ndpy_in_c(ndpy descriptor);       // whether no Python code stands between descriptor.__get__ and what it gives

#endif
