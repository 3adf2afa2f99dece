/*
 * Lets hosts come to a Python process: a socket in a directory of the user's, NAME.PID, and a thread that sleeps in the kernel
 * until one comes. Only then is anything run in the interpreter: see enter.c.
 *
 * "ndbridge run --share" asks for it by the environment, which children inherit; and so may the program itself (ndheap_listen). A
 * program that a host has started does not listen, but its children do.
 * A forked child listens under its own number. The socket is bound a moment later, so that a process which soon ends or runs
 * another program leaves no file, and waits for none. Whatever fails, the program runs as without all this.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "heap.h"

enum {
	PATH = sizeof ((struct sockaddr_un *)0)->sun_path,
	NAME = 64,
	BACKLOG = 16,
	SOON_MS = 50,    /* how long a process has to end or to become another program */
	STOP_MS = 1000,
};

static struct {
	struct lock lock;
	bool over; /* the process ends */
	bool told; /* of forks */
	bool say;  /* why it does not listen */
	bool forks_beside; /* a thread forks that is not the main one */
	bool astray; /* this child was forked so, or comes from such a one: it ends when that thread does, as its last */
	_Atomic pid_t thread; /* which waits for hosts, or 0 */
	char directory[PATH], name[NAME + 1]; /* as the environment says */
	char path[PATH];
	pid_t process; /* which listens there */
	pid_t soon;    /* which is about to listen, without being asked */
	_Atomic int fd; /* also before it is bound; -1 or 0: none */
	ino_t inode;
} here;

