#define _GNU_SOURCE
#include "lifecycle.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#ifndef GRACE_MS // tests of an end in order give more, since the machine may be busy
#define GRACE_MS 1000
#endif
enum { NUDGE_MS = 50 };

// A descriptor that is Go's to close: it may be another file's by now.
struct file {
	int fd;
	dev_t device;
	ino_t inode;
};

static struct {
	atomic_bool forked; // this is a child: Go's threads are not here, so Go must not be entered
	atomic_bool ending;
	pid_t id;
	bool leads_group;
	bool nudge; // see prepare_nudge

	// Events, each readable from when it has happened on.
	int opened, end_wanted, ended;

	struct file handshake, side; // Go's
	int host;                    // a duplicate of side, whose end of file is the host's end
	char sockets[sizeof(((struct sockaddr_un *)0)->sun_path)]; // directory of the session's sockets

	pthread_mutex_t lock;
	bool script_runs; // guarded by lock: the main thread may be interrupted
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void happen(int event) {
	uint64_t one = 1;
	while (write(event, &one, sizeof one) < 0 && errno == EINTR) {}
}

static int remember_file(struct file *f, int fd) {
	struct stat now;
	if (fstat(fd, &now) < 0) return -1;
	*f = (struct file){fd, now.st_dev, now.st_ino};
	return 0;
}

static void close_file(const struct file *f) {
	struct stat now;
	if (fstat(f->fd, &now) == 0 && now.st_dev == f->device && now.st_ino == f->inode) close(f->fd);
}

// Closes the sockets of this session's gRPC connection, which Go owns and a child must not hold open.
// A child of a process with threads must not allocate, hence no opendir.
static void close_sockets(void) {
	struct entry {
		uint64_t inode;
		int64_t offset;
		unsigned short length;
		unsigned char type;
		char name[];
	};
	_Alignas(struct entry) char buffer[4096];
	size_t prefix = strlen(process.sockets);
	int directory = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0 || prefix == 0) goto done;
	for (long n; (n = syscall(SYS_getdents64, directory, buffer, sizeof buffer)) > 0;) {
		for (long at = 0; at < n; at += ((struct entry *)(buffer + at))->length) {
			int fd = 0;
			for (const char *c = ((struct entry *)(buffer + at))->name; *c; c++)
				fd = *c >= '0' && *c <= '9' ? fd * 10 + (*c - '0') : -1;
			struct sockaddr_un name = {0};
			socklen_t size = sizeof name;
			if (fd > STDERR_FILENO && getsockname(fd, (struct sockaddr *)&name, &size) == 0 &&
			    name.sun_family == AF_UNIX && strncmp(name.sun_path, process.sockets, prefix) == 0)
				close(fd);
		}
	}
done:
	if (directory >= 0) close(directory);
}

// Runs in every forked child. Closing the side socket is what keeps a child that outlives the program
// from looking like the program.
static void in_child(void) {
	atomic_store(&process.forked, true);
	close(process.host);
	close_file(&process.side);
	close_file(&process.handshake);
	close_sockets();
}

// Runs in the parent after each fork, and tells the host, whose views may not be of the parent's memory any more.
// A host that does not read loses nothing but the news.
static void in_parent(void) { send(process.host, "F", 1, MSG_DONTWAIT | MSG_NOSIGNAL); }

static void nudged(int signal) { (void)signal; }

