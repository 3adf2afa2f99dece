// Keeps signal handlers off the stacks of goroutines.
//
// Python before 3.10 installs its handlers without SA_ONSTACK: the kernel runs them on the stack that the thread is
// on, and that of a goroutine is too small. Go's own threads block all signals, so what is left are the program's
// threads while they are in Go. There they block signals, too, but not while Go calls Python: what the program then
// starts (another program, say) inherits what is blocked.
#ifndef NDBRIDGE_SIGNALS_H
#define NDBRIDGE_SIGNALS_H

#include <stdbool.h>

// Says that this Python needs it. Called once, before the other functions are of use.
void ndpy_guard_go(void);

// Are called by a thread of the program's before it enters Go, and afterwards.
void ndpy_into_go(void);
void ndpy_out_of_go(void);

// Are called by any thread before Go's code calls Python, and afterwards with what the first one gave.
bool ndpy_into_python(void);
void ndpy_out_of_python(bool guarded);

#endif
