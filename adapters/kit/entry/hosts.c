// Hosts that come to a running program. Each has a side socket and a connection for gRPC, which a forked child must not hold open:
// it would look like the program.
#define _GNU_SOURCE
#include "process.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
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

// Finds the descriptors that are open, for hold_new: bit by bit, those that are small.
enum { SMALL = 4096 };

static void list(unsigned char *open_ones) {
	DIR *directory = opendir("/proc/self/fd");
	if (!directory) return;
	for (struct dirent *e; (e = readdir(directory));) {
		int fd = atoi(e->d_name);
		if (fd > STDERR_FILENO && fd < SMALL && fd != dirfd(directory)) open_ones[fd / 8] |= 1 << fd % 8;
	}
	closedir(directory);
}

void nd_hold_new(void (*opens)(void)) {
	unsigned char before[SMALL / 8] = {0}, after[SMALL / 8] = {0};
	list(before);
	opens();
	list(after);
	for (int fd = 0; fd < SMALL; fd++)
		if ((after[fd / 8] & ~before[fd / 8]) >> fd % 8 & 1 && fcntl(fd, F_GETFD) == FD_CLOEXEC) nd_hold(fd);
}
