// What the plugin asks of the shared heap, where that is preloaded.
#define _GNU_SOURCE
#include "lifecycle.h"
#include "process.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static void (*heap_holds)(int fd);
static void (*heap_looked)(void);

void nd_find_heap(void) {
	*(void **)&heap_holds = dlsym(RTLD_DEFAULT, "ndheap_hold_fd");
	*(void **)&heap_looked = dlsym(RTLD_DEFAULT, "ndheap_looked");
}

void nd_looked(void) {
	if (heap_looked) heap_looked();
}

void nd_hold(int fd) {
	if (heap_holds) heap_holds(fd);
}

// The plugin's descriptors are those above standard error, as the program has not run yet: Go has opened what lasts as long as the session.
void nd_hold_descriptors(void) {
	nd_find_heap();
	DIR *directory = heap_holds ? opendir("/proc/self/fd") : NULL;
	if (!directory) return;
	for (struct dirent *e; (e = readdir(directory));) {
		int fd = atoi(e->d_name);
		if (fd <= STDERR_FILENO || fd == dirfd(directory)) continue;
		if (fcntl(fd, F_GETFD) == FD_CLOEXEC) nd_hold(fd);
	}
	closedir(directory);
}
