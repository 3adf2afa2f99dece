/*
 * libndbridge-heap.so: what its files share. ndheap.h is the public face; build.sh builds it:
 *
 *     internal/sharedheap/preload/build.sh OUT.so [FLAGS...]
 *
 * Loaded with LD_PRELOAD, the library stands in front of malloc. Large blocks that array frameworks
 * ask for come from memory that is a file from the start (memfd), so that another process can map
 * the very pages; everything else goes on to the next malloc, usually the libc's.
 *
 * A program that began without the library can load it *late*, by dlopen. Then it has no blocks of its own, and stands in front of
 * nothing until the first chunk is to be promoted (links.c).
 *
 *   start.c      constructor: configuration, environment, fork handlers
 *   interpose.c  the malloc family
 *   mappings.c   what the program maps over blocks, and its advice about them
 *   next.c       the malloc behind ours, and memory while it is being looked up
 *   callers.c    which callers are array frameworks
 *   blocks.c     a block's life: take, give, resize, find
 *   arenas.c     freed blocks that are kept warm
 *   trim.c       which of them go back to the system, and when
 *   supply.c     new blocks, cut from files
 *   segments.c   the files
 *   descriptors.c their descriptors
 *   closing.c    programs that close descriptors which they did not open
 *   threads.c    the plugin's threads, which Python does not warn of
 *   listen.c     lets hosts come to this process
 *   enter.c      lets in who has come
 *   starts.c     interpreters that a program of a host starts
 *   names.c      what they call it
 *   ranges.c     the addresses
 *   limits.c     limits that the program sets on itself
 *   captures.c   captures of CUDA graphs
 *   lookups.c    dlsym
 *   links.c      programs that began without the library
 *   fork.c       what a fork does to all this
 *   child.c      and to the child
 *   aside.c      what it leaves to be done after it
 *   rights.c     changes of the rights to pages beside it
 *   promote.c    how a block that a fork has frozen becomes shared again
 *   keeper.c     the thread that does so, and has the files
 *   gate.c       which keeps promotion and system calls that write into blocks apart
 *   filling.c    these system calls
 *   outside.c    memory of the libc's malloc that becomes shared when a host looks
 *   maps.c       what the kernel says of its mappings
 *   api.c        ndheap.h
 *
 * Vocabulary. A *granule* is 64 KiB of addresses. A *block* is one allocation, a whole number of
 * granules of one of the size *classes*. A *segment* is one memfd: an *own* segment holds one block
 * of 4 MiB or more, a *pool* segment many: smaller ones, and all where descriptors are scarce. A block
 * is *warm* when it is free but has kept its pages, *cold* when its pages are gone. A segment is
 * *frozen* by a fork, or when the program maps something over a block of it: from then on it is mapped privately.
 * A block of it is *promoted* into an own segment at the same addresses, and leaves the frozen one. A *chunk* is
 * memory that glibc's malloc has mapped for one request; it becomes a block, outside the range, to be promoted.
 *
 * Locks, in the order in which they may be taken: fork_lock, trim_lock, the arenas' locks by index,
 * supply_lock, outside_lock. Nothing calls into the libc's malloc, the loader or the program while it holds one.
 */
#ifndef NDHEAP_HEAP_H
#define NDHEAP_HEAP_H

#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ndheap.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

#define GRANULE (64 * KIB)
#define HUGE_PAGE (2 * MIB)
#define DEFAULT_THRESHOLD (64 * KIB)
#define SMALLEST_THRESHOLD (4 * KIB)

/*
 * malloc, calloc and realloc return the 16th byte of a block, as the libc does for large blocks.
 * Page-aligned blocks would be faster, but jax.device_put aliases NumPy memory that is aligned to 64
 * bytes instead of copying it, and programs that never saw that happen would begin to.
 */
#define SKEW ((size_t)16)

/* The most addresses that are reserved; tests and sanitizers need less. */
#ifndef HEAP_RESERVE
#define HEAP_RESERVE (1024 * GIB)
#endif
#define SMALLEST_RESERVE (256 * MIB)
/* Of a heap without blocks of its own only the tables are, which so many addresses would need. */
#define LATE_RESERVE (2 * GIB)

/* Of blocks from here on the kernel is asked whether it would grant their memory. */
#define LARGE_MIN MIB
/* Blocks from here on get a file of their own; large ones, too, in a heap that has less than PLENTY of addresses. */
#define OWN_FILE_MIN (4 * MIB)
#define PLENTY (64 * GIB)

