/*
 * System calls that fill memory, as every library of the process sees them: read and its like pass the gate if they
 * may write into blocks or chunks. The libc's own calls, as fread makes them, go through no symbol of ours, so fread does.
 */
#include <limits.h>
#include <stdio.h>

#include "heap.h"

#undef fread_unlocked /* a macro of glibc's */

/* What lies between the pieces of memory that can be promoted. */
struct hull {
	uintptr_t from, to;
};

static void widen(struct hull *h, const struct iovec *parts, size_t count) {
	if (!parts || count > IOV_MAX)
		return; /* the kernel refuses it */
	for (size_t i = 0; i < count; i++) {
		uintptr_t at = (uintptr_t)parts[i].iov_base, end = at + parts[i].iov_len;
		if (!gate_guards(parts[i].iov_base, parts[i].iov_len))
			continue;
		h->from = at < h->from ? at : h->from;
		h->to = end > h->to ? end : h->to;
	}
}

static int enter_hull(struct hull h) { return h.from < h.to ? gate_enter((void *)h.from, h.to - h.from) : GATE_NOT_OURS; }

static int enter_all(const struct iovec *parts, size_t count) {
	struct hull h = {UINTPTR_MAX, 0};
	widen(&h, parts, count);
	return enter_hull(h);
}

static int enter_messages(const struct mmsghdr *messages, unsigned count) {
	struct hull h = {UINTPTR_MAX, 0};
	for (unsigned i = 0; messages && i < count && i < IOV_MAX; i++)
		widen(&h, messages[i].msg_hdr.msg_iov, messages[i].msg_hdr.msg_iovlen);
	return enter_hull(h);
}

/* Defines a function of the libc's that fills memory: what it gives, its name, its parameters, and in the same order its
 * arguments; and how it enters. */
#define FILLING(type, name, parameters, arguments, entering) \
	EXPORTED type name parameters {                      \
		if (unlikely(!next.name))                    \
			next_resolve();                      \
		int place = entering;                        \
		type result = next.name arguments;           \
		gate_leave(place);                           \
		return result;                               \
	}

FILLING(ssize_t, read, (int fd, void *to, size_t size), (fd, to, size), gate_enter(to, size))
FILLING(ssize_t, pread, (int fd, void *to, size_t size, off_t at), (fd, to, size, at), gate_enter(to, size))
FILLING(ssize_t, pread64, (int fd, void *to, size_t size, off64_t at), (fd, to, size, at), gate_enter(to, size))
FILLING(ssize_t, recv, (int fd, void *to, size_t size, int flags), (fd, to, size, flags), gate_enter(to, size))
FILLING(ssize_t, recvfrom, (int fd, void *restrict to, size_t size, int flags, struct sockaddr *restrict who, socklen_t *restrict length),
	(fd, to, size, flags, who, length), gate_enter(to, size))
FILLING(ssize_t, readv, (int fd, const struct iovec *to, int count), (fd, to, count), enter_all(to, (size_t)count))
FILLING(ssize_t, preadv, (int fd, const struct iovec *to, int count, off_t at), (fd, to, count, at), enter_all(to, (size_t)count))
FILLING(ssize_t, preadv64, (int fd, const struct iovec *to, int count, off64_t at), (fd, to, count, at), enter_all(to, (size_t)count))
FILLING(ssize_t, preadv2, (int fd, const struct iovec *to, int count, off_t at, int flags), (fd, to, count, at, flags),
	enter_all(to, (size_t)count)) /* which os.preadv calls */
FILLING(ssize_t, preadv64v2, (int fd, const struct iovec *to, int count, off64_t at, int flags), (fd, to, count, at, flags),
	enter_all(to, (size_t)count))
FILLING(ssize_t, process_vm_readv, (pid_t pid, const struct iovec *to, unsigned long count, const struct iovec *from, unsigned long parts,
	unsigned long flags), (pid, to, count, from, parts, flags), enter_all(to, count))
FILLING(ssize_t, getrandom, (void *to, size_t size, unsigned flags), (to, size, flags), gate_enter(to, size))
FILLING(int, getentropy, (void *to, size_t size), (to, size), gate_enter(to, size))
FILLING(ssize_t, recvmsg, (int fd, struct msghdr *to, int flags), (fd, to, flags), enter_all(to ? to->msg_iov : NULL, to ? to->msg_iovlen : 0))
FILLING(int, recvmmsg, (int fd, struct mmsghdr *to, unsigned count, int flags, struct timespec *limit), (fd, to, count, flags, limit),
	enter_messages(to, count))
FILLING(size_t, fread, (void *restrict to, size_t size, size_t count, FILE *restrict from), (to, size, count, from), gate_enter(to, size * count))
FILLING(size_t, fread_unlocked, (void *restrict to, size_t size, size_t count, FILE *restrict from), (to, size, count, from),
	gate_enter(to, size * count))

/* What programs call instead that are compiled with _FORTIFY_SOURCE, if the compiler knows how much memory there is. */
ssize_t __read_chk(int fd, void *to, size_t size, size_t room);
ssize_t __pread_chk(int fd, void *to, size_t size, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void *to, size_t size, off64_t at, size_t room);
ssize_t __recv_chk(int fd, void *to, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *to, size_t size, size_t room, int flags, struct sockaddr *who, socklen_t *length);
size_t __fread_chk(void *to, size_t room, size_t size, size_t count, FILE *from);
size_t __fread_unlocked_chk(void *to, size_t room, size_t size, size_t count, FILE *from);

FILLING(ssize_t, __read_chk, (int fd, void *to, size_t size, size_t room), (fd, to, size, room), gate_enter(to, size))
FILLING(ssize_t, __pread_chk, (int fd, void *to, size_t size, off_t at, size_t room), (fd, to, size, at, room), gate_enter(to, size))
FILLING(ssize_t, __pread64_chk, (int fd, void *to, size_t size, off64_t at, size_t room), (fd, to, size, at, room), gate_enter(to, size))
FILLING(ssize_t, __recv_chk, (int fd, void *to, size_t size, size_t room, int flags), (fd, to, size, room, flags), gate_enter(to, size))
FILLING(ssize_t, __recvfrom_chk, (int fd, void *to, size_t size, size_t room, int flags, struct sockaddr *who, socklen_t *length),
	(fd, to, size, room, flags, who, length), gate_enter(to, size))
FILLING(size_t, __fread_chk, (void *to, size_t room, size_t size, size_t count, FILE *from), (to, room, size, count, from), gate_enter(to, size * count))
FILLING(size_t, __fread_unlocked_chk, (void *to, size_t room, size_t size, size_t count, FILE *from), (to, room, size, count, from),
	gate_enter(to, size * count))
