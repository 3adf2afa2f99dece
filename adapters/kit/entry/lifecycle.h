// The C half of a plugin in a Python process: what the bootstrap calls through ctypes, and what must
// work whatever state Go and Python are in: the end of the session, and forked children.
#ifndef NDBRIDGE_LIFECYCLE_H
#define NDBRIDGE_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

// What the functions below say, besides 0 for success. -1 with Python's error indicator set is an
// exception, for functions that are called with the GIL held.
enum { ND_ENDED = 1, ND_FORKED = 2, ND_INTERRUPTED = -1 };

// Implemented in Go.
extern int ndGoStart(int handshake, int status);
extern int ndGoWake(void);
extern int ndGoOpen(int status);
extern int ndGoAttach(int side, int stream);
extern int ndGoPublish(uintptr_t name, uintptr_t array);
extern int ndGoPublishAll(uintptr_t arrays);
extern int ndGoUnpublish(uintptr_t name);
extern int ndGoAfterReads(uintptr_t array, uintptr_t stream);
extern int ndGoServe(void);
extern int ndGoServeCall(void);
extern void ndGoServeEnd(int over);
extern uintptr_t ndGoHostFunctions(void);
extern uintptr_t ndGoCallHost(uintptr_t name, uintptr_t args, uintptr_t kw);
extern void ndGoFailed(uintptr_t exception);
extern void ndGoFinished(int status, char *message);
extern void ndGoClose(void);
extern uintptr_t ndGoVersion(void);

// Implemented in kit/py, see signals.h there; a stand-in for Go has no use for them.
extern void ndpy_into_go(void) __attribute__((weak));
extern void ndpy_out_of_go(void) __attribute__((weak));

// Called from Go. nd_opened lets the script start. nd_called says that there is a call for the main thread. nd_end ends the session, as the host's closing of
// the side socket does: a script that still runs is interrupted, and the process group is killed if
// the process has not ended within the time that the host gives it (NDBRIDGE_STOP_TIMEOUT_MS).
void nd_opened(void);
void nd_called(void);
void nd_end(void);

// Also called from Go: of a host that has come to a running process, and its descriptors. Gives its number, or -1 with errno.
int nd_enter_host(int side, int stream);
int nd_poller(int which); // of the two descriptors by which Go's scheduler waits; -1: they were not found

// Keeps the program from closing a descriptor of the plugin's, where the shared heap is preloaded; -1: none any more.
void nd_hold(int fd);

void nd_leave_host(int number);
int nd_hosts(void); // says how many there are

// Also called from Go: gives back the pages of this library that were not written, when what is under way in Go is over. They come back when
// they are needed.
void nd_rest(void);

// Also called from Go: tells whether the process may have n threads more, at most 8.
bool nd_threads_left(int n);

// Says that a host that has come has looked at something, or will not. Where the shared heap is preloaded, the program's main thread steps aside for
// that.
void nd_looked(void);

#endif
