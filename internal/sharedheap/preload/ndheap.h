/*
 * The C ABI of libndbridge-heap.so, the shared heap of ndbridge.
 *
 * The library is loaded with LD_PRELOAD. Whoever shares memory inside the same process (the ndbridge
 * plugin) finds these symbols with dlsym(RTLD_DEFAULT, ...) and never links against the library. In a program that began
 * without it, the plugin loads it by dlopen, with RTLD_NODELETE, and calls ndheap_join. All
 * functions may be called from any thread, at any time, and leave errno alone.
 *
 * The layout below is frozen: change it only together with NDHEAP_ABI.
 */
#ifndef NDHEAP_H
#define NDHEAP_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define NDHEAP_ABI 9

/*
 * Bits of ndheap_block.flags. Without NDHEAP_SHAREABLE the memory can only be copied. If the others do not say why,
 * the program has mapped something there or beside it, or has closed the file by a bare system call.
 */
#define NDHEAP_SHAREABLE 1u /* fd, segment, segment_size and offset name the very pages */
#define NDHEAP_FROZEN 2u    /* the block lived through a fork: its pages are private to this process */
#define NDHEAP_OUTSIDE 4u   /* it is no block yet, but memory that may become one, or is about to: what is mapped there means nothing */

/* Where a pointer lies, and how another process can map the same pages. */
struct ndheap_block {
	int32_t fd;            /* descriptor of the file, lent while the block is pinned; -1: none */
	int32_t task;          /* whose descriptor: that of a thread with a table of its own; 0: this process' */
	uint64_t device, inode; /* of the file */
	uint32_t flags;        /* NDHEAP_SHAREABLE, NDHEAP_FROZEN, NDHEAP_OUTSIDE */
	uint64_t segment;      /* id of the file, never used again in this process; 0: none */
	uint64_t segment_size; /* bytes of the file; it never shrinks (sealed) */
	uint64_t offset;       /* of the pointer, in the file; in the block, where a block cannot be shared */
	uint64_t available;    /* bytes from the pointer to the end of what the program allocated */
};

/* What the heap is doing: ndheap_stats.state. */
enum ndheap_state {
	NDHEAP_IDLE = 0,        /* nothing large enough was asked for yet */
	NDHEAP_ON = 1,          /* large blocks of the frameworks are shareable */
	NDHEAP_OFF = 2,         /* switched off by a threshold of 0 */
	NDHEAP_NO_MEMFD = 3,    /* memfd_create is forbidden here */
	NDHEAP_NO_ADDRESSES = 4, /* no address range: RLIMIT_AS or RLIMIT_DATA is in force */
	NDHEAP_STRICT_COMMIT = 5, /* vm.overcommit_memory is 2: shared pages could fail with SIGBUS */
};

/* When memory that exists is made shareable. */
enum ndheap_promotion {
	NDHEAP_AS_CONFIGURED = 0, /* by NDBRIDGE_HEAP_PROMOTE in the program's environment: "always", "safe" or "never"; else where it is safe */
	NDHEAP_ALWAYS = 1,        /* even where a system call of the program's could fail by it, if it is none of the libc's usual ones */
	NDHEAP_SAFE = 2,          /* only where none can fail */
	NDHEAP_NEVER = 3,
};

struct ndheap_stats {
	uint32_t state;         /* enum ndheap_state */
	uint32_t descriptors;   /* files that are open now */
	uint64_t threshold;     /* smaller requests never come to the heap; bytes */
	uint64_t live_bytes;    /* asked for by the program and not freed */
	uint64_t live_blocks;
	uint64_t warm_bytes;    /* freed, and kept with their pages for the next request of that size */
	uint64_t warm_blocks;
	uint64_t pinned_blocks; /* those with at least one pin */
	uint64_t frozen_blocks; /* live, and private to this process */
	uint64_t taken;         /* requests served by the heap since the start of the process */
	uint64_t reused;        /* of these, the ones that got a warm block */
	uint64_t given;         /* blocks freed by the program */
	uint64_t refused;       /* requests in scope that went to the next malloc, for want of resources */
	uint64_t dropped;       /* warm blocks whose pages went back to the system */
	uint64_t forks;         /* forks of this process, and of its ancestors, since the heap is on */
};

/* The version of this header that the library was built with. */
extern const uint32_t ndheap_abi;

/*
 * Makes the heap work in a program that has loaded it late, before anything else is asked of it. Then the program has no blocks of the
 * heap's own: only memory for which ndheap_outside does not answer with 0 can become shareable. self is what dlopen gave; promote and tunables are what the
 * program had as NDBRIDGE_HEAP_PROMOTE and GLIBC_TUNABLES in its environment when it began, or NULL.
 * 0: done. -1: the program's malloc is not the libc's, or the library was preloaded; nothing else may be called then.
 */
int ndheap_join(void *self, const char *promote, const char *tunables);

/*
 * Describes the live block that p points into (interior pointers too) and pins it: until it is
 * unpinned as often as it was pinned, its memory is neither reused nor given back, even if the
 * program frees it, and fd stays open.
 * 0: done. A block that cannot be shared (see flags) is described but not pinned.
 * -1: p does not point to memory of this heap.
 * -2: it does, but to no live block: what was there was freed, or nothing ever was there.
 */
int ndheap_pin(const void *p, struct ndheap_block *out);

/*
 * Says that somebody outside may write to the pinned block that p points into, until it is unpinned:
 * a fork then gives the program a copy of its own at once, so that no later write from outside
 * reaches program or child.
 * 0: done. -1: p does not point into a pinned block.
 */
int ndheap_grant(const void *p);

