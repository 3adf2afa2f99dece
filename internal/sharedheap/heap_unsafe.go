package sharedheap

/*
#cgo CFLAGS: -I${SRCDIR}/preload
#cgo LDFLAGS: -ldl
#cgo noescape ndheap_call_pin
#cgo nocallback ndheap_call_pin
#cgo nocallback ndheap_call_grant
#cgo nocallback ndheap_call_unpin
#cgo noescape ndheap_call_repin
#cgo nocallback ndheap_call_repin
#cgo nocallback ndheap_call_promote
#cgo nocallback ndheap_call_promotes
#cgo nocallback ndheap_call_outside
#cgo nocallback ndheap_call_copied
#cgo nocallback ndheap_call_refuse
#cgo nocallback ndheap_call_trim
#cgo noescape ndheap_call_stats
#cgo nocallback ndheap_call_stats
#cgo nocallback ndheap_call_count_forks
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include "ndheap.h"

struct ndheap_functions {
	int (*pin)(const void *, struct ndheap_block *);
	int (*grant)(const void *);
	int (*unpin)(const void *, uint64_t);
	int (*repin)(const void *, uint64_t, struct ndheap_block *);
	int (*promote)(const void *, enum ndheap_promotion, int);
	int (*promotes)(enum ndheap_promotion);
	size_t (*outside)(const void *, size_t, int);
	void (*copied)(const void *);
	void (*refuse)(const void *);
	uint64_t (*trim)(uint32_t);
	int (*stats)(struct ndheap_stats *);
	void (*count_forks)(uint64_t *, int);
};

static void *ndheap_late; // the library, if it was loaded late

static void *ndheap_function(const char *name) { return dlsym(ndheap_late ? ndheap_late : RTLD_DEFAULT, name); }

// Where the library that this code is in lies, or NULL.
static const char *ndheap_beside(void) {
	Dl_info info;
	return dladdr((void *)ndheap_beside, &info) ? info.dli_fname : NULL;
}

struct ndheap_search {
	const char *name, *found;
};

static int ndheap_is_it(struct dl_phdr_info *library, size_t size, void *data) {
	struct ndheap_search *s = data;
	const char *base = library->dlpi_name ? strrchr(library->dlpi_name, '/') : NULL;
	if (!base || strcmp(base + 1, s->name) != 0) return 0;
	s->found = library->dlpi_name;
	return 1;
}

// Loads the library into a process that began without it, unless this is a forked child in which it is, of its parent.
static int ndheap_load(const char *path, const char *promote, const char *tunables) {
	struct ndheap_search s = {.name = strrchr(path, '/') + 1};
	dl_iterate_phdr(ndheap_is_it, &s);
	void *library = dlopen(s.found ? s.found : path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	const uint32_t *abi = library ? dlsym(library, "ndheap_abi") : NULL;
	if (!abi || *abi != NDHEAP_ABI)
		return -1;
	int (*join)(void *, const char *, const char *) = (int (*)(void *, const char *, const char *))dlsym(library, "ndheap_join");
	if (!join || join(library, promote, tunables) != 0)
		return -1;
	ndheap_late = library;
	return 0;
}

// Finds the library in this process. Without one that speaks this ABI all functions are NULL.
static struct ndheap_functions ndheap_find(void) {
	struct ndheap_functions f = {0}, none = {0};
	const uint32_t *abi = ndheap_function("ndheap_abi");
	if (!abi || *abi != NDHEAP_ABI)
		return none;
	f.pin = (int (*)(const void *, struct ndheap_block *))ndheap_function("ndheap_pin");
	f.grant = (int (*)(const void *))ndheap_function("ndheap_grant");
	f.unpin = (int (*)(const void *, uint64_t))ndheap_function("ndheap_unpin");
	f.repin = (int (*)(const void *, uint64_t, struct ndheap_block *))ndheap_function("ndheap_repin");
	f.promote = (int (*)(const void *, enum ndheap_promotion, int))ndheap_function("ndheap_promote");
	f.promotes = (int (*)(enum ndheap_promotion))ndheap_function("ndheap_promotes");
	f.outside = (size_t (*)(const void *, size_t, int))ndheap_function("ndheap_outside");
	f.copied = (void (*)(const void *))ndheap_function("ndheap_copied");
	f.refuse = (void (*)(const void *))ndheap_function("ndheap_refuse");
	f.trim = (uint64_t (*)(uint32_t))ndheap_function("ndheap_trim");
	f.stats = (int (*)(struct ndheap_stats *))ndheap_function("ndheap_stats");
	f.count_forks = (void (*)(uint64_t *, int))ndheap_function("ndheap_count_forks");
	return f.pin && f.grant && f.unpin && f.repin && f.promote && f.promotes && f.outside && f.copied && f.refuse && f.trim && f.stats && f.count_forks ? f : none;
}

// Gives the ABI of a library that this code does not speak, or 0.
static uint32_t ndheap_other(void) {
	const uint32_t *abi = dlsym(RTLD_DEFAULT, "ndheap_abi");
	return abi && *abi != NDHEAP_ABI ? *abi : 0;
}

// Addresses are integers in Go: they are Python's memory, which the collector must not look at.
static int ndheap_call_pin(struct ndheap_functions f, uintptr_t p, struct ndheap_block *out) {
	return f.pin((const void *)p, out);
}
static int ndheap_call_grant(struct ndheap_functions f, uintptr_t p) { return f.grant((const void *)p); }
static int ndheap_call_unpin(struct ndheap_functions f, uintptr_t p, uint64_t segment) {
	return f.unpin((const void *)p, segment);
}
static int ndheap_call_repin(struct ndheap_functions f, uintptr_t p, uint64_t segment, struct ndheap_block *out) {
	return f.repin((const void *)p, segment, out);
}
static int ndheap_call_promote(struct ndheap_functions f, uintptr_t p, enum ndheap_promotion how, int together) {
	return f.promote((const void *)p, how, together);
}
static int ndheap_call_promotes(struct ndheap_functions f, enum ndheap_promotion how) { return f.promotes(how); }
static size_t ndheap_call_outside(struct ndheap_functions f, uintptr_t p, size_t size, int due) {
	return f.outside((const void *)p, size, due);
}
static void ndheap_call_copied(struct ndheap_functions f, uintptr_t p) { f.copied((const void *)p); }
static void ndheap_call_refuse(struct ndheap_functions f, uintptr_t p) { f.refuse((const void *)p); }
static uint64_t ndheap_call_trim(struct ndheap_functions f, uint32_t idle) { return f.trim(idle); }
static int ndheap_call_stats(struct ndheap_functions f, struct ndheap_stats *out) { return f.stats(out); }
static void ndheap_call_count_forks(struct ndheap_functions f, void *count, int on) { f.count_forks(count, on); }
*/
import "C"

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/ndbridge/ndbridge/internal/running"
)

