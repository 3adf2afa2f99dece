/*
 * A CUDA driver without a GPU: what the files of this library share. README.md says what it simulates.
 *
 * All state is guarded by sim_lock. Work of streams runs on threads of its own, one for each stream
 * that has work, without the lock.
 */
#ifndef CUDASIM_H
#define CUDASIM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include "cudasim.h"

#define EXPORTED __attribute__((visibility("default")))
#define TRY(expression)                           \
	do {                                      \
		CUresult tried = (expression);    \
		if (tried != CUDA_SUCCESS)        \
			return tried;             \
	} while (0)

enum { MAX_DEVICES = 8, BLOCK_ALIGN = 512 };
#define SEGMENT_SIZE ((size_t)2 << 20)

static inline size_t round_up(size_t n, size_t to) {
	return (n + to - 1) / to * to;
}

/* ------------------------------------------------------------------------------ the library, sim.c */

extern pthread_cond_t sim_changed; /* told whenever anything changes that somebody may wait for */

void lock(void);
void unlock(void);
void wait_for_change(void); /* with the lock */

/* Takes the lock if the driver may be used by this process. */
CUresult enter(void);
/* As enter, and gives the calling thread's context, which must be sound. */
struct context;
CUresult enter_context(struct context **current);
/*
 * Waits for all streams of the context, or of all contexts of the device, and lets no other call in until
 * they are done, as the real driver does where memory is taken from a GPU. NVIDIA's reference says of
 * cuMemFree that it "may perform implicit synchronization" unless the memory is a pool's, and its programming
 * guide that allocating and freeing memory synchronizes all streams. Seen on an H100 (driver 580): while
 * cuMemFreeHost waited for a stream that waited for a word, no other thread's call came back. For
 * registered memory, IPC mappings, physical memory and modules nothing is promised: a real driver may
 * not wait, but who relies on that is wrong, so this one does.
 */
void settle_context(struct context *c);
void settle_device(CUdevice device);
/* Waits, with the lock, and lets no other call in until *done is at least that much, or the context breaks. */
void wait_closed(const struct context *c, const uint64_t *done, uint64_t least);
/* Gives the lock back, and passes the result on. */
static inline CUresult leave(CUresult result) {
	unlock();
	return result;
}

/* A number from 0 to below n that depends on the seed, a and b only. */
unsigned seeded(unsigned a, unsigned b, unsigned n);
extern unsigned sim_delay_us; /* the longest delay of an operation */
uint64_t now_us(void);
void *must(void *allocated); /* ends the process when the host's memory is out: tests need no more */

/* What handles name: a handle is the address of its object while that is in the table. */
enum kind { CONTEXT = 1, STREAM, EVENT, MODULE, FUNCTION, POOL, GRAPH, PHYSICAL };
void handle_add(enum kind kind, const void *object);
bool handle_is(enum kind kind, const void *object);
void handle_remove(const void *object);

/* -------------------------------------------------------------------------------- faults, faults.c */

struct faults {
	unsigned oom_after;      /* this many more allocations succeed, then one fails; 0: none fails */
	bool no_export, no_peer, no_ipc, no_words, no_record, no_register;
	_Atomic int version;     /* of the driver */
	CUresult lost;           /* the state of every context, present and to come */
};
extern struct faults faults;
void faults_start(void);
CUresult allocation_fault(void); /* counts an allocation */

/* ------------------------------------------------------------------------------ devices, devices.c */

int device_count(void);
bool device_valid(CUdevice device);
/* Processes number the devices that they see by themselves; these numbers are the same for all. */
int device_number(CUdevice device);
CUdevice device_of_number(int number); /* -1: this process does not see it */
size_t *device_used(CUdevice device); /* bytes that this process has allocated there */
CUresult device_charge(CUdevice device, size_t bytes);
struct pool;
struct pool **device_pool(CUdevice device, bool current);

/* ----------------------------------------------------------------------------- contexts, context.c */

struct stream;
struct context {
	CUdevice device;
	bool primary, live;
	unsigned retained; /* a primary context lives while this is not 0; of others, those who attached it */
	unsigned flags;
	uint64_t id;
	CUresult error; /* sticky */
	struct stream *streams, *legacy;
	struct stream *recorder; /* where cuCtxRecordEvent waits; made when first needed */
	struct context *next;
};

struct context *context_current(void);     /* of this thread, with the lock; may be NULL or dead */
struct context *context_primary(CUdevice device); /* NULL if it is not active */
CUresult context_state(const struct context *c);
struct context *contexts_all(void);
void context_fail(struct context *c, CUresult error);

/* -------------------------------------------------------------------------------- memory, ranges.c */

/*
 * Addresses, and where this library itself reads and writes what is there (alias). Device memory
 * cannot be touched at its device address by the CPU, as on real hardware; it is mapped a second time.
 */
struct area {
	uintptr_t base;
	size_t size;
	char *alias;
	int fd;        /* of the memory, or -1 */
	bool foreign;  /* base is the program's own mapping, and alias may be */
	unsigned busy; /* operations that use it now */
	/* Of device memory that many blocks share: which units of BLOCK_ALIGN are taken. */
	unsigned char *taken;
	size_t blocks;
	CUdevice device;
	struct context *context;
	struct area *next;
};