/*
 * Takes one pin back. segment is what the pin was given with: the block may lie in another file by now. 0: done.
 * -1: p does not point into a pinned block.
 */
int ndheap_unpin(const void *p, uint64_t segment);

/*
 * Moves a pin on the block that p points into from the file that it was given with to the file that the block lies in
 * now, and describes that. Files come to differ by ndheap_promote after a fork.
 * 0: done. 1: the block is private: promote it first. -1: the program has freed what was pinned, or it cannot be shared.
 */
int ndheap_repin(const void *p, uint64_t segment, struct ndheap_block *out);

/*
 * Whether the array of that size at p fills memory that the libc has mapped for one request alone, and that can be
 * promoted: answers with the bytes of that memory, or 0. With due, it also answers with 0 while a copy is the better choice:
 * at the first look of a host, and for a while after a promotion has failed.
 */
size_t ndheap_outside(const void *p, size_t size, int due);

/* Says that the libc's memory that p points into was copied for a host. */
void ndheap_copied(const void *p);

/* Says that it could not be promoted: a copy is the better choice until there were twice as many. */
void ndheap_refuse(const void *p);

/*
 * Makes the block that p points into shareable again, if a fork has made it private, or the libc's memory for which
 * ndheap_outside does not answer with 0: the memory moves into a new file, in place, beside whoever writes to it. That
 * takes about a second for a GiB, in which a writer waits for some 100 us at a time. Devices must not write to the memory, nor the kernel by itself (io_uring). Whoever has mapped the old file
 * goes on seeing what was there at the fork. how: where system calls of the program may fail by it. One block is promoted at a time; other calls wait.
 * 0: done. -1: the block is as it was. It is no such block; or the kernel cannot (before Linux 6.4, or userfaultfd is
 * forbidden); or its mapping has properties that would be lost; or there is no memory, descriptor or thread for it; or the
 * program has forked, mapped, freed or protected something each of a few times that this was tried, or waits for input that goes there.
 *
 * together: where that goes well, small blocks beside it that a fork has made private, too, and that are pinned, follow in the same turn:
 * for each of them a turn takes longer than the move. What is said of devices holds for all of them then.
 */
int ndheap_promote(const void *p, enum ndheap_promotion how, int together);

/* Whether how and the kernel allow ndheap_promote at all in this process; each block may have reasons of its own. */
int ndheap_promotes(enum ndheap_promotion how);

/*
 * Gives the pages of blocks back to the system that have been free for at least idle_ms. The heap has no
 * thread that does so by itself: call it every second or so. It ends early if a fork waits for it. Answers
 * with the bytes that it gave back. With NDHEAP_UNTENDED it says that nobody calls it any more, and gives back what is too much then.
 */
#define NDHEAP_UNTENDED UINT32_MAX
uint64_t ndheap_trim(uint32_t idle_ms);

/* Fills out and answers with 0. It looks at every block: for tests and reports. */
int ndheap_stats(struct ndheap_stats *out);

/*
 * Adds 1 to *count before each fork of this process that separates its arrays from whoever has mapped
 * them, and before anything is separated; never in a child. Likewise before the program maps something over arrays.
 * The memory stays the caller's, until it calls this again with on = 0. There is room for 16 counts.
 */
void ndheap_count_forks(uint64_t *count, int on);

/*
 * Makes a descriptor of the caller's one that the program cannot close by the libc's functions, as the heap's own are:
 * for as long as the number is that file's. -1: none is any more. Not for two threads at once.
 */
void ndheap_hold_fd(int fd);

/*
 * Holds captures of CUDA graphs off, for a moment, until ndheap_let_captures: a thread that begins one waits.
 * 0: done, and none is under way. -1: one is, and nothing is held.
 */
int ndheap_hold_captures(void);
void ndheap_let_captures(void);

/* Creates a thread, as pthread_create does, of which Python does not warn the program when it forks. */
int ndheap_create_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

/*
 * Lets hosts come to this process at a socket, whose path it is, instead of where they came before; forked children listen, too, if
 * the path ends with a point and the number of the process. Gives an error number.
 */
int ndheap_listen(const char *path);

/* Whether hosts can come to this process, or soon can. */
int ndheap_listens(void);

/* Says that a host which was let in has looked at something, or will not: the main thread, which steps aside for that, may go on. */
void ndheap_looked(void);

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(sizeof(struct ndheap_block) == 64, "frozen ABI: raise NDHEAP_ABI");
_Static_assert(offsetof(struct ndheap_block, task) == 4, "frozen ABI: raise NDHEAP_ABI");
_Static_assert(offsetof(struct ndheap_block, inode) == 16, "frozen ABI: raise NDHEAP_ABI");
_Static_assert(offsetof(struct ndheap_block, flags) == 24, "frozen ABI: raise NDHEAP_ABI");
_Static_assert(offsetof(struct ndheap_block, segment) == 32, "frozen ABI: raise NDHEAP_ABI");
_Static_assert(offsetof(struct ndheap_block, segment_size) == 40, "frozen ABI: raise NDHEAP_ABI");
_Static_assert(offsetof(struct ndheap_block, offset) == 48, "frozen ABI: raise NDHEAP_ABI");
_Static_assert(offsetof(struct ndheap_block, available) == 56, "frozen ABI: raise NDHEAP_ABI");
_Static_assert(sizeof(struct ndheap_stats) == 112, "frozen ABI: raise NDHEAP_ABI");
_Static_assert(offsetof(struct ndheap_stats, threshold) == 8, "frozen ABI: raise NDHEAP_ABI");
_Static_assert(offsetof(struct ndheap_stats, forks) == 104, "frozen ABI: raise NDHEAP_ABI");
#endif

#endif