// Heap is the shared heap of this process. Its methods are safe for concurrent use, and do not
// need the GIL. None of them may be called in a forked child.
type Heap struct {
	call      C.struct_ndheap_functions
	threshold int64
	late      bool
}

// Open finds the heap that was preloaded into this process. It answers false if there is none, or
// one of another version of the C interface.
func Open() (*Heap, bool) {
	h := &Heap{call: C.ndheap_find()}
	if h.call.pin == nil {
		return nil, false
	}
	h.threshold = h.Stats().Threshold
	return h, true
}

// OpenLate loads the heap into a process that began without it, from the folder of the library that this code is in. It answers
// false if there is none, one of another version, or if the program's malloc is not the libc's. Such a heap has no memory of its
// own: see [Heap.Late].
func OpenLate() (*Heap, bool) {
	beside := C.ndheap_beside()
	if beside == nil {
		return nil, false
	}
	file := filepath.Join(filepath.Dir(C.GoString(beside)), running.HeapLibrary)
	path, promote, tunables := C.CString(file), C.CString(os.Getenv("NDBRIDGE_HEAP_PROMOTE")), C.CString(os.Getenv("GLIBC_TUNABLES"))
	defer C.free(unsafe.Pointer(path))
	defer C.free(unsafe.Pointer(promote))
	defer C.free(unsafe.Pointer(tunables))
	if C.ndheap_load(path, promote, tunables) != 0 {
		return nil, false
	}
	h, ok := Open()
	if ok {
		h.late = true
	}
	return h, ok
}

