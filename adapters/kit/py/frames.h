// Frames: the functions that run, and their local variables. Nothing here runs code of the program's, raises an audit
// event, or writes into what a frame has: frame.f_locals would keep what the function has dropped since, and overwrite
// what a debugger has set there.
//
// Functions that return an ndpy give a new reference, or 0 without an error where there is nothing. All need the GIL.
#ifndef NDBRIDGE_FRAMES_H
#define NDBRIDGE_FRAMES_H

#include "capi.h"

// Finds what the others need. Gives 0 if this Python's frames are not known. Objects must begin with the count of
// references and the type, a word each.
int ndpy_open_frames(void);

// Python's threads, newest first; 0: no more. They stay as long as the GIL is held.
uintptr_t ndpy_first_thread(void);
uintptr_t ndpy_next_thread(uintptr_t thread);
unsigned long ndpy_thread_ident(uintptr_t thread); // as threading knows it; 0: not known
ndpy ndpy_thread_frame(uintptr_t thread);          // the innermost one

// Has one thread this ident? Before 3.12 a thread that was just made has its maker's until it runs.
int ndpy_thread_is_one(unsigned long ident);

// Of a frame that runs, or of a generator that waits.
ndpy ndpy_frame_back(ndpy frame); // the one that called it
ndpy ndpy_frame_code(ndpy frame);
ndpy ndpy_frame_globals(ndpy frame); // a dict
ndpy ndpy_frame_space(ndpy frame);   // what the body of a class, or a module, has as its variables
// A variable of a function, or one of an outer function that it uses. code is the frame's, and name is interned.
ndpy ndpy_frame_local(ndpy frame, ndpy code, ndpy name);

// Whether what a getter in C gives is whole: no thread runs a function that uses a name, an interned str, that of what replaces it without the
// GIL, or sets or deletes an attribute, which may give the GIL away when what the attribute was is gone and the attribute is not set yet. Where
// frames are not known, it may not be whole.
int ndpy_steady(ndpy name);

ndpy ndpy_function_code(ndpy function);
ndpy ndpy_function_globals(ndpy function); // a dict

#endif
