/*
 * Hosts that have come to this process: each is waited for until it says something, beside the others, and then the module
 * ndbridge lets it into the interpreter. One that says nothing for a while is sent away.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "heap.h"

/* The module, as a program would import it. */
__asm__(".pushsection .rodata\n"
	"listen_module: .incbin \"../../../hostplugin/bootstrap/python/ndbridge.py\"\n"
	"listen_module_end: .byte 0\n"
	".popsection");
extern const char listen_module[] __attribute__((visibility("hidden"))), listen_module_end[] __attribute__((visibility("hidden")));

enum {
	PEERS = 16,
	PATIENCE_MS = 5000,
	BUSY_MS = 100,
	TAKE_MS = 1000, /* how long the main thread waits for another to take Python's lock */
	ASIDE_MS = 50,	/* and how long for it to be done */
	LOOK_MS = 10,	/* and then for the host's first look */
};

/* Those who have come and have said nothing yet. */
static struct {
	struct lock lock;
	unsigned count;
	struct peer {
		int fd;
		ino_t inode; /* the program may close descriptors that are not its own */
		uint32_t since;
	} all[PEERS], last; /* last: who was taken out last, and may be being let in */
} peers;

static _Atomic bool entered; /* somebody is let in, or was */

bool enter_idle(void) { return !atomic_load(&entered); }

/* The functions of Python's that are needed to call it. */
static struct {
	int (*is_initialized)(void);
	int (*ensure)(void);
	void (*release)(int);
	void *(*builtins)(void);
	void *(*new_dict)(void);
	void *(*new_bytes)(const char *, ssize_t);
	void *(*new_int)(long);
	int (*set_item)(void *, const char *, void *);
	void *(*compile)(const char *, const char *, int);
	void *(*eval)(void *, void *, void *);
	void (*clear)(void);
	void (*decref)(void *);
	int (*soon)(int (*)(void *), void *);
	void *(*save)(void);
	void (*restore)(void *);
} python;

bool enter_find_python(void) {
	static const char *const names[] = {
		"Py_IsInitialized", "PyGILState_Ensure", "PyGILState_Release", "PyEval_GetBuiltins", "PyDict_New", "PyBytes_FromStringAndSize",
		"PyLong_FromLong", "PyDict_SetItemString", "Py_CompileString", "PyEval_EvalCode", "PyErr_Clear", "Py_DecRef",
		"Py_AddPendingCall", "PyEval_SaveThread", "PyEval_RestoreThread",
	};
	void **functions = (void **)&python;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!(functions[i] = next_dlsym(RTLD_DEFAULT, names[i])))
			return false;
	return true;
}

static void set(void *dict, const char *name, void *value) {
	if (value && python.set_item(dict, name, value) != 0)
		python.clear();
	if (value)
		python.decref(value);
}

static bool is_there(const struct peer *p) {
	struct stat status;
	return syscall(SYS_fstat, p->fd, &status) == 0 && S_ISSOCK(status.st_mode) && status.st_ino == p->inode;
}

static void send_away(const struct peer *p) {
	if (is_there(p))
		syscall(SYS_close, p->fd);
}