/* The kernel's own call, since older libcs have no function of this name. */
static bool look_at(const char *path, struct stat *status) {
	return syscall(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_socket(int fd, ino_t inode) {
	struct stat status;
	return syscall(SYS_fstat, fd, &status) == 0 && S_ISSOCK(status.st_mode) && status.st_ino == inode;
}

bool listen_owns_fd(int fd) {
	return fd > 0 && fd == atomic_load_explicit(&here.fd, memory_order_relaxed) && is_socket(fd, here.inode);
}

static void close_socket(void) {
	int fd = atomic_exchange(&here.fd, -1);
	if (fd > 0 && is_socket(fd, here.inode)) {
		shutdown(fd, SHUT_RDWR); /* wakes the thread */
		syscall(SYS_close, fd);
	}
}

static int new_socket(int type) { return socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

/* Removes the socket of a process that is gone. Whoever listens there does not notice: the kernel says that it wants another type. */
static void clear(const struct sockaddr_un *address) {
	struct stat status;
	if (!look_at(address->sun_path, &status) || !S_ISSOCK(status.st_mode))
		return;
	int probe = new_socket(SOCK_DGRAM);
	if (probe >= 0 && connect(probe, (const struct sockaddr *)address, sizeof *address) != 0 && errno == ECONNREFUSED)
		unlink(address->sun_path);
	syscall(SYS_close, probe);
}

/* Gives the inode of a new socket, whose number is not one that the program uses, or 0. */
static ino_t open_socket(int *fd) {
	struct stat status;
	*fd = new_socket(SOCK_SEQPACKET);
	if (*fd < 0 || (*fd = descriptor_raise(*fd)) < 0)
		return 0;
	if (syscall(SYS_fstat, *fd, &status) == 0)
		return status.st_ino;
	syscall(SYS_close, *fd);
	return 0;
}

/* Listens at a path instead of where it did, with a socket that it takes. Gives an error number. Wants the lock. */
static int listen_at(const char *path, int fd, ino_t inode) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int failed = here.over ? ECANCELED : inode == 0 ? EMFILE : strlen(path) >= sizeof address.sun_path ? ENAMETOOLONG : 0;
	if (!failed) {
		strcpy(address.sun_path, path);
		clear(&address);
		if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || chmod(path, 0600) != 0 || listen(fd, BACKLOG) != 0)
			failed = errno;
	}
	if (failed) {
		if (atomic_load(&here.fd) == fd)
			close_socket();
		else if (is_socket(fd, inode))
			syscall(SYS_close, fd);
		return failed;
	}
	if (here.process == getpid() && *here.path && strcmp(here.path, path) != 0)
		unlink(here.path);
	if (atomic_load(&here.fd) != fd)
		close_socket();
	strcpy(here.path, path);
	here.process = getpid();
	here.inode = inode;
	atomic_store(&here.fd, fd);
	return 0;
}

/* Whether a directory is this user's alone. It is made if need be. */
static bool is_own(const char *directory) {
	struct stat status;
	mkdir(directory, 0700);
	return look_at(directory, &status) && S_ISDIR(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & 077) == 0;
}

/* The number of the process at the end of a socket's name, or 0. */
static pid_t process_of(const char *name) {
	const char *point = strrchr(name, '.');
	return point && point > name ? atoi(point + 1) : 0;
}

/* Removes what this process has left there before it ran another program, and what others have that were killed. */
static void clear_left(void) {
	DIR *directory = opendir(here.directory);
	for (struct dirent *e; directory && (e = readdir(directory));) {
		struct sockaddr_un address = {.sun_family = AF_UNIX};
		pid_t process = process_of(e->d_name);
		bool gone = process > 0 && (process == getpid() || (kill(process, 0) != 0 && errno == ESRCH));
		if (gone && (size_t)snprintf(address.sun_path, PATH, "%s/%s", here.directory, e->d_name) < PATH)
			clear(&address);
	}
	if (directory)
		closedir(directory);
}

/* Finds where this process listens: where its parent does, under its own number, or as the environment says. Wants the lock. */
static bool find_path(char path[2 * PATH]) {
	bool inherits = here.process && process_of(here.path) == here.process;
	if (inherits)
		snprintf(path, 2 * PATH, "%.*s.%d", (int)(strrchr(here.path, '.') - here.path), here.path, getpid());
	else if (*here.directory)
		snprintf(path, 2 * PATH, "%s/%s.%d", here.directory, here.name, getpid());
	return inherits || *here.directory;
}

static void pause_ms(long ms) {
	struct timespec time = {.tv_nsec = ms * 1000000};
	nanosleep(&time, NULL);
}

static void *wait_for_hosts(void *socket) {
	atomic_store(&here.thread, (pid_t)syscall(SYS_gettid));
	enter_wait((int)(intptr_t)socket, listen_owns_fd);
	return NULL;
}

static void complain(int failed) {
	char text[256];
	if (!here.say || !failed || failed == ECANCELED)
		return;
	int n = snprintf(text, sizeof text, "ndbridge: process %d does not listen as %s: %s\n", getpid(), here.name, strerror(failed));
	if (write(STDERR_FILENO, text, (size_t)n) < 0) {
	}
}

/* The thread of a process whose program has not asked for it. */
static void *begin(void *socket) {
	int fd = (int)(intptr_t)socket, failed = 0;
	char path[2 * PATH];
	atomic_store(&here.thread, (pid_t)syscall(SYS_gettid));
	pause_ms(SOON_MS);
	lock(&here.lock);
	if (atomic_load(&here.fd) != fd) /* its program has asked meanwhile, which has closed this socket */
		fd = -1;
	else if (!find_path(path))
		close_socket();
	else if (*here.directory && !is_own(here.directory))
		close_socket(), failed = EPERM;
	else
		failed = listen_at(path, fd, here.inode);
	unlock(&here.lock);
	complain(failed);
	return failed || fd < 0 ? NULL : wait_for_hosts((void *)(intptr_t)fd);
}

/*
 * The descriptor is opened here, and not by the thread, which would take a number that the program counts on for a moment. From
 * now on it is ours: a daemon that closes what it has not opened leaves it open, and a child closes it.
 */
static void begin_soon(void) {
	int fd;
	here.inode = open_socket(&fd);
	if (!here.inode)
		return;
	atomic_store(&here.fd, fd);
	here.soon = getpid();
	if (threads_run(begin, (void *)(intptr_t)fd) != 0)
		close_socket();
}

static void before_fork(void) {
	lock(&here.lock);
	here.forks_beside = syscall(SYS_gettid) != getpid();
	enter_before_fork();
}

static void in_parent(void) {
	enter_in_parent();
	unlock(&here.lock);
}

static void in_child(void) {
	int saved = errno, fd = atomic_exchange(&here.fd, -1);
	lock_reset(&here.lock);
	atomic_store(&here.thread, 0);
	enter_in_child();
	if (fd > 0 && is_socket(fd, here.inode))
		syscall(SYS_close, fd); /* or this process would look like its parent */
	here.astray |= here.forks_beside;
	if (!here.astray) /* another thread would keep it from its end */
		begin_soon();
	errno = saved;
}

static int learn_of_forks(void) {
	int failed = here.told ? 0 : pthread_atfork(before_fork, in_parent, in_child);
	here.told = here.told || !failed;
	return failed;
}

EXPORTED int ndheap_listen(const char *path) {
	int fd = -1;
	if (!enter_find_python())
		return ENOSYS;
	lock(&here.lock);
	if (listen_owns_fd(atomic_load(&here.fd)) && here.process == getpid() && strcmp(here.path, path) == 0) {
		unlock(&here.lock); /* it does already */
		return 0;
	}
	ino_t inode = learn_of_forks() == 0 ? open_socket(&fd) : 0;
	int failed = listen_at(path, fd, inode);
	unlock(&here.lock);
	return failed ? failed : threads_run(wait_for_hosts, (void *)(intptr_t)fd);
}

EXPORTED int ndheap_listens(void) { return atomic_load(&here.fd) > 0; }

void listen_start(const char *directory, const char *name, const char *say, bool children_only) {
	if (!directory || !*directory || strlen(directory) >= PATH || !enter_find_python() || learn_of_forks() != 0)
		return;
	strcpy(here.directory, directory);
	names_find(name, here.name, sizeof here.name);
	here.say = say && *say;
	clear_left();
	if (!children_only)
		begin_soon();
}

/* Ends the thread that waits for hosts, unless one has come. False: there is none to be ended. */
static bool stop(void) {
	for (int ms = 0; atomic_load(&here.fd) > 0 && !atomic_load(&here.thread) && ms < STOP_MS; ms++)
		pause_ms(1); /* it was just made */
	lock(&here.lock);
	pid_t thread = atomic_exchange(&here.thread, 0);
	bool stops = thread && enter_idle() && !here.over;
	if (stops)
		close_socket();
	unlock(&here.lock);
	for (int ms = 0; stops && ms < STOP_MS; ms++) {
		if (syscall(SYS_tgkill, getpid(), thread, 0) != 0)
			return true;
		pause_ms(1);
	}
	return stops;
}

/* Listens where it did before it was stopped. */
static void go_on(void) {
	char path[PATH];
	int fd;
	if (here.process != getpid()) {
		begin_soon(); /* it had not begun */
		return;
	}
	ino_t inode = open_socket(&fd);
	lock(&here.lock);
	strcpy(path, here.path);
	int failed = listen_at(path, fd, inode);
	unlock(&here.lock);
	if (!failed)
		threads_run(wait_for_hosts, (void *)(intptr_t)fd);
}

/* Makes a system call again that the kernel has refused since there is a second thread, which is ours. */
static int alone(long number, long first, long second) {
	int before = errno, result = (int)syscall(number, first, second);
	if (result == 0 || errno != EINVAL || !stop())
		return result;
	result = (int)syscall(number, first, second);
	int after = result == 0 ? before : errno;
	go_on();
	errno = after;
	return result;
}

EXPORTED int unshare(int flags) { return alone(SYS_unshare, flags, 0); }

EXPORTED int setns(int fd, int flags) { return alone(SYS_setns, fd, flags); }

/* Takes the lock, unless who has it, which may be this thread below a signal handler, does not let it go in a moment. */
static bool lock_soon(void) {
	enum { TRIES = 50 };
	for (int i = 0; i < TRIES; i++) {
		if (lock_try(&here.lock))
			return true;
		pause_ms(1);
	}
	return false;
}

/* Removes the socket. This may run in a signal handler, or between vfork and exec. */
static void end(void) {
	pid_t own = getpid();
	if ((here.process != own && here.soon != own) || !lock_soon())
		return;
	here.over = true;
	if (here.process == own && *here.path)
		unlink(here.path);
	unlock(&here.lock);
}

/* Also what children have left that were killed: pools end theirs so. */
__attribute__((destructor)) static void at_exit(void) {
	end();
	if (*here.directory)
		clear_left();
}

EXPORTED _Noreturn void _exit(int status) {
	end();
	for (;;)
		syscall(SYS_exit_group, status);
}

EXPORTED _Noreturn void _Exit(int status) { _exit(status); }

/* Python ends by this, too, after an interrupt that nobody has handled. */
EXPORTED int kill(pid_t process, int number) {
	struct sigaction action;
	if (number == SIGINT && process == getpid() && sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_DFL)
		end();
	return (int)syscall(SYS_kill, process, number);
}