// Makes a signal interrupt the main thread's system calls, and do nothing else, unless the program has
// its own use of it: Python's sleep misses an interrupt that comes just before it, but not a later one.
static void prepare_nudge(void) {
	struct sigaction before, action = {.sa_handler = nudged, .sa_flags = SA_ONSTACK};
	if (sigaction(SIGRTMAX, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
		process.nudge = sigaction(SIGRTMAX, &action, NULL) == 0;
}

// Interrupts the program, waits until it has ended, but no longer than the time that it has for that,
// and ends what is left of it by force, with its process group. The caller has the lock.
static int end_program(void *self) {
	atomic_store(&process.ending, true);
	// Python's main thread is the process's first: its id is the process's.
	if (process.script_runs) syscall(SYS_tgkill, process.id, process.id, SIGINT);
	happen(process.ended);
	pthread_mutex_unlock(&process.lock);

	struct pollfd ended = {.fd = *(int *)self, .events = POLLIN}; // if it is -1, this only waits
	for (int left = GRACE_MS; left > 0 && poll(&ended, 1, NUDGE_MS) == 0; left -= NUDGE_MS)
		if (process.nudge) syscall(SYS_tgkill, process.id, process.id, SIGRTMAX);
	// A process that was started by hand is not the leader of its group: that is the shell's.
	kill(process.leads_group ? 0 : process.id, SIGKILL);
	return 0;
}

// Waits for the host's end or nd_end, then ends this process. It depends on neither Go nor Python.
static void *watch(void *unused) {
	struct pollfd fds[] = {
		{.fd = process.host, .events = POLLRDHUP},
		{.fd = process.end_wanted, .events = POLLIN},
	};
	while (poll(fds, 2, -1) < 0 && errno == EINTR) {}

	prepare_nudge();
	pthread_mutex_lock(&process.lock);
	// The program's children must end even if the process ends by itself, at once. So another process
	// sees to it, which shares this one's memory as if between vfork and exec: it is no copy, and no
	// handler of forks runs. Being of the group, it keeps the group's number in use; without a signal
	// of its end, the program's own wait does not see it.
	_Alignas(16) char stack[16 << 10];
	int self = (int)syscall(SYS_pidfd_open, process.id, 0);
	if (clone(end_program, stack + sizeof stack, CLONE_VM | CLONE_VFORK, &self) < 0) end_program(&self);
	return unused;
}

static int start_watch(void) {
	sigset_t all, before;
	pthread_attr_t attributes;
	pthread_t thread;
	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before); // signals are for the program's own threads
	int failed = pthread_create(&thread, &attributes, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return failed;
}

static int prepare(int handshake, int side) {
	if (remember_file(&process.handshake, handshake) < 0 || remember_file(&process.side, side) < 0) return errno;
	process.id = getpid();
	process.leads_group = getpgrp() == process.id;
	process.host = fcntl(side, F_DUPFD_CLOEXEC, 0);
	process.opened = eventfd(0, EFD_CLOEXEC);
	process.end_wanted = eventfd(0, EFD_CLOEXEC);
	process.ended = eventfd(0, EFD_CLOEXEC);
	if (process.host < 0 || process.opened < 0 || process.end_wanted < 0 || process.ended < 0) return errno;
	const char *sockets = getenv("PLUGIN_UNIX_SOCKET_DIR");
	if (sockets && *sockets) snprintf(process.sockets, sizeof process.sockets, "%s/", sockets);
	int failed = pthread_atfork(NULL, in_parent, in_child);
	return failed ? failed : start_watch();
}

void nd_opened(void) { happen(process.opened); }
void nd_end(void) { happen(process.end_wanted); }

EXPORT int nd_forked(void) { return atomic_load(&process.forked); }
EXPORT int nd_ending(void) { return atomic_load(&process.ending); }

// A thread of the program's is about to enter Go, or has left it.
static void into_go(void) {
	if (ndpy_into_go) ndpy_into_go();
}

static void out_of_go(void) {
	if (ndpy_out_of_go) ndpy_out_of_go();
}

// Starts to serve. The descriptors are the plugin's from now on.
EXPORT int nd_start(int handshake, int side) {
	int failed = prepare(handshake, side);
	if (failed) {
		fprintf(stderr, "ndbridge: the plugin cannot start: %s\n", strerror(failed));
		return failed;
	}
	// From now on the end of the host is a matter of the watch, which leaves time for an exit in order, and
	// for the plugin to remove the socket at which it begins to listen.
	prctl(PR_SET_PDEATHSIG, 0);
	return ndGoStart(handshake, process.host);
}

// Waits until the host has opened the session, or for its end.
EXPORT int nd_await_open(void) {
	struct pollfd fds[] = {
		{.fd = process.opened, .events = POLLIN},
		{.fd = process.ended, .events = POLLIN},
	};
	if (poll(fds, 2, -1) < 0) return ND_INTERRUPTED;
	if (fds[1].revents) return ND_ENDED;
	pthread_mutex_lock(&process.lock);
	int ending = atomic_load(&process.ending);
	process.script_runs = !ending;
	pthread_mutex_unlock(&process.lock);
	return ending ? ND_ENDED : 0;
}

// Waits for the end of the session, with a limit unless that is negative.
EXPORT int nd_wait(int milliseconds) {
	struct pollfd fd = {.fd = process.ended, .events = POLLIN};
	int n = poll(&fd, 1, milliseconds);
	return n < 0 ? ND_INTERRUPTED : n ? ND_ENDED : 0;
}

static void script_ended(void) {
	pthread_mutex_lock(&process.lock);
	process.script_runs = false;
	pthread_mutex_unlock(&process.lock);
}

// Says that the script ended by itself.
EXPORT void nd_finished(int status, char *message) {
	if (nd_forked()) return;
	script_ended();
	into_go();
	ndGoFinished(status, message);
	out_of_go();
}

// Gives the plugin's version as a str. Needs the GIL, as does what follows.
EXPORT uintptr_t nd_version(void) {
	into_go();
	uintptr_t version = ndGoVersion();
	out_of_go();
	return version;
}

// Says that the script raised.
EXPORT int nd_failed(uintptr_t exception) {
	if (nd_forked()) return ND_FORKED;
	script_ended();
	into_go();
	ndGoFailed(exception);
	out_of_go();
	return 0;
}

EXPORT int nd_publish(uintptr_t name, uintptr_t array) {
	if (nd_forked()) return ND_FORKED;
	into_go();
	int result = ndGoPublish(name, array);
	out_of_go();
	return result;
}

EXPORT int nd_publish_all(uintptr_t arrays) {
	if (nd_forked()) return ND_FORKED;
	into_go();
	int result = ndGoPublishAll(arrays);
	out_of_go();
	return result;
}

EXPORT int nd_unpublish(uintptr_t name) {
	if (nd_forked()) return ND_FORKED;
	into_go();
	int result = ndGoUnpublish(name);
	out_of_go();
	return result;
}

// Prints an exception as Python does one that nothing caught. It works in forked children too.
EXPORT int nd_print(void *type, void *value, void *traceback) {
	void (*incref)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "Py_IncRef");
	void (*restore)(void *, void *, void *) = (void (*)(void *, void *, void *))dlsym(RTLD_DEFAULT, "PyErr_Restore");
	void (*print)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "PyErr_Print");
	if (traceback == dlsym(RTLD_DEFAULT, "_Py_NoneStruct")) traceback = NULL;
	incref(type); // PyErr_Restore takes a reference of each
	incref(value);
	incref(traceback); // may be NULL
	restore(type, value, traceback);
	print();
	return 0;
}

// Closes the interpreter to the plugin, before it ends. Called without the GIL.
EXPORT void nd_close(void) {
	if (nd_forked()) return;
	into_go();
	ndGoClose();
	out_of_go();
}