enum memory { DEVICE_MEMORY, IPC_MEMORY, VMM_MEMORY, POOL_MEMORY, PINNED, REGISTERED, MANAGED };

/* One allocation as the program knows it. */
struct block {
	uintptr_t base;
	size_t size;
	enum memory memory;
	struct area *area;
	struct context *context; /* NULL: no one's */
	CUdevice device;
	uint64_t id;
	unsigned flags;
	bool readable, writable;
	uintptr_t range_base; /* what the RANGE attributes say */
	size_t range_size;
	struct pool *pool;
	struct physical *physical;
	size_t physical_offset;
	struct opening *opened; /* IPC: the allocations in it that are open */
	uint64_t origin; /* IPC: the memory's inode */
	bool freeing;    /* a free is under way on a stream */
};

struct area *area_new(size_t size, bool readable_here); /* addresses only */
bool area_back(struct area *a, size_t offset, size_t size, int fd, off_t at);
void area_unback(struct area *a, size_t offset, size_t size);
void area_free(struct area *a); /* waits until no operation uses it */

struct block *block_add(struct block b);
void block_remove(struct block *b); /* frees the description, not the memory */
struct block *block_find(uintptr_t address);
struct block *block_at(size_t index); /* by address; NULL past the last */
bool blocks_overlap(uintptr_t base, size_t size);
uint64_t next_id(void);

/* Where [address, address+size) lies, for use without the lock until unpin. NULL: no such memory. */
char *pin(uintptr_t address, size_t size, bool write, struct area **area);
void unpin(struct area *area);

int memory_file(const char *what, CUdevice device, size_t size); /* a memfd, or -1 */
/* Reads the name that memory_file gave; false if it is another file. */
bool memory_file_is(int fd, const char *what, CUdevice *device, size_t *size);

CUresult block_free(struct block *b); /* whatever kind it is */
void context_free_memory(struct context *c);
void segment_release(struct block *b);
void registered_release(struct block *b);
void ipc_release(struct block *b);
void pool_release(struct block *b);

/* ------------------------------------------------------------------------------- streams, queue.c */

/* A place in a stream's queue: reached when that many operations are done. */
struct mark {
	struct stream *stream;
	uint64_t position;
};
struct marks {
	struct mark *all;
	size_t count;
};
bool marks_reached(const struct marks *m);
void marks_add(struct marks *m, struct stream *s, uint64_t position);
void marks_copy(struct marks *to, const struct marks *from);
void marks_clear(struct marks *m);

struct operation {
	/* Runs without the lock; anything but success breaks the context. */
	CUresult (*run)(struct operation *o);
	void (*drop)(struct operation *o); /* frees what it holds; with the lock */
	struct marks after;                /* waits for these first */
	bool prompt;                       /* is not delayed */
	bool reads;                        /* takes its delay itself, between reading and writing */
	unsigned delay_us;                 /* then: how long */
	struct stream *stream;
	struct operation *next;
};

struct stream {
	struct context *context;
	uint64_t context_id; /* a primary context comes again, with another one */
	unsigned flags;
	int priority;
	uint64_t id;
	unsigned references;
	uint64_t queued, done, room; /* room: how many may be queued */
	struct operation *first, **last;
	bool working, destroyed;
	pthread_t thread; /* of a per-thread stream: whose it is */
	bool per_thread;
	struct graph *capture; /* not NULL while it is captured */
	bool capture_broken, capture_global; /* calls of other threads may break it */
	struct stream *next;
};

/* An operation of that size (its first member is a struct operation). */
void *operation_new(size_t size, CUresult (*run)(struct operation *));
void operation_free(struct operation *o);
/* Queues o, in the order that the default stream demands. Takes o. */
CUresult stream_queue(struct stream *s, struct operation *o);
uint64_t stream_position(const struct stream *s);
CUresult stream_finish(struct stream *s); /* waits for what is queued now */
struct stream *stream_create(struct context *c, unsigned flags, int priority);
void stream_retire(struct stream *s);
void stream_unreference(struct stream *s);
CUresult stream_of(struct context *c, CUstream handle, struct stream **s);
CUresult context_finish(struct context *c);
/*
 * Reads size bytes as slowly as the operation is, and some time more: they must stay the same from its
 * beginning to its end. Bytes that do not are garbage in the result, so that a race never passes
 * unseen. Free it.
 */
void *read_slowly(const struct operation *o, const void *from, size_t size, uint64_t more_us);
void pass_time(const struct operation *o, uint64_t us); /* ends early if the context breaks */
bool context_broken(const struct operation *o); /* without the lock: shall o give up? */

/* -------------------------------------------------------------------------------- others */

void context_free_events(struct context *c);
void context_free_modules(struct context *c);
CUresult graph_add(struct graph *g, struct operation *o);
bool context_captures(const struct context *c);
void context_break_captures(struct context *c);
CUresult capture_check(void); /* for calls that break captures, unless their thread is in relaxed mode */
void pause_us(unsigned us);

#endif
