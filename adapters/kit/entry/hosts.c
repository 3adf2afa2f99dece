// Hosts that come to a running program. Each has a side socket and a connection for gRPC, which a forked child must not hold open:
// it would look like the program.
#define _GNU_SOURCE
#include "lifecycle.h"
#include "process.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// As many as the shared heap can count forks for.
enum { HOSTS = 16, FREE = 0, CHANGES, HERE };

static struct host {
	atomic_int state;
	struct file side, stream;
} hosts[HOSTS];

int nd_enter_host(int side, int stream) {
	for (int i = 0; i < HOSTS; i++) {
		int state = FREE;
		if (!atomic_compare_exchange_strong(&hosts[i].state, &state, CHANGES)) continue;
		if (nd_remember(&hosts[i].side, side) == 0 && nd_remember(&hosts[i].stream, stream) == 0) {
			atomic_store(&hosts[i].state, HERE);
			nd_hold(side);
			nd_hold(stream);
			return i;
		}
		atomic_store(&hosts[i].state, FREE);
		return -1;
	}
	errno = EMFILE;
	return -1;
}

void nd_leave_host(int number) { atomic_store(&hosts[number].state, FREE); }

// Says how many hosts there are.
__attribute__((visibility("default"))) int nd_hosts(void) {
	int n = 0;
	for (int i = 0; i < HOSTS; i++) n += atomic_load(&hosts[i].state) == HERE;
	return n;
}

static void close_bare(const struct file *f) {
	if (nd_still_open(f)) syscall(SYS_close, f->fd);
}

void nd_hosts_in_child(void) {
	for (int i = 0; i < HOSTS; i++) {
		if (atomic_exchange(&hosts[i].state, FREE) != HERE) continue;
		close_bare(&hosts[i].side);
		close_bare(&hosts[i].stream);
	}
}

void nd_hosts_in_parent(void) {
	for (int i = 0; i < HOSTS; i++)
		if (atomic_load(&hosts[i].state) == HERE && nd_still_open(&hosts[i].side))
			send(hosts[i].side.fd, "F", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// Gives the descriptor for which Go has its own poller wake it up, if fd is that poller; else -1. Go registers it with the address of
// a variable of the runtime's, which lies in this library. Pollers of the program's have other data.
static int woken_by(int fd) {
	char path[64], line[256];
	Dl_info ours, theirs;
	int woken = -1;
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	FILE *info = fopen(path, "re");
	if (!info) return -1; // it is closed by now
	while (woken < 0 && dladdr(hosts, &ours) && fgets(line, sizeof line, info)) {
		int target;
		unsigned long long data;
		if (sscanf(line, "tfd: %d events: %*x data: %llx", &target, &data) == 2 && dladdr((void *)(uintptr_t)data, &theirs) &&
		    theirs.dli_fbase == ours.dli_fbase)
			woken = target;
	}
	fclose(info);
	return woken;
}

static bool is_poller(int directory, const char *fd) {
	static const char kind[] = "anon_inode:[eventpoll]";
	char target[sizeof kind];
	ssize_t n = readlinkat(directory, fd, target, sizeof target);
	return n == sizeof kind - 1 && memcmp(target, kind, sizeof kind - 1) == 0;
}

static int poller[2] = {-1, -1};

int nd_poller(int which) { return poller[which]; }

void nd_hold_poller(void) {
	DIR *directory = opendir("/proc/self/fd");
	if (!directory) return;
	for (struct dirent *e; (e = readdir(directory));) {
		int fd = atoi(e->d_name), woken = is_poller(dirfd(directory), e->d_name) ? woken_by(fd) : -1;
		if (woken < 0) continue;
		nd_hold(poller[0] = fd);
		nd_hold(poller[1] = woken);
		break;
	}
	closedir(directory);
}

// Whether there are as many descriptors left as Go takes at least: without them it ends the process. They may have gone since the bootstrap looked.
static bool has_room(int like) {
	enum { ROOM = 8 };
	int all[ROOM], n = 0;
	while (n < ROOM && (all[n] = fcntl(like, F_DUPFD_CLOEXEC, 0)) >= 0) n++;
	for (int i = 0; i < n; i++) syscall(SYS_close, all[i]);
	return n == ROOM;
}

int nd_wake(int like) {
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool woken;
	pthread_mutex_lock(&lock);
	if (!woken && has_room(like)) {
		nd_process.id = getpid();
		nd_find_heap();
		nd_sort_faults();
		woken = ndGoWake() == 0;
		if (woken) nd_hold_poller();
	}
	bool failed = !woken;
	pthread_mutex_unlock(&lock);
	return failed ? EMFILE : 0;
}