/* Tells who has come why it is sent away: nobody else can, for the module has not run. */
static void refuse(const struct peer *p) {
	static const char said[] =
		"{\"stage\":\"error\",\"kind\":\"unavailable\",\"message\":\"the program's Python does not run what lets a host in\","
		"\"remedy\":\"see whether an audit hook of the program forbids it, or the program has replaced or lost parts of Python\"}";
	char unread; /* would hide the answer */
	while (is_there(p) && recv(p->fd, &unread, 1, MSG_DONTWAIT) > 0) {
	}
	if (is_there(p) && send(p->fd, said, sizeof said - 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
	}
	send_away(p);
}

/*
 * Python gives its lock to a thread that wants it when that has waited for 5 ms, and to let a host in takes it again and again. So the main
 * thread is asked to step aside for the whole of it: between two instructions, as when it handles a signal, it lets go of the lock. It has
 * it again when the host that has come has looked at something, for which it would wait as long once more.
 * Python 3.9 to 3.12 look for such questions only when some thread has asked for the lock, as the thread that lets the host in does.
 */
static struct {
	_Atomic uint32_t stage; /* a futex */
	_Atomic bool asked;
} aside;

enum { NOBODY, WANTS, IS_IN, LOOKS };

static void wake_main(void) { syscall(SYS_futex, &aside.stage, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }

static void set_stage(uint32_t stage) {
	atomic_store(&aside.stage, stage);
	wake_main();
}

/* Waits until a stage is over. */
static void outwait(uint32_t stage, uint32_t ms) {
	uint32_t end = now_ms() + ms;
	for (int32_t left; atomic_load(&aside.stage) == stage && (left = (int32_t)(end - now_ms())) > 0;) {
		struct timespec time = {.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000L};
		syscall(SYS_futex, &aside.stage, FUTEX_WAIT_PRIVATE, stage, &time, NULL, 0);
	}
}

static int step_aside(void *unused) {
	(void)unused;
	int saved = errno;
	atomic_store(&aside.asked, false);
	uint32_t stage = atomic_load(&aside.stage);
	if (stage != WANTS && stage != IS_IN)
		return 0;
	void *state = python.save();
	outwait(WANTS, TAKE_MS);
	outwait(IS_IN, ASIDE_MS);
	outwait(LOOKS, LOOK_MS);
	python.restore(state);
	errno = saved;
	return 0;
}

EXPORTED void ndheap_looked(void) {
	uint32_t stage = LOOKS;
	if (atomic_compare_exchange_strong(&aside.stage, &stage, NOBODY)) /* another may be coming */
		wake_main();
}

static void ask_aside(void) {
	set_stage(WANTS);
	if (!atomic_exchange(&aside.asked, true) && python.soon(step_aside, NULL) != 0)
		atomic_store(&aside.asked, false); /* the program itself has asked for much */
}

/* Lets in who has come, which ends with the descriptor closed, or taken over. */
static void let_in(const struct peer *p) {
	static const char text[] =
		"import sys\n"
		"module = sys.modules.get('ndbridge')\n"
		"if not hasattr(module, '_come'):\n"
		"    module = type(sys)('ndbridge')\n"
		"    first, _, rest = source.partition(b'\\n# The rest is compiled when it is asked for.\\n')\n"
		"    exec(compile(first, '<ndbridge>', 'exec'), module.__dict__)\n"
		"    module._rest = rest\n"
		"module._come(module, descriptor)\n";
	enum { FILE_INPUT = 257 };
	atomic_store(&entered, true);
	ask_aside();
	hurry(true);
	int state = python.ensure();
	hurry(false);
	set_stage(IS_IN);
	void *names = python.new_dict(), *code = python.compile(text, "<ndbridge>", FILE_INPUT), *result = NULL;
	if (names && code) {
		python.set_item(names, "__builtins__", python.builtins());
		set(names, "source", python.new_bytes(listen_module, listen_module_end - listen_module));
		set(names, "descriptor", python.new_int(p->fd));
		result = python.eval(code, names, names);
		if (result)
			python.decref(result);
	}
	python.clear(); /* the host was told, or is gone */
	if (code)
		python.decref(code);
	if (names)
		python.decref(names);
	python.release(state);
	set_stage(result ? LOOKS : NOBODY);
	if (!result)
		refuse(p);
}

/* Waits until there is an interpreter. False: who has come has gone again. */
static bool await_python(int fd) {
	struct pollfd gone = {.fd = fd, .events = POLLRDHUP};
	while (!python.is_initialized())
		if (poll(&gone, 1, 10) != 0)
			return false;
	return true;
}

/* Serves one that has said something, or has gone. */
static void answer(const struct peer *p) {
	char first;
	if (is_there(p) && recv(p->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0 && await_python(p->fd))
		let_in(p);
	else
		send_away(p);
}

/* False: nobody will come any more. */
static bool take_next(int socket) {
	struct peer p = {.fd = accept4(socket, NULL, NULL, SOCK_CLOEXEC), .since = now_ms()};
	if (p.fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
		nanosleep(&(struct timespec){.tv_nsec = BUSY_MS * 1000000}, NULL);
		return true;
	}
	if (p.fd < 0)
		return errno == ECONNABORTED || errno == EINTR || errno == EAGAIN;
	p.fd = descriptor_raise(p.fd); /* the program may count on the lower numbers */
	struct stat status;
	if (p.fd < 0 || syscall(SYS_fstat, p.fd, &status) != 0)
		return true;
	p.inode = status.st_ino;
	lock(&peers.lock);
	peers.all[peers.count++] = p;
	unlock(&peers.lock);
	return true;
}

static struct peer take_out(unsigned i) {
	lock(&peers.lock);
	struct peer p = peers.last = peers.all[i];
	peers.all[i] = peers.all[--peers.count];
	unlock(&peers.lock);
	return p;
}

/* Only this thread changes who is there. */
void enter_wait(int socket, bool (*listens)(int socket)) {
	bool more = true;
	while (more && listens(socket)) {
		/* accept alone would take a number that the program counts on, for as long as it waits. */
		struct pollfd polled[PEERS + 1];
		for (unsigned i = 0; i < peers.count; i++)
			polled[i] = (struct pollfd){.fd = peers.all[i].fd, .events = POLLIN};
		unsigned count = peers.count;
		polled[count] = (struct pollfd){.fd = count < PEERS ? socket : -1, .events = POLLIN};
		if (poll(polled, count + 1, count ? PATIENCE_MS : -1) < 0)
			memset(polled, 0, sizeof polled); /* interrupted */
		if (polled[count].revents)
			more = take_next(socket);
		for (unsigned i = count; i-- > 0;) {
			bool late = now_ms() - peers.all[i].since >= PATIENCE_MS;
			struct peer p = polled[i].revents || late ? take_out(i) : (struct peer){.fd = -1};
			if (p.fd >= 0 && polled[i].revents)
				answer(&p);
			else if (p.fd >= 0)
				send_away(&p);
		}
	}
	while (peers.count) {
		struct peer p = take_out(peers.count - 1);
		send_away(&p);
	}
}

void enter_before_fork(void) { lock(&peers.lock); }

void enter_in_parent(void) { unlock(&peers.lock); }

void enter_in_child(void) {
	lock_reset(&peers.lock);
	atomic_store(&entered, false);
	atomic_store(&aside.stage, NOBODY);
	atomic_store(&aside.asked, false);
	while (peers.count)
		send_away(&peers.all[--peers.count]);
	send_away(&peers.last);
}
