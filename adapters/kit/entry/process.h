// What the parts of the plugin that are C know of the process: lifecycle.c, which is called by the program and by Go;
// guard.c, which works whatever becomes of these.
#ifndef NDBRIDGE_PROCESS_H
#define NDBRIDGE_PROCESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#define HIDDEN __attribute__((visibility("hidden")))

// A descriptor, and what it is of: somebody else may close it, and then its number may be another file's.
struct file {
	int fd;
	dev_t device;
	ino_t inode;
};

HIDDEN int nd_remember(struct file *f, int fd); // gives 0, or -1 with errno
HIDDEN bool nd_still_open(const struct file *f);

struct process {
	atomic_bool forked; // this is a child: Go's threads are not here, so Go must not be entered
	atomic_bool ending;
	atomic_uint news; // bits of enum news. Who waits for them sleeps on it
	pid_t id;
	bool leads_group;

	struct file host; // a duplicate of the side socket: its end of file is the host's end
	struct file wake; // the writing end of a pipe whose reading end the guard has

	pthread_mutex_t lock;
	bool script_runs; // guarded by lock: the main thread may be interrupted
};

enum news { OPENED = 1, ENDED = 2, GUARDED = 4, SHARED = 8, CALLED = 16 };

extern HIDDEN struct process nd_process;

// Is the libc's pthread_create. Python does not see the thread if the shared heap is preloaded.
HIDDEN int nd_create_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

// Runs a thread that takes none of the program's signals. Gives an error number.
HIDDEN int nd_run_thread(void *(*run)(void *));

HIDDEN void nd_tell(enum news);
HIDDEN int nd_await(unsigned news, int milliseconds); // gives those that there are, 0 after the time, -1 if a signal came

HIDDEN void nd_find_heap(void); // without which nothing is kept

// Keeps a program that a host starts from closing the plugin's descriptors.
HIDDEN void nd_hold_descriptors(void);

// Does that for those with which Go waits for others. The program's threads may open some of their own meanwhile.
HIDDEN void nd_hold_poller(void);

// Readies a process that no host has started, once. like is any descriptor. Gives an error number; then it can be tried again.
HIDDEN int nd_wake(int like);

// What forks mean for the hosts that have come to this process.
HIDDEN void nd_hosts_in_child(void);
HIDDEN void nd_hosts_in_parent(void);

// Starts the guard: a thread that waits for the end of the host, and for nd_end. Gives an error number.
HIDDEN int nd_start_guard(void);

// Has signals of faults that somebody has sent go to the program's handlers, and not to Go's. Go has begun.
HIDDEN void nd_sort_faults(void);

// Gives back the pages of this library that only the loader needs.
HIDDEN void nd_forget_relocations(void);

#endif