// Late reports that the program began without the heap. Then only memory becomes shareable, by Promote, that the program's malloc has
// mapped for one array alone.
func (h *Heap) Late() bool { return h.late }

// Other gives the version of the C interface that a preloaded heap of another release speaks, and ours. It gives 0 for the
// former if there is no such heap. Without its pins the heap would give memory that a host looks at to other arrays.
func Other() (theirs, ours int) { return int(C.ndheap_other()), C.NDHEAP_ABI }

// Threshold is the size in bytes from which on blocks are shareable; 0 if the heap is switched off.
func (h *Heap) Threshold() int64 { return h.threshold }

// Pin describes the live block that addr points into and, if it is shareable, pins it until Unpin
// has been called as often as Pin. Any address inside the block will do. It answers false if addr
// is not in the heap.
func (h *Heap) Pin(addr uintptr) (Block, bool) {
	var b C.struct_ndheap_block
	switch C.ndheap_call_pin(h.call, C.uintptr_t(addr), &b) {
	case 0:
	case -2:
		return Block{Freed: true}, true
	default:
		return Block{}, false
	}
	return blockOf(&b), true
}

// Repin moves one pin of the block that addr points into from the file that it was given with to the file that the block lies
// in now, which it describes. Of a block that is Frozen the pin stays where it is: Promote comes first. It answers false if the
// program has freed what was pinned, or has mapped something there.
func (h *Heap) Repin(addr uintptr, segment uint64) (Block, bool) {
	var b C.struct_ndheap_block
	ok := C.ndheap_call_repin(h.call, C.uintptr_t(addr), C.uint64_t(segment), &b) >= 0
	return blockOf(&b), ok
}

func blockOf(b *C.struct_ndheap_block) Block {
	return Block{
		Shareable:   b.flags&C.NDHEAP_SHAREABLE != 0,
		Frozen:      b.flags&C.NDHEAP_FROZEN != 0,
		Outside:     b.flags&C.NDHEAP_OUTSIDE != 0,
		FD:          int(b.fd),
		Task:        int(b.task),
		Device:      uint64(b.device),
		Inode:       uint64(b.inode),
		Segment:     uint64(b.segment),
		SegmentSize: int64(b.segment_size),
		Offset:      int64(b.offset),
		Available:   int64(b.available),
	}
}

// GrantWrite says that another process may write to the pinned block at addr until it is unpinned.
// A fork of the program then gives the program a copy of the block at once, so that no later write
// from outside reaches the program or its child by way of pages that neither has written to yet.
// It answers false if addr is not in a pinned block.
func (h *Heap) GrantWrite(addr uintptr) bool {
	return C.ndheap_call_grant(h.call, C.uintptr_t(addr)) == 0
}

// Unpin takes back one pin of the block that addr points into, which Pin gave with this segment. If the program has
// freed the block, its memory is reused after the last one. It answers false if addr is not in a pinned block.
func (h *Heap) Unpin(addr uintptr, segment uint64) bool {
	return C.ndheap_call_unpin(h.call, C.uintptr_t(addr), C.uint64_t(segment)) == 0
}

