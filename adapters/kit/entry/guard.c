// The guard: a thread that waits for what may happen to the session while neither Go nor Python can do anything about it.
//
// - The host ends, or wants the end: then the program is ended.
// - The program closes the plugin's descriptors. Go could only write into whatever file gets their numbers, or end the
//   process when its network poller finds out. So the guard tells the host why, and ends the process. This is rare: where
//   the shared heap is preloaded, it keeps these descriptors open (lifecycle.c).
//
// For the second the guard has a table of descriptors of its own, in which nothing is closed by others.
#define _GNU_SOURCE
#include "lifecycle.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NUDGE_MS = 50, DEFAULT_GRACE_MS = 5000 };

static struct {
	int woken; // the reading end of nd_process.wake
	int descriptors; // /proc/self/fd, which the program may leave behind by chroot
	int grace; // milliseconds that the program has to end in, as the host says
	bool nudge; // see prepare_nudge
} guard;

static void nudged(int signal) { (void)signal; }

// Makes a signal interrupt the main thread's system calls, and do nothing else, unless the program has
// its own use of it: Python's sleep misses an interrupt that comes just before it, but not a later one.
static void prepare_nudge(void) {
	struct sigaction before, action = {.sa_handler = nudged, .sa_flags = SA_ONSTACK};
	if (sigaction(SIGRTMAX, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
		guard.nudge = sigaction(SIGRTMAX, &action, NULL) == 0;
}

// Interrupts the program, waits until it has ended, but no longer than the time that it has for that,
// and ends what is left of it by force, with its process group. The caller has the lock.
static int end_program(void *self) {
	atomic_store(&nd_process.ending, true);
	// Python's main thread is the process's first: its id is the process's.
	if (nd_process.script_runs) syscall(SYS_tgkill, nd_process.id, nd_process.id, SIGINT);
	nd_tell(ENDED);
	pthread_mutex_unlock(&nd_process.lock);

	struct pollfd ended = {.fd = *(int *)self, .events = POLLIN}; // if it is -1, this only waits
	for (int left = guard.grace; left > 0 && poll(&ended, 1, NUDGE_MS) == 0; left -= NUDGE_MS)
		if (guard.nudge) syscall(SYS_tgkill, nd_process.id, nd_process.id, SIGRTMAX);
	// A process that was started by hand is not the leader of its group: that is the shell's.
	kill(nd_process.leads_group ? 0 : nd_process.id, SIGKILL);
	return 0;
}

static void end(void) {
	prepare_nudge();
	pthread_mutex_lock(&nd_process.lock);
	// The program's children must end even if the process ends by itself, at once. So another process
	// sees to it, which shares this one's memory as if between vfork and exec: it is no copy, and no
	// handler of forks runs. Being of the group, it keeps the group's number in use; without a signal
	// of its end, the program's own wait does not see it.
	_Alignas(16) char stack[16 << 10];
	int self = (int)syscall(SYS_pidfd_open, nd_process.id, 0);
	if (clone(end_program, stack + sizeof stack, CLONE_VM | CLONE_VFORK, &self) < 0) end_program(&self);
}

// Ends the process, which closed descriptors of the plugin's.
static void lose(void) {
#define CAUSE "the program closed descriptors of the plugin, which it had not opened"
#define REMEDY "let it close its own alone, or start it with the shared heap, which keeps the plugin's open"
	static const char status[] = "{\"stage\":\"lost\",\"kind\":\"unavailable\",\"message\":\"" CAUSE "\",\"remedy\":\"" REMEDY "\"}";
	static const char text[] = "ndbridge: " CAUSE ", and cannot go on; " REMEDY "\n";
	send(nd_process.host.fd, status, sizeof status - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT}; // nobody may read it
	if (poll(&room, 1, 0) > 0 && write(STDERR_FILENO, text, sizeof text - 1) < 0) {}
	syscall(SYS_exit_group, 1);
}

// Tells whether the program's descriptor is what it was: that of the first thread, that is.
static bool intact(const struct file *f) {
	char path[64];
	struct stat now;
	snprintf(path, sizeof path, "%d", f->fd);
	return fstatat(guard.descriptors, path, &now, 0) == 0 && now.st_dev == f->device && now.st_ino == f->inode;
}

// Gives this thread a table of descriptors with nothing in it but these, which are sorted.
static bool own_descriptors(const int *keep, int n) {
	enum { UNSHARE = 2 }; // CLOSE_RANGE_UNSHARE
	unsigned beyond = (unsigned)keep[n - 1] + 1;
	if (syscall(SYS_close_range, beyond, ~0u, UNSHARE) < 0) return false; // before Linux 5.9
	for (int i = 0, next = 0; i < n; next = keep[i++] + 1)
		if (keep[i] > next) syscall(SYS_close_range, next, keep[i] - 1, 0);
	return true;
}

static void sort(int *numbers, int n) {
	for (int i = 1; i < n; i++)
		for (int j = i; j > 0 && numbers[j - 1] > numbers[j]; j--) {
			int swap = numbers[j];
			numbers[j] = numbers[j - 1], numbers[j - 1] = swap;
		}
}

static void *watch(void *unused) {
	int keep[] = {STDERR_FILENO, nd_process.host.fd, guard.woken, guard.descriptors};
	sort(keep, 4);
	nd_tell(own_descriptors(keep, 4) ? GUARDED : SHARED);

	struct pollfd fds[] = {{.fd = nd_process.host.fd, .events = POLLRDHUP}, {.fd = guard.woken, .events = POLLIN}};
	for (;;) {
		if (poll(fds, 2, -1) < 0) continue;
		if ((fds[0].revents | fds[1].revents) & POLLNVAL) lose(); // without a table of its own
		if (fds[0].revents) break;
		// Go also wants the end when its descriptors are gone.
		if (!(fds[1].revents & POLLIN) || !intact(&nd_process.wake)) lose();
		break;
	}
	end();
	return unused;
}

int nd_start_guard(void) {
	// Beyond those that Go opens: whoever closes a range most often closes all from some number on.
	enum { BEYOND = 48 };
	const char *grace = getenv("NDBRIDGE_STOP_TIMEOUT_MS");
	guard.grace = grace ? atoi(grace) : DEFAULT_GRACE_MS;
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0) return errno;
	int wake = fcntl(ends[1], F_DUPFD_CLOEXEC, BEYOND);
	guard.woken = ends[0];
	guard.descriptors = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (nd_remember(&nd_process.wake, wake < 0 ? ends[1] : wake) < 0) return errno;
	if (wake >= 0) close(ends[1]);
	int failed = nd_run_thread(watch);
	if (failed) return failed;
	if (nd_await(GUARDED | SHARED, -1) & GUARDED) close(guard.woken), close(guard.descriptors); // the guard has its own
	return 0;
}