/* So much warm memory is kept in any case: small blocks come and go there. */
#define KEEP_MIN (8 * (int64_t)MIB)
/* The same while somebody sees to it that nothing stays for long, and what is kept then though nothing was asked for again. */
#define KEEP_MIN_TENDED (32 * (int64_t)MIB)
#define KEEP_TENDED (256 * (int64_t)MIB)

/*
 * The largest files that many blocks share: large ones, small ones, and all where descriptors are scarce. The fewer files, the sooner a
 * fork has frozen them. But what a fork has frozen of a file keeps its pages until the last block of it has gone.
 */
#define LARGE_POOL_SIZE (8 * MIB)
#define POOL_SIZE (256 * MIB)
#define SCARCE_POOL_SIZE (4 * GIB)

/* Descriptors of the heap have numbers below this one. */
#define DESCRIPTOR_NUMBERS 65536u

#define CLASSES 104
#define CLASS_OUTSIDE CLASSES /* of blocks outside the range, whatever their size */
#define ARENAS 8

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define EXPORTED __attribute__((visibility("default")))

/* A mutex in one word: no dependence on a pthread version, and a forked child can simply reset it. */
struct lock {
	_Atomic uint32_t word; /* 0: free, 1: held, 2: held and somebody sleeps */
};
void lock_slow(struct lock *l);
void unlock_slow(struct lock *l);

static inline bool lock_try(struct lock *l) {
	uint32_t free_word = 0;
	return atomic_compare_exchange_strong_explicit(&l->word, &free_word, 1, memory_order_acquire, memory_order_relaxed);
}

static inline void lock(struct lock *l) {
	if (unlikely(!lock_try(l)))
		lock_slow(l);
}

static inline void unlock(struct lock *l) {
	if (unlikely(atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2))
		unlock_slow(l);
}

static inline void lock_reset(struct lock *l) { atomic_store_explicit(&l->word, 0, memory_order_relaxed); }

/* Says what happened, names this library, and aborts. The text must end without a newline. */
_Noreturn void die(const char *text, const void *p);

/* Where the current call of an exported function returns to. */
#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))

/* start.c */

/* Requests below this go straight to the next malloc; SIZE_MAX while the heap takes none. */
extern _Atomic size_t heap_threshold;
/* The threshold as configured, for reports. */
extern size_t heap_threshold_configured;
/* enum ndheap_state. It leaves NDHEAP_IDLE once, under supply_lock. */
extern _Atomic uint32_t heap_state;
/* Stops all further allocation from the heap and remembers why. Freeing goes on. */
void heap_off(enum ndheap_state why);

/*
 * next.c: the functions behind ours. Until they are known the pointers lead to functions that find them. An older libc
 * lacks closefrom, and has pthread_create in a library of its own: where they are not, they are NULL.
 */