// Outside reports whether the array of n bytes at addr fills memory outside the heap that Promote can make shareable, which
// it knows from then on, until the program frees it. With due, it also answers false while a copy is the better choice: before there
// was one, and for a while after Refuse.
func (h *Heap) Outside(addr uintptr, n int64, due bool) bool {
	var waits C.int
	if due {
		waits = 1
	}
	return C.ndheap_call_outside(h.call, C.uintptr_t(addr), C.size_t(n), waits) != 0
}

// Copied says that an array in the memory outside the heap at addr was copied for a host.
func (h *Heap) Copied(addr uintptr) { C.ndheap_call_copied(h.call, C.uintptr_t(addr)) }

// Refuse says that the memory outside the heap at addr was not promoted. It is not due again until there were twice as many
// copies.
func (h *Heap) Refuse(addr uintptr) { C.ndheap_call_refuse(h.call, C.uintptr_t(addr)) }

// Promote makes the frozen block that addr points into shareable again, or the memory outside the heap, in place, while the
// program may go on writing to it. It takes up to a second for a GiB. It answers false if the block is as it was: the kernel cannot do it, there
// is no memory, or the program got in between. The memory must not be written to by a device, or by the kernel on its own.
// Pins and mappings of the block's earlier file stay good, and show what was there at the fork. how says whether system calls of the
// program may fail by it. together has small blocks beside it that a fork has made private, too, and that are pinned, follow at once. No
// device may write to them either.
func (h *Heap) Promote(addr uintptr, how Promotion, together bool) bool {
	also := C.int(0)
	if together {
		also = 1
	}
	return C.ndheap_call_promote(h.call, C.uintptr_t(addr), C.enum_ndheap_promotion(how), also) == 0
}

// Promotes reports whether how and the kernel allow Promote at all in this process.
func (h *Heap) Promotes(how Promotion) bool {
	return C.ndheap_call_promotes(h.call, C.enum_ndheap_promotion(how)) != 0
}

// Trim gives the memory of blocks back to the system that have been free for at least idle, and
// answers with the number of bytes. The heap has no thread that does so by itself. Trim ends early if the
// program is about to fork.
func (h *Heap) Trim(idle time.Duration) int64 {
	ms := min(max(idle.Milliseconds(), 0), C.NDHEAP_UNTENDED-1)
	return int64(C.ndheap_call_trim(h.call, C.uint32_t(ms)))
}

// Untend says that nobody calls Trim any more. The heap keeps less then of what the program has freed.
func (h *Heap) Untend() { C.ndheap_call_trim(h.call, C.NDHEAP_UNTENDED) }

// CountForks adds 1 to count before each fork of this process that freezes blocks, and before it does, and likewise
// before the program maps something over blocks. The heap keeps the pointer, which must not be to Go's memory, until CountForks
// is called with it again, and on is false. There is room for 16.
func (h *Heap) CountForks(count *atomic.Uint64, on bool) {
	var switched C.int
	if on {
		switched = 1
	}
	C.ndheap_call_count_forks(h.call, unsafe.Pointer(count), switched)
}

// Stats reads the heap's counters. It looks at every block, so it is for tests and reports.
func (h *Heap) Stats() Stats {
	var s C.struct_ndheap_stats
	C.ndheap_call_stats(h.call, &s)
	return Stats{
		State:        State(s.state),
		Threshold:    int64(s.threshold),
		Descriptors:  int(s.descriptors),
		LiveBytes:    int64(s.live_bytes),
		LiveBlocks:   int64(s.live_blocks),
		WarmBytes:    int64(s.warm_bytes),
		WarmBlocks:   int64(s.warm_blocks),
		PinnedBlocks: int64(s.pinned_blocks),
		FrozenBlocks: int64(s.frozen_blocks),
		Taken:        uint64(s.taken),
		Reused:       uint64(s.reused),
		Given:        uint64(s.given),
		Refused:      uint64(s.refused),
		Dropped:      uint64(s.dropped),
		Forks:        uint64(s.forks),
	}
}
