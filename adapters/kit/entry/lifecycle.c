#define _GNU_SOURCE
#include "lifecycle.h"
#include "process.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

struct process nd_process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
	struct file handshake, side;
	char sockets[sizeof(((struct sockaddr_un *)0)->sun_path)]; // directory of the session's sockets
} go; // what is Go's to close

void nd_tell(enum news news) {
	atomic_fetch_or(&nd_process.news, news);
	syscall(SYS_futex, &nd_process.news, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

int nd_await(unsigned news, int milliseconds) {
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	// A signal ends a wait without a limit only if its handler says so, and one with a limit always.
	int64_t left = milliseconds < 0 ? INT_MAX : milliseconds, nanoseconds = until.tv_nsec + left % 1000 * 1000000;
	until.tv_sec += left / 1000 + nanoseconds / 1000000000;
	until.tv_nsec = nanoseconds % 1000000000;
	for (;;) {
		unsigned now = atomic_load(&nd_process.news);
		if (now & news) return (int)(now & news);
		if (syscall(SYS_futex, &nd_process.news, FUTEX_WAIT_BITSET_PRIVATE, now, &until, NULL, FUTEX_BITSET_MATCH_ANY) == 0) continue;
		if (errno == ETIMEDOUT) return 0;
		if (errno == EINTR) return -1;
	}
}

int nd_remember(struct file *f, int fd) {
	struct stat now;
	if (fstat(fd, &now) < 0) return -1;
	*f = (struct file){fd, now.st_dev, now.st_ino};
	return 0;
}

bool nd_still_open(const struct file *f) {
	struct stat now;
	return fstat(f->fd, &now) == 0 && now.st_dev == f->device && now.st_ino == f->inode;
}

// By the bare call: for the libc's, where the shared heap is preloaded, these descriptors do not exist.
static void close_bare(int fd) { syscall(SYS_close, fd); }

static void close_file(const struct file *f) {
	if (nd_still_open(f)) close_bare(f->fd);
}

static void close_if_socket(int fd) {
	struct sockaddr_un name = {0};
	socklen_t size = sizeof name;
	if (fd > STDERR_FILENO && getsockname(fd, (struct sockaddr *)&name, &size) == 0 && name.sun_family == AF_UNIX &&
	    strncmp(name.sun_path, go.sockets, strlen(go.sockets)) == 0)
		close_bare(fd);
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
	enum { LOW = 1024 }; // Go's are
	if (!*go.sockets) return;
	int directory = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int fd = 0; directory < 0 && fd < LOW; fd++) close_if_socket(fd); // after chroot, or no descriptor is left
	for (long n; directory >= 0 && (n = syscall(SYS_getdents64, directory, buffer, sizeof buffer)) > 0;) {
		for (long at = 0; at < n; at += ((struct entry *)(buffer + at))->length) {
			int fd = 0;
			for (const char *c = ((struct entry *)(buffer + at))->name; *c; c++)
				fd = *c >= '0' && *c <= '9' ? fd * 10 + (*c - '0') : -1;
			close_if_socket(fd);
		}
	}
	if (directory >= 0) close(directory);
}

// Runs in every forked child. Closing the side socket is what keeps a child that outlives the program
// from looking like the program.
static void in_child(void) {
	atomic_store(&nd_process.forked, true);
	nd_hold(-1); // the child may close what it has of these
	nd_hosts_in_child();
	close_file(&nd_process.host);
	close_file(&nd_process.wake);
	close_file(&go.side);
	close_file(&go.handshake);
	close_sockets();
}

// Runs in the parent after each fork, and tells the host, whose views may not be of the parent's memory any more.
// A host that does not read loses nothing but the news.
static void in_parent(void) {
	nd_hosts_in_parent();
	if (nd_still_open(&nd_process.host)) send(nd_process.host.fd, "F", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int no_handlers;

// Runs before Go's own constructor: a child that is forked while Go starts must know it, too.
__attribute__((constructor(101))) static void learn_of_forks(void) { no_handlers = pthread_atfork(NULL, in_parent, in_child); }

static int prepare(int handshake, int side) {
	int host = fcntl(side, F_DUPFD_CLOEXEC, 0);
	if (host < 0 || nd_remember(&nd_process.host, host) < 0 || nd_remember(&go.side, side) < 0 ||
	    nd_remember(&go.handshake, handshake) < 0)
		return errno;
	nd_process.id = getpid();
	nd_process.leads_group = getpgrp() == nd_process.id;
	const char *sockets = getenv("PLUGIN_UNIX_SOCKET_DIR");
	if (sockets && *sockets) snprintf(go.sockets, sizeof go.sockets, "%s/", sockets);
	return no_handlers ? no_handlers : nd_start_guard();
}

void nd_opened(void) { nd_tell(OPENED); }
void nd_called(void) { nd_tell(CALLED); }

void nd_end(void) {
	if (nd_still_open(&nd_process.wake) && write(nd_process.wake.fd, "", 1) < 0) return; // the guard knows
}

EXPORT int nd_forked(void) { return atomic_load(&nd_process.forked); }
EXPORT int nd_ending(void) { return atomic_load(&nd_process.ending); }

// Readies a thread of the program's to enter Go. If it must not, *said is what to say instead.
static bool into_go(int *said) {
	*said = nd_forked() ? ND_FORKED : 0;
	if (*said) return false;
	if (ndpy_into_go) ndpy_into_go();
	return true;
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
	// A stopped program must go on to see it.
	prctl(PR_SET_PDEATHSIG, SIGCONT);
	nd_forget_relocations();
	nd_sort_faults();
	return ndGoStart(handshake, nd_process.host.fd);
}

static void refuse(int status, const char *why) {
	char said[512];
	int n = snprintf(said, sizeof said, "{\"stage\":\"error\",\"kind\":\"unavailable\",%s}", why);
	send(status, said, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// Opens the interpreter for hosts that come to this process. If that is not possible, status, a socket, is told why. Needs the GIL, as does
// nd_attach.
EXPORT int nd_open(int status) {
	int said;
	if (!into_go(&said)) {
		refuse(status, "\"message\":\"the process was forked by one that had a host\","
		               "\"remedy\":\"start it anew, with subprocess or multiprocessing's spawn\"");
		return said;
	}
	if ((said = no_handlers ? no_handlers : nd_wake(status)))
		refuse(status, "\"message\":\"the program has too few descriptors left, or too little memory, for a host\","
		               "\"remedy\":\"raise its limit of open files (RLIMIT_NOFILE, ulimit -n)\"");
	else
		said = ndGoOpen(status);
	out_of_go();
	return said;
}

// Serves a host that has come to this process, on descriptors that are the plugin's from now on, whatever the answer: 0 or not.
EXPORT int nd_attach(int side, int stream) {
	int said;
	if (!into_go(&said)) { // between nd_open and here
		close_bare(side), close_bare(stream);
		return said;
	}
	said = ndGoAttach(side, stream);
	out_of_go();
	return said;
}

// Waits until the host has opened the session, or for its end.
EXPORT int nd_await_open(void) {
	int news = nd_await(OPENED | ENDED, -1);
	if (news <= 0) return ND_INTERRUPTED;
	if (news & ENDED) return ND_ENDED;
	nd_hold_descriptors();
	pthread_mutex_lock(&nd_process.lock);
	int ending = atomic_load(&nd_process.ending);
	nd_process.script_runs = !ending;
	pthread_mutex_unlock(&nd_process.lock);
	return ending ? ND_ENDED : 0;
}

// Waits for the end of the session, with a limit unless that is negative.
EXPORT int nd_wait(int milliseconds) {
	int news = nd_await(ENDED, milliseconds);
	return news < 0 ? ND_INTERRUPTED : news ? ND_ENDED : 0;
}

static void script_ended(void) {
	if (nd_forked()) return;
	pthread_mutex_lock(&nd_process.lock);
	nd_process.script_runs = false;
	pthread_mutex_unlock(&nd_process.lock);
}

// Says that the script ended by itself.
EXPORT void nd_finished(int status, char *message) {
	int said;
	script_ended();
	if (!into_go(&said)) return;
	ndGoFinished(status, message);
	out_of_go();
}

// Gives the plugin's version as a str. Needs the GIL, as does what follows.
EXPORT uintptr_t nd_version(void) {
	int said;
	if (!into_go(&said)) return 0;
	uintptr_t version = ndGoVersion();
	out_of_go();
	return version;
}

// Says that the script raised.
EXPORT int nd_failed(uintptr_t exception) {
	int said;
	script_ended();
	if (!into_go(&said)) return said;
	ndGoFailed(exception);
	out_of_go();
	return 0;
}

EXPORT int nd_publish(uintptr_t name, uintptr_t array) {
	int said;
	if (!into_go(&said)) return said;
	said = ndGoPublish(name, array);
	out_of_go();
	return said;
}

EXPORT int nd_publish_all(uintptr_t arrays) {
	int said;
	if (!into_go(&said)) return said;
	said = ndGoPublishAll(arrays);
	out_of_go();
	return said;
}

EXPORT int nd_unpublish(uintptr_t name) {
	int said;
	if (!into_go(&said)) return said;
	said = ndGoUnpublish(name);
	out_of_go();
	return said;
}

// Makes a stream wait for what the host reads: a CUstream, or 0 for the one that is current.
EXPORT int nd_after_reads(uintptr_t array, uintptr_t stream) {
	int said;
	if (!into_go(&said)) return said;
	said = ndGoAfterReads(array, stream);
	out_of_go();
	return said;
}

// Gives the names of the host's functions as a tuple, or NULL with an exception. Not for forked children, nor is the next one.
EXPORT uintptr_t nd_host_functions(void) {
	int said;
	if (!into_go(&said)) return 0;
	uintptr_t names = ndGoHostFunctions();
	out_of_go();
	return names;
}

// Calls a function of the host's, with a tuple and a dict.
EXPORT uintptr_t nd_call_host(uintptr_t name, uintptr_t args, uintptr_t kw) {
	int said;
	if (!into_go(&said)) return 0;
	uintptr_t result = ndGoCallHost(name, args, kw);
	out_of_go();
	return result;
}

// What nd_serve needs of Python.
struct waiting {
	void *(*save)(void);
	void (*restore)(void *);
	int (*handle)(void);
};

// Waits for calls with the GIL given back, and then has signals handled. Gives the news, or -1 if a handler has raised. A signal
// that comes just before the wait is handled after it.
static int await_calls(const struct waiting *python) {
	enum { SIGNALS_MS = 250 };
	void *state = python->save();
	int news = nd_await(ENDED | CALLED, SIGNALS_MS);
	python->restore(state);
	if (python->handle() < 0) return -1;
	return news < 0 ? 0 : news;
}

// Serves calls on this thread, which must be the main one, until the session ends or an exception is raised.
EXPORT int nd_serve(void) {
	int said, news = 0;
	struct waiting python;
	*(void **)&python.save = dlsym(RTLD_DEFAULT, "PyEval_SaveThread");
	*(void **)&python.restore = dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");
	*(void **)&python.handle = dlsym(RTLD_DEFAULT, "Py_MakePendingCalls");
	if (!into_go(&said)) return said;
	said = ndGoServe();
	out_of_go();
	if (said) return said;
	while (said == 0 && !(news & ENDED)) {
		news = await_calls(&python);
		if (news < 0) said = news, news = 0;
		if (nd_forked()) return said ? said : ND_FORKED; // in a handler of a signal
		if (news != CALLED) continue;
		atomic_fetch_and(&nd_process.news, ~(unsigned)CALLED);
		if (!into_go(&said)) return said;
		said = ndGoServeCall();
		out_of_go();
	}
	if (!into_go(&said)) return said;
	ndGoServeEnd((news & ENDED) != 0);
	out_of_go();
	return said;
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
	int said;
	if (!into_go(&said)) return;
	ndGoClose();
	out_of_go();
}