struct next_malloc {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void (*free)(void *);
	void *(*memalign)(size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
	size_t (*malloc_usable_size)(void *);
	int (*close)(int);
	void *(*mmap)(void *, size_t, int, int, int, off_t);
	int (*munmap)(void *, size_t);
	void *(*mremap)(void *, size_t, size_t, int, ...);
	int (*madvise)(void *, size_t, int);
	int (*mprotect)(void *, size_t, int);
	FILE *(*fopen)(const char *, const char *);
	FILE *(*fopen64)(const char *, const char *);
	void (*closefrom)(int);
	int (*dup2)(int, int);
	int (*dup3)(int, int, int);
	int (*posix_spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], char *const[]);
	int (*posix_spawnp)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], char *const[]);
	int (*pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	int (*pthread_cond_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
	ssize_t (*read)(int, void *, size_t);
	ssize_t (*pread)(int, void *, size_t, off_t);
	ssize_t (*pread64)(int, void *, size_t, off64_t);
	ssize_t (*recv)(int, void *, size_t, int);
	ssize_t (*recvfrom)(int, void *, size_t, int, struct sockaddr *, socklen_t *);
	ssize_t (*readv)(int, const struct iovec *, int);
	ssize_t (*preadv)(int, const struct iovec *, int, off_t);
	ssize_t (*preadv64)(int, const struct iovec *, int, off64_t);
	ssize_t (*preadv2)(int, const struct iovec *, int, off_t, int);
	ssize_t (*preadv64v2)(int, const struct iovec *, int, off64_t, int);
	ssize_t (*process_vm_readv)(pid_t, const struct iovec *, unsigned long, const struct iovec *, unsigned long, unsigned long);
	ssize_t (*getrandom)(void *, size_t, unsigned);
	int (*getentropy)(void *, size_t);
	ssize_t (*recvmsg)(int, struct msghdr *, int);
	int (*recvmmsg)(int, struct mmsghdr *, unsigned, int, struct timespec *);
	size_t (*fread)(void *, size_t, size_t, FILE *);
	size_t (*fread_unlocked)(void *, size_t, size_t, FILE *);
	ssize_t (*__read_chk)(int, void *, size_t, size_t);
	ssize_t (*__pread_chk)(int, void *, size_t, off_t, size_t);
	ssize_t (*__pread64_chk)(int, void *, size_t, off64_t, size_t);
	ssize_t (*__recv_chk)(int, void *, size_t, size_t, int);
	ssize_t (*__recvfrom_chk)(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *);
	size_t (*__fread_chk)(void *, size_t, size_t, size_t, FILE *);
	size_t (*__fread_unlocked_chk)(void *, size_t, size_t, size_t, FILE *);
};
extern struct next_malloc next;
void next_resolve(void);
bool boot_owns(const void *p);
size_t boot_size(const void *p);

/* Where what is behind us is looked for: RTLD_NEXT, or, if the library was loaded late, the libc. */
extern void *next_library;

/* links.c */

/* Whether the program's malloc is the libc's. self: the library's handle. */
bool links_to_libc(void *self);
/* In such a program, puts ours in front of the libc's functions, in every library that there is by now. False: that cannot be. */
bool links_take(void);

/* lookups.c */

/* The dlsym behind ours. */
extern void *(*next_dlsym)(void *, const char *);
/* The libc's function of a version, or NULL. */
void *next_version(const char *name, const char *version);
/* Where a library lies, or those parts of it that have some rights (PF_X ...). */
struct span {
	uintptr_t from, to;
};
struct dl_phdr_info;
struct span span_of(const struct dl_phdr_info *library, uint32_t rights);
static inline bool in_span(const struct span *s, uintptr_t at) { return at >= s->from && at < s->to; }
extern struct span libc_span, own_span; /* the libc's, and ours */

/* Whether the library was loaded by a program that ran. */
extern bool heap_late;
/* Finds the libc and that out, before all else. From then on dlsym gives ours in place of the libc's functions. */
void lookups_start(void);

/* captures.c */

/* What the caller gets instead of a function of the driver's. */
void *captures_in_front(const char *name, void *function);
/* For a forked child, in which CUDA does not work. */
void captures_reset(void);

/* threads.c */

/* Finds Python's code. */
void threads_start(uintptr_t in_python); /* the address of some function of Python's, or 0 */
/* Begins a thread that takes none of the program's signals. Gives an error number. */
int threads_run(void *(*run)(void *), void *argument);

/* hurry.c */

/* Whether this thread asks for Python's lock at once, the next time that it waits for it. */
void hurry(bool on);

/* keeper.c */

/* Has the keeper do something, and answers with what it does. False: there can be none. For one thread at a time. */
bool keeper_run(bool (*run)(const void *), const void *argument);
/* After a fork: has the keeper do what was left to be done. False: there is none. */
bool keeper_tidies(void);
/* The keeper's thread. */
int keeper_task(void);
/* Files that it has open. */
uint32_t keeper_count(void);
/* Gives a new file one of the keeper's numbers, or closes it and answers -1. For the keeper. */
int keeper_take(int fd);
/* Has the keeper close one. Wants no lock. */
void keeper_close(int fd);
/* In a forked child, which has none. */
void keeper_forget(void);

/* listen.c */

/*
 * Listens in a directory, under a name; NULL or "": that of the script. say: complains if that cannot be. children_only: only
 * forked children do.
 */
void listen_start(const char *directory, const char *name, const char *say, bool children_only);
/* Whether a descriptor is the one that listens. */
bool listen_owns_fd(int fd);

/* enter.c */

/* Finds what is needed to call Python. False: this is no Python. */
bool enter_find_python(void);
/* Lets in who comes to a socket, for as long as it is the one that listens. */
void enter_wait(int socket, bool (*listens)(int socket));
/* Whether nobody was let into this process yet. */
bool enter_idle(void);
void enter_before_fork(void);
void enter_in_parent(void);
void enter_in_child(void);

/* starts.c */

/* Notes what is passed on to interpreters that this process starts, and takes it out of the environment. */
void starts_keep(void);

/* names.c */

/* Finds what this program is called: as given, if it is, and with its rank. */
void names_find(const char *given, char *name, size_t size);

/* callers.c */

/* Sets the names of the libraries whose large blocks are shared; see the file for the syntax. */
void callers_configure(const char *list);
/* Whether the code that will be returned to belongs to such a library. No lock of ours may be held. */
bool caller_in_scope(const void *return_address);

/* ranges.c: addresses. Everything wants supply_lock, but range_owns and owner_of. */

struct range {
	uintptr_t base;
	_Atomic size_t size; /* 0 until the addresses are reserved; written after base */
};
extern struct range range;
static inline bool range_in_use(void) { return atomic_load(&range.size) != 0; }

/* Reserves addresses, and tables for what will lie there. NDHEAP_ON, or why there will be no heap. */
enum ndheap_state range_reserve(void);
/* Whether this is a child of vfork, in which the range is still the parent's. Wants no lock. */
bool range_borrowed(void);
/* Notes in a forked child that the range is its own. */
void range_inherit(void);
/* Finds size bytes of unused, inaccessible addresses, or answers 0. */
uintptr_t range_take(size_t size, size_t align);
/* Gives addresses back that are inaccessible again. */
void range_give(uintptr_t base, size_t size);
/* Unmaps what lies there and leaves the addresses inaccessible. Wants no lock. False: the kernel refuses. */
bool range_clear(uintptr_t base, size_t size);
/* Gives unused addresses at the end up, so that the range is no more than a quarter of limit if it can be. */
void range_shrink(size_t limit);
/* Gives all unused addresses at the end up if a request of that size could need them under RLIMIT_AS. */
void range_yield(size_t size);
/* Whether malloc could get that much more memory from the kernel. Wants no lock. */
bool affordable(size_t size);
/* Makes the tables of blocks and segments hold that many, if they can. */
bool blocks_grow(uint32_t count);
bool segments_grow(uint32_t count);

/* Whether some of these addresses are the heap's. */
static inline bool range_touches(const void *p, size_t bytes) {
	size_t size = atomic_load_explicit(&range.size, memory_order_acquire);
	return size && (uintptr_t)p < range.base + size && (uintptr_t)p + (bytes ? bytes : 1) > range.base;
}

static inline bool range_owns(const void *p) {
	size_t size = atomic_load_explicit(&range.size, memory_order_acquire);
	return (uintptr_t)p - range.base < size;
}

/* Which block each granule belongs to; 0: none. */
extern _Atomic uint32_t *owners;
void owners_set(uintptr_t base, size_t size, uint32_t block);

static inline uint32_t owner_of(const void *p) {
	return atomic_load_explicit(&owners[((uintptr_t)p - range.base) / GRANULE], memory_order_acquire);
}

/* segments.c: files. Everything wants supply_lock, unless it says otherwise. */

enum segment_state { SEGMENT_UNUSED, SEGMENT_SHARED, SEGMENT_FROZEN };

struct segment {
	uintptr_t base;
	uint64_t size;
	uint64_t used;    /* pool: bytes that were cut off into blocks */
	uint32_t taken;   /* pool: blocks that are not cold */
	uint64_t seen;    /* outside the range: how much of it was mapped where it should be when it was frozen */
	uint64_t id;      /* never used again in this process */
	uint64_t inode;   /* which file fd must be: a program may close descriptors that are not its own */
	int32_t fd;       /* -1: closed */
	bool kept;        /* fd is the keeper's */
	char *copy;       /* in a fork: what the child gets if it cannot be frozen, or NULL */
	uint32_t live;    /* frozen: blocks that are not freed yet; counted by freeze */
	uint32_t pinned;  /* frozen: blocks with pins on it, for whose sake fd is still open */
	uint32_t elder;   /* the frozen segment that the block was in before, while somebody has pins on it; 0: none */
	uint32_t elder_pins;
	uint32_t next;    /* unused ones form a list */
	uint8_t state;
	bool pool;
	bool guarded; /* a live block of it is; counted by freeze */
	bool granted; /* the same of what others may write to */
};
extern struct segment *segments; /* 0 is never used */
extern uint32_t segment_count;

/* Makes a file of that size, whole granules, and maps it; 0 if it cannot be had now. */
uint32_t segment_open(uint64_t size, bool pool);
/* Moves a file and its mapping to where there are addresses for that size. False: nothing has changed. */
bool segment_grow(struct segment *s, uint64_t size);
/* The same for addresses at which something is mapped, which stays. kept: the file is the keeper's, who calls this. */
uint32_t segment_adopt(uintptr_t base, uint64_t size, bool kept);
/* Closes the file and gives the addresses back; nothing may be mapped there any more. */
void segment_forget(uint32_t index);
/* Closes the file only: the addresses are another one's. */
void segment_abandon(uint32_t index);
/* Closes the file. Wants no lock if nobody else can know the segment. */
void segment_close_fd(struct segment *s);
/* Whether fd still is the file that it should be. Wants no lock, and changes nothing. */
bool segment_fd_valid(const struct segment *s);
/* Bytes of the file that have memory or swap, UINT64_MAX if unknown. Wants no lock. */
uint64_t segment_resident(const struct segment *s);

/* descriptors.c */

/* The inode of the file that a number is held for, or 0. All numbers that were ever held are below the end. */
extern _Atomic uint64_t descriptor_held[DESCRIPTOR_NUMBERS];
extern _Atomic uint32_t descriptor_end;
/* Files that are open. */
uint32_t descriptor_count(void);
/* Whether there is a descriptor for one more block, of that size, to have a file of its own. */
bool descriptor_spare(size_t size);
/* Moves a descriptor to a number that the program does not use, or closes it and answers -1. */
int descriptor_raise(int fd);
/* Gives a new file one of the heap's numbers, or closes it and answers -1. kept: one of the keeper's. Wants supply_lock. */
int descriptor_take(int fd, bool kept, uint64_t *inode);
/* The file system that all files of the heap lie in. */
uint64_t descriptor_device(void);
/* Whether a descriptor still is that file. Fills status. Wants no lock. */
bool descriptor_is(int fd, uint64_t inode, struct stat *status);
/* Closes a descriptor, if it still is that file. */
void descriptor_close(int fd, uint64_t inode);

/* blocks.c */

enum phase {
	BLOCK_NONE,      /* the record is unused, or the block is unusable until its segment is closed */
	BLOCK_LIVE,      /* the program's */
	BLOCK_PENDING,   /* freed by the program while pinned, or outside the range while it forked */
	BLOCK_RELEASING, /* on its way from the program to the warm ones */
	BLOCK_WARM,      /* in an arena */
	BLOCK_COLD,      /* in the supply's list of its class (pool blocks only) */
	BLOCK_DROPPING,  /* on its way from the warm ones to the system */
};

/* Why a block is mapped privately. */
enum frozen {
	NOT_FROZEN,
	FROZEN_BY_FORK,
	FROZEN_BESIDE, /* the program has mapped something over another block of the segment, or limits itself */
	FROZEN_OVER,   /* and over this one: what lies there is the program's business until it frees the block */
	FROZEN_OUTSIDE, /* a chunk that was never shared yet: it is in no segment */
};
#define PHASE_MASK 7u
#define GRANTED 8u /* somebody outside may write to it; goes with the last pin */
#define PIN 16u    /* one pin */

struct block {
	_Atomic uint32_t state; /* phase, GRANTED, and pins above */
	uint32_t segment;
	uintptr_t base;
	_Atomic uintptr_t user;    /* what the program holds: base, or a little above it */
	_Atomic uint64_t size;     /* bytes that the program asked for */
	uint64_t hot;              /* bytes from base that may be other than zero; outside the range: all of them */
	uint32_t newer, older;     /* neighbours by the time of their release, in the arena */
	uint32_t above, below;     /* neighbours in the arena's stack of this class; below also: free lists */
	_Atomic uint32_t released; /* when it became warm; ms, wraps */
	uint8_t class;
	uint8_t arena; /* the one that it is warm in */
	uint8_t frozen; /* enum frozen; written with all locks held, so any one of them is enough to read it */
	_Atomic bool guarded; /* the program has changed the rights to pages, or locked some */
};
_Static_assert(sizeof(struct block) == 64, "a record is one cache line: every call touches one");

extern struct block *blocks; /* 0 is never used */
extern uint32_t block_count;

static inline enum phase phase_of(uint32_t state) { return (enum phase)(state & PHASE_MASK); }
static inline uint32_t pins_of(uint32_t state) { return state / PIN; }

unsigned class_of(size_t bytes);
size_t class_size(unsigned class);

static inline bool block_outside(const struct block *b) { return b->class == CLASS_OUTSIDE; }
static inline size_t block_extent(const struct block *b) { return block_outside(b) ? b->hot : class_size(b->class); }

/*
 * Takes a block, or answers NULL if none can be had; keeps errno. align is a power of two. With zero,
 * all size bytes read as zero. With reserve > size the block can grow in place up to that.
 */
void *block_take(size_t size, size_t align, bool zero, size_t reserve);
/* Frees a pointer of this heap; aborts if it is none. Keeps errno. */
void block_give(void *p);
/* The program gives a block's pointer p back; aborts if it did before. True: nobody has a pin on it, and block_release comes next. */
bool block_leave(uint32_t index, const void *p);
/* The size that was asked for. Aborts if p is not a live block. */
size_t block_usable(const void *p);
/* Changes the size of a live block without a copy, and answers with where it is then; NULL: that cannot be. */
void *block_resize(void *p, size_t size);
/* The block that p points into, or 0; only a pin makes the answer last. */
uint32_t block_find(const void *p);
/* Makes a free block the program's, under the lock that guards it. Answers with its old hot. */
uint64_t block_begin(struct block *b, size_t size, size_t align);
/* Ends the life of a RELEASING block. */
void block_release(uint32_t index);

/* arenas.c */

struct arena {
	struct lock lock;
	uint32_t newest;
	_Atomic uint32_t oldest;
	_Atomic uint32_t top[CLASSES]; /* stacks of warm blocks */
	int64_t live, warm;            /* bytes that are not in the totals yet */
	uint64_t taken, reused, given; /* calls */
} __attribute__((aligned(64)));

extern struct arena arenas[ARENAS];
extern _Atomic int64_t total_live, total_warm;

/* Takes a warm block of the class, or answers 0. dirty: its old hot. */
uint32_t arena_take(unsigned class, size_t size, size_t align, uint64_t *dirty);
/* Counts a block that is not from an arena. */
void arena_count_fresh(size_t size);
/* Makes a RELEASING block warm. False: a fork froze it, so it cannot be. */
bool arena_give(uint32_t index);
/* Changes the size of a live block. */
void arena_resize(struct block *b, size_t size);
/* Takes the block that is warm for longest out, DROPPING, if that is idle_ms or more; else 0. */
uint32_t arena_take_oldest(uint32_t now, uint32_t idle_ms);
/* Takes a warm block out. Wants the arena's lock. */
void arena_remove(struct arena *a, uint32_t index);
/* Forgets all warm blocks: for a forked child. */
void arenas_forget(void);
/* ms since some start; wraps. */
uint32_t now_ms(void);

/* trim.c */

extern struct lock trim_lock;
/* A fork waits for trim_lock: whoever has it ends soon. */
extern _Atomic bool trim_hurry;
extern _Atomic uint64_t dropped_count;
/* How many bytes of warm blocks are kept. */
int64_t trim_keep(void);
/* Gives the rest back. */
void trim_excess(void);
/* Makes room for a fresh block: the heap grows only with what the program holds. */
void trim_for(size_t size);
/* In the parent, after a fork: does what was left to be done, unless the keeper does, or somebody calls ndheap_trim. Wants no lock. */
void trim_after_fork(void);
/* Does it, unless another one has trim_lock: then the next fork does, or the next ndheap_trim. */
void trim_aside(void);
/* In a forked child: nobody calls ndheap_trim there yet. */
void trim_forget(void);
/* Notes that a fresh block was made, which may show that one like it went back too early. Wants supply_lock. */
void trim_made(unsigned class, size_t size);

/* supply.c */

extern struct lock supply_lock;
extern uint64_t refused_count;
/* Reserves addresses, unless that was done: programs that never make a large request pay nothing. Wants supply_lock. */
bool supply_ready(void);
/* Makes a new live block of the class, or answers 0. dirty as above. */
uint32_t supply_take(unsigned class, size_t size, size_t align, uint64_t *dirty);
/* Moves a live block with its file to where there is room for that size. False: nothing has changed. */
bool supply_grow(uint32_t index, size_t size);
/* Gives the pages behind the new end of a live block back. */
void supply_shrink(uint32_t index, size_t size);
/* Takes a DROPPING block back that has no pages any more, or is unmapped. Wants supply_lock. */
void supply_return(uint32_t index);
/* Ends the life of a RELEASING block of a frozen segment. False: it is not frozen any more. Wants no lock. */
bool supply_release_frozen(uint32_t index);
/* The same where its pages are gone. Wants supply_lock. */
void supply_end_frozen(uint32_t index);
/* Forgets cold blocks and the pool where they are frozen. Wants supply_lock. */
void supply_forget_frozen(void);
/*
 * In a forked child: forgets a shared file of the parent's, and its blocks, all of which were free. ours: the addresses
 * are still the heap's. Wants supply_lock, and no block in an arena.
 */
void supply_forget(uint32_t segment, bool ours);
/* Moves a frozen block into a segment of its own, which was adopted for it and is mapped there. Wants all locks. */
void supply_melt(uint32_t index, uint32_t segment);
/* Makes a block of a chunk, or answers 0. Wants supply_lock. */
uint32_t supply_outside(uintptr_t from, uintptr_t to, uintptr_t user);
/* Ends a block outside the range that has no pins. Wants supply_lock. */
void supply_end_outside(uint32_t index);
/* A block's pins on the file that it lies in now. Wants supply_lock. */
uint32_t supply_pins(const struct block *b);
/* Notes that a pin was taken back which was taken on a file; 0: the one it lies in now. Wants supply_lock. */
void supply_unpinned(const struct block *b, uint64_t segment);
/* Moves a pin from an earlier file of the block to that which it lies in. False: there is none on it. Wants supply_lock. */
bool supply_repin(const struct block *b, uint64_t segment);

/* fork.c: what makes blocks private */

extern const bool fork_separates; /* else a test has built the heap */
extern uint64_t fork_count;
enum { FORK_COUNTERS = 16 };
extern uint64_t *fork_counters[FORK_COUNTERS]; /* ndheap_count_forks; supply_lock */
/* Takes all locks. A promotion must be halted, or be the caller. */
void lock_all(void);
void unlock_all(void);
void fork_prepare(void);
void fork_parent(void);
void fork_child(void);
/* Taken before all others by what a fork must not come in between of; a fork has it to its end. */
extern struct lock fork_lock;
/* child.c: from here on handlers of others run while this thread forks, or no more. Wants all locks. */
void fork_open(bool yes);
/* Whether they do. */
bool fork_is_open(void);
/* In a child, before handlers of others use memory that was shared: does what fork_child would do when they are done. */
void fork_catch_up(void);
/*
 * Freezes the blocks in [from, to), since the program is about to map something over them. False: these addresses
 * are not the program's, or it cannot be done. Wants no lock.
 */
bool fork_yield(uintptr_t from, uintptr_t to);
/* The same for what of the addresses lies in blocks outside the range. False: it cannot be done. */
bool fork_yield_outside(uintptr_t from, uintptr_t to);
/* Freezes all blocks, for good. Wants no lock. */
void fork_separate(void);

/* aside.c */

/* Makes room for the page tables of segments that are moved aside until aside_close, which gives back what is left. Wants trim_lock. */
void aside_open(bool (*moves)(const struct segment *));
void aside_close(void);
/* Moves the page tables of a shared segment aside, if it can, so that it is soon replaced. Wants trim_lock. */
void aside_move(const struct segment *s);
/* Unmaps what was moved aside, until somebody forks. Wants trim_lock. */
void aside_clear(void);
/* In a forked child, which has nothing of it. */
void aside_forget(void);

/* rights.c */

/* Before and after rights to pages of blocks change. In between, for a moment, no signal is delivered, and no fork looks at them. */
uint64_t rights_change(void);
void rights_changed(uint64_t mask);
/* The same for who looks at them: none changes in between. */
uint64_t rights_keep(void);
void rights_let_change(uint64_t mask);
/* In a forked child. */
void rights_forget(void);

/* promote.c */

/* Sees to it that no promotion is under way until as many calls of promote_resume. Wants no lock; for signal handlers, too. */
void promote_halt(void);
void promote_resume(void);
/* Sees to it that no block in [p, p + size) is being promoted, until promote_let_on. As promote_halt, at no cost of other blocks. */
void promote_keep_off(const void *p, size_t size);
void promote_let_on(void);
/* In a forked child: forgets what the parent's threads have begun. */
void promote_forget(void);
/* Runs something on the keeper while nothing is promoted and nobody forks. False: it has not run, or has failed. */
bool promote_run(bool (*run)(const void *), const void *argument);
/* Whether the block is being promoted. */
bool promote_moves(uint32_t index);
/* "always", "never" or "safe", as which anything else counts: see enum ndheap_promotion. */
void promote_configure(const char *text);

/* outside.c */

extern struct lock outside_lock;
/* All chunks lie in [outside_from, outside_to), and there is none if outside_end is 0. */
extern _Atomic uintptr_t outside_from, outside_to;
extern _Atomic uint32_t outside_end;
#define OUTSIDE_MAPPED 2u /* glibc's IS_MMAPPED, in the word before what malloc gives */

/* tunables: glibc's, in the environment of the program's start; NULL: none. */
void outside_start(const char *tunables);
/* Takes note of what the next malloc has given for a large request, and answers with it. Keeps errno. */
void *outside_note(void *p);
/* Notes that the program has given advice about pages that a file would not follow. */
void outside_advise(const void *p, size_t size);
/* Whether some of these addresses lie in chunks. Wants no lock; for signal handlers, too. */
bool outside_knows(const void *p, size_t size);
/* Before the libc frees or resizes p: forgets its chunk, or answers with the block that it has become, which stays. */
uint32_t outside_leave(const void *p);
/* Frees p if its chunk has become a block; else its chunk is forgotten, and the libc must free it. */
bool outside_give(void *p);
/* The block of the chunk that p points into, or 0. */
uint32_t outside_block(const void *p);
/* The same for an address. to: where the block ends; if there is none, where the next one begins. Wants outside_lock to be exact. */
uint32_t outside_block_from(uintptr_t at, uintptr_t *to);
/* The same, but makes the block. Wants supply_lock. */
uint32_t outside_adopt(const void *p);
/* Gives the memory of a RELEASING block back to the libc. Wants no lock. */
void outside_release(uint32_t index);
/* Ends a block, but not its memory. Wants supply_lock. */
void outside_end_block(uint32_t index);
/*
 * Gives files back whose memory was freed by a way that leads around us. To find them takes longer the more mappings there are,
 * so of the calls since a block became shared every one does so whose number is a power of two.
 */
void outside_tidy(void);
/* The number of the next call. */
extern _Atomic uint32_t outside_age;
/* Whether a segment's memory was freed or resized by a way that leads around us: what lies there may be anyone's. */
static inline bool outside_torn(const struct segment *s) { return !range_owns((void *)s->base) && s->seen != s->size; }
/* In a forked child: unmaps the memory of a block that the parent is about to free. */
void outside_unmap(const struct block *b);
/*
 * Makes the first page of a shared chunk a mapping of its own. The libc's own realloc makes a chunk larger by mremap, which
 * would map more than the file has. But the kernel moves one mapping only, and where it refuses, the libc copies. It is a page, since
 * all that lies behind may be gone by then. advice: what the program has given there.
 */
void outside_part(uintptr_t base, int advice);
#define OUTSIDE_PART ((size_t)sysconf(_SC_PAGESIZE))
/* Whether there is still a chunk of the libc's where a block is: by a way that leads around us it may have been freed, or resized. */
bool outside_stands(const struct block *b);
/* Whether a block's mapping is one that may be replaced. For the keeper. */
bool outside_ordinary(const struct block *b);

static inline bool outside_touches(const void *p, size_t bytes) {
	return unlikely((uintptr_t)p < atomic_load_explicit(&outside_to, memory_order_relaxed) &&
			(uintptr_t)p + bytes > atomic_load_explicit(&outside_from, memory_order_relaxed)) &&
	       outside_knows(p, bytes);
}

/* Whether what glibc's malloc gave is a chunk that may be known. */
static inline bool outside_maybe(const void *p) {
	return unlikely(atomic_load_explicit(&outside_end, memory_order_relaxed)) && p && ((const size_t *)p)[-1] & OUTSIDE_MAPPED;
}

/* maps.c */

/* Whether all mappings in [from, to) are ordinary ones, which may be replaced. For the keeper. */
bool maps_ordinary(uintptr_t from, uintptr_t to);
/* Finds out how much there is left of shared memory outside the range, for outside_torn. Wants all locks. */
void maps_find_torn(void);
/* The same for all files. False: it cannot be found out. Wants supply_lock. For the keeper. */
bool maps_count(void);
/* Writes to a page and changes no byte, beside whoever else writes there. */
void touch(uintptr_t at);
/* Maps a file, from an offset on, privately over what is mapped there. */
bool map_privately(uintptr_t base, uint64_t size, int rights, int fd, uint64_t offset);
/* Copies private pages at once, without changing a byte that another thread may be writing. */
void maps_copy(uintptr_t from, uintptr_t to);
/* Maps privately what is left of a segment, with the rights that it has, and nothing else. For the keeper, if the file is its own. */
bool maps_separate(const void *segment);
/*
 * Puts empty memory of the program's own, with the rights that are there, over what [from, to), which is not shared, has of mappings of the heap's
 * files. On any thread.
 */
bool maps_empty(uintptr_t from, uintptr_t to);

/* Whether the kernel says what is mapped, now: not without /proc, or if no descriptor is left. On any thread. */
bool maps_known(void);
/* Reads memory of this process, in which there may be none any more. */
bool maps_read(void *to, uintptr_t from, size_t size);

/* gate.c */

/* Keeps calls from writing to [from, from + size) until gate_open. False: one writes there, or *give_up is not 0. */
bool gate_close(uintptr_t from, size_t size, const _Atomic uint32_t *give_up);
void gate_open(void);
/* In a forked child: forgets the calls of the parent's threads. */
void gate_forget(void);

enum { GATE_NO_PLACE = -1, GATE_NOT_OURS = -2 };
int gate_take_place(const void *p, size_t size);
void gate_leave_place(int place);

/* Whether something that can be promoted lies there. */
static inline bool gate_guards(const void *p, size_t size) { return unlikely(range_touches(p, size)) || outside_touches(p, size); }

/* Begins a call that may write to [p, p + size), and answers with its place, for gate_leave. Keeps errno. */
static inline int gate_enter(const void *p, size_t size) {
	return gate_guards(p, size) ? gate_take_place(p, size) : GATE_NOT_OURS;
}

static inline void gate_leave(int place) {
	if (unlikely(place != GATE_NOT_OURS))
		gate_leave_place(place);
}

#endif
