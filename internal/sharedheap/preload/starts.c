/*
 * Interpreters that a program of a host starts: hosts can come to them, too, and their arrays can be shared.
 *
 * What that takes is not in the program's environment, where the program would see it. It is put into that of a process whose
 * executable is this one's, and is taken out again there: no other program gets to see it, and none is loaded with a
 * library that may not be made for it.
 *
 * All of this runs between vfork and exec, and in signal handlers: it takes no lock, and asks for no memory.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap.h"

#if defined(__GLIBC__) && defined(__x86_64__)
__asm__(".symver dladdr,dladdr@GLIBC_2.2.5");
#elif defined(__GLIBC__) && defined(__aarch64__)
__asm__(".symver dladdr,dladdr@GLIBC_2.17");
#endif

enum { TEXT = 4096, MOST = 4096 };

static const char preload[] = "LD_PRELOAD=", host[] = "NDBRIDGE_HEAP_HOST=0";

/* What is passed on: variables that are the same in all of them, as "NAME=value". */
static const char *const names[] = {"NDBRIDGE_HEAP_LISTEN", "NDBRIDGE_HEAP_THRESHOLD", "NDBRIDGE_HEAP_LIBRARIES", "NDBRIDGE_HEAP_PROMOTE"};
enum { NAMES = sizeof names / sizeof *names, OURS = NAMES + 2 };
static char kept[NAMES][TEXT];
static char library[TEXT]; /* "": nothing is passed on */
static struct stat executable;

static bool is_this_library(const char *entry, size_t length, const char *self) {
	const char *name = self;
	if (!memchr(entry, '/', length)) { /* found by the loader's search path */
		const char *slash = strrchr(self, '/');
		name = slash ? slash + 1 : self;
	}
	return strlen(name) == length && memcmp(name, entry, length) == 0;
}

/* Takes this library out of LD_PRELOAD, so that what the program starts runs without it. */
static void leave_preload(const char *self) {
	const char *list = getenv("LD_PRELOAD");
	if (!list)
		return;
	char rest[TEXT];
	size_t used = 0;
	for (const char *p = list; *p;) {
		size_t separators = strspn(p, ": ");
		size_t length = strcspn(p + separators, ": ");
		const char *entry = p + separators;
		p = entry + length;
		if (!length || is_this_library(entry, length, self))
			continue;
		if (used + length + 2 > sizeof rest)
			return; /* unreasonably long: better inherited than cut off */
		if (used)
			rest[used++] = ':';
		memcpy(rest + used, entry, length);
		used += length;
	}
	rest[used] = '\0';
	if (used)
		setenv("LD_PRELOAD", rest, 1);
	else
		unsetenv("LD_PRELOAD");
}

static bool look_at(const char *path, struct stat *status) { return syscall(SYS_newfstatat, AT_FDCWD, path, status, 0) == 0; }

static bool keep(const char *self) {
	if (*self != '/' || strncmp(self, "/proc/", 6) == 0 || strlen(self) >= TEXT || !look_at("/proc/self/exe", &executable))
		return false;
	for (size_t i = 0; i < NAMES; i++) {
		const char *value = getenv(names[i]);
		if (value && (size_t)snprintf(kept[i], TEXT, "%s=%s", names[i], value) >= TEXT)
			return false;
	}
	return *kept[0];
}

void starts_keep(void) {
	Dl_info self;
	if (dladdr(&ndheap_abi, &self) && self.dli_fname) {
		if (keep(self.dli_fname))
			strcpy(library, self.dli_fname);
		leave_preload(self.dli_fname);
	}
	for (size_t i = 0; i < NAMES; i++)
		unsetenv(names[i]);
	unsetenv("NDBRIDGE_HEAP_NAME");
	unsetenv("NDBRIDGE_HEAP_SAY");
	unsetenv("NDBRIDGE_HEAP_HOST");
}

/* Whether a file is the interpreter that runs here. */
static bool is_ours(const char *path) {
	struct stat status;
	return path && strchr(path, '/') && look_at(path, &status) && status.st_dev == executable.st_dev && status.st_ino == executable.st_ino;
}

/* How long an environment is, or 0 if nothing is to be added to it. */
static size_t extends(const char *path, char *const env[]) {
	if (likely(!*library) || !env || !is_ours(path))
		return 0;
	size_t n = 0;
	for (; env[n]; n++)
		if (strncmp(env[n], preload, sizeof preload - 1) == 0 && (strlen(env[n]) >= TEXT || strstr(env[n], "libndbridge-heap")))
			return 0; /* it has one already */
	return n >= MOST ? 0 : n ? n : 1;
}

/* Makes an environment with what is passed on. text is for LD_PRELOAD. */
static void extend(char **to, char text[2 * TEXT], char *const env[]) {
	const char *others = "";
	for (; *env; env++) {
		if (strncmp(*env, preload, sizeof preload - 1) == 0)
			others = *env + sizeof preload - 1;
		else
			*to++ = *env;
	}
	char *end = stpcpy(stpcpy(text, preload), library);
	if (*others)
		stpcpy(stpcpy(end, ":"), others);
	*to++ = text;
	*to++ = (char *)host;
	for (size_t i = 0; i < NAMES; i++)
		if (*kept[i])
			*to++ = kept[i];
	*to = NULL;
}

EXPORTED int execve(const char *path, char *const argv[], char *const env[]) {
	size_t n = extends(path, env);
	if (!n)
		return (int)syscall(SYS_execve, path, argv, env);
	char text[2 * TEXT], *all[n + OURS + 1];
	extend(all, text, env);
	return (int)syscall(SYS_execve, path, argv, all);
}

EXPORTED int execv(const char *path, char *const argv[]) { return execve(path, argv, environ); }

typedef int (*spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], char *const[]);

static int spawn_by(spawn function, pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
		    char *const argv[], char *const env[]) {
	size_t n = extends(path, env);
	if (!n)
		return function(pid, path, actions, attributes, argv, env);
	char text[2 * TEXT], *all[n + OURS + 1];
	extend(all, text, env);
	return function(pid, path, actions, attributes, argv, all);
}

EXPORTED int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
			 char *const argv[], char *const env[]) {
	if (unlikely(!next.posix_spawn))
		next_resolve();
	return spawn_by(next.posix_spawn, pid, path, actions, attributes, argv, env);
}

EXPORTED int posix_spawnp(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
			  char *const argv[], char *const env[]) {
	if (unlikely(!next.posix_spawnp))
		next_resolve();
	return spawn_by(next.posix_spawnp, pid, path, actions, attributes, argv, env);
}
