// The guard: a thread that waits for what may happen to the session while neither Go nor Python can do anything about it.
//
// - The host ends, or wants the end: then the program is ended.
// - The program closes descriptors that it has not opened (os.closerange, daemons). Go's are among them, and Go ends
//   the process when it finds that out.
// - Go ends for any other reason.
//
// In the latter two the program goes on without the plugin, and the host is told why. For that the guard has a table of
// descriptors of its own, in which nothing is closed by others.
#define _GNU_SOURCE
#include "lifecycle.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef GRACE_MS // tests of an end in order give more, since the machine may be busy
#define GRACE_MS 1000
#endif
enum { NUDGE_MS = 50 };

static struct {
	int woken; // the reading end of nd_process.wake
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
	for (int left = GRACE_MS; left > 0 && poll(&ended, 1, NUDGE_MS) == 0; left -= NUDGE_MS)
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

// From now on the program is without the plugin. What is said is a status message.
static void lose(const char *said) {
	if (atomic_exchange(&nd_process.lost, true)) return;
	send(nd_process.host.fd, said, strlen(said), MSG_DONTWAIT | MSG_NOSIGNAL);
	nd_tell(ENDED);
}

static void lose_descriptors(void) {
	lose("{\"stage\":\"lost\",\"kind\":\"unavailable\",\"message\":\"the program closed descriptors that it had not opened, and goes "
	     "on without the plugin\",\"remedy\":\"let it close only its own descriptors, or do so before it is started by a host\"}");
}

// Tells whether the program's descriptors are what they were: those of the first thread, that is.
static bool intact(const struct file *f) {
	char path[64];
	struct stat now;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", nd_process.id, f->fd);
	return stat(path, &now) == 0 && now.st_dev == f->device && now.st_ino == f->inode;
}

static bool descriptors_gone(void) { return !intact(&nd_process.host) || !intact(&nd_process.wake); }

// Tells whether threads of the program are in Go, and do not come out of it.
static bool stuck_in_go(void) {
	enum { PATIENCE_MS = 1000, STEP_MS = 10 };
	for (int left = PATIENCE_MS; left > 0 && atomic_load(&nd_process.in_go) > 0; left -= STEP_MS) poll(NULL, 0, STEP_MS);
	return atomic_load(&nd_process.in_go) > 0;
}

static void answer(int listener, const struct seccomp_notif *call) {
	struct seccomp_notif_resp go_on = {.id = call->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &go_on) == 0 || errno != EINVAL) return;
	if (call->data.nr != __NR_write) kill(nd_process.id, SIGKILL); // Linux before 5.5
	struct seccomp_notif_resp done = {.id = call->id, .val = (int64_t)call->data.args[2]};
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &done);
}

// A thread of Go's is held up in a call of those that gothreads.c names. Gives whether Go goes on.
static bool go_calls(int listener) {
	_Alignas(8) char room[512] = {0}; // newer kernels may write more than this header knows of
	struct seccomp_notif *call = (struct seccomp_notif *)room;
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, call) < 0) return true;
	bool goes_on = false;
	if (descriptors_gone()) {
		lose_descriptors();
	} else if (call->data.nr == __NR_write) {
		goes_on = true;
	} else {
		lose("{\"stage\":\"lost\",\"kind\":\"unavailable\",\"message\":\"the plugin failed, and the program goes on without it\","
		     "\"remedy\":\"report what the plugin has written to the program's standard error\"}");
	}
	// Whoever has Python's lock, or waits in Go for a thread that is held up, would stop the program for good. Then it
	// ends with Go.
	if (!goes_on && !(ndpy_entered && ndpy_entered((pid_t)call->pid)) && !stuck_in_go()) return false;
	answer(listener, call);
	return true;
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
	int listener = &nd_go_ends ? nd_go_ends : -1;
	int keep[] = {nd_process.host.fd, guard.woken, listener}, n = listener < 0 ? 2 : 3;
	sort(keep, n);
	bool own = own_descriptors(keep, n);
	nd_tell(own ? GUARDED : SHARED);

	struct pollfd fds[] = {
		{.fd = nd_process.host.fd, .events = POLLRDHUP},
		{.fd = guard.woken, .events = POLLIN},
		{.fd = listener, .events = POLLIN},
	};
	for (;;) {
		if (poll(fds, 3, -1) < 0) continue;
		if (fds[2].revents && !go_calls(fds[2].fd)) fds[2].fd = -1;
		if (fds[0].revents & POLLNVAL || fds[1].revents & POLLNVAL) {
			fds[0].fd = fds[1].fd = -1;
			lose_descriptors();
		} else if (fds[0].revents) {
			break;
		} else if (fds[1].revents) {
			// Go also wants the end when its descriptors are gone, or the pipe's other end is closed.
			if (fds[1].revents & POLLIN && !descriptors_gone()) break;
			fds[1].fd = -1;
			lose_descriptors();
		}
	}
	end();
	return unused;
}

static int start_thread(void) {
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

int nd_start_guard(void) {
	// Beyond those that Go opens: whoever closes a range most often closes all from some number on.
	enum { BEYOND = 48 };
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0) return errno;
	int wake = fcntl(ends[1], F_DUPFD_CLOEXEC, BEYOND);
	guard.woken = ends[0];
	if (nd_remember(&nd_process.wake, wake < 0 ? ends[1] : wake) < 0) return errno;
	if (wake >= 0) close(ends[1]);
	int failed = start_thread();
	if (failed) return failed;
	if (nd_await(GUARDED | SHARED, -1) & GUARDED) { // the guard has its own of these
		close(guard.woken);
		if (&nd_go_ends && nd_go_ends >= 0) close(nd_go_ends);
	}
	return 0;
}
