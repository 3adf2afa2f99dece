// Package sharedheap speaks to the shared heap of this process, if it has one.
//
// The shared heap is libndbridge-heap.so (its C sources are in the directory preload), which the
// host loads into a Python program with LD_PRELOAD. Large blocks that array frameworks allocate then
// lie in memory files from birth, so that another process can map the very pages. The plugin, which
// lives in the same process, finds the library with dlsym and never links against it: without the
// library [Open] says so, and the plugin copies.
//
// A pinned block is neither reused nor given back until it is unpinned, even if the program frees
// it. Pins do not keep a framework from writing to memory that it still owns.
package sharedheap

import "strconv"

// Block says where a pointer lies and how another process can map the same pages.
type Block struct {
	// Shareable says that FD, Segment, SegmentSize and Offset name the very pages. If it is false the
	// memory can only be copied, and the block was not pinned.
	Shareable bool
	// Frozen says why it is not shareable: a fork made the block's pages private to this process. Otherwise, the
	// program has mapped something over the block or beside it, or has closed its file.
	Frozen bool
	// Outside says that addr is not the heap's, but lies in memory that may become so by Promote, or is about to: what is
	// mapped there means nothing. Nothing else is known then.
	Outside bool
	// Freed says that addr is the heap's, but lies in no live block: what was there was freed, or nothing
	// ever was there. Nothing else is known then.
	Freed bool
	// FD is the descriptor of the file. It belongs to the heap and stays open while the block is pinned.
	FD int
	// Task is the thread in whose table of descriptors FD is; 0: this process'.
	Task int
	// Device and Inode are those of the file, as fstat tells them.
	Device, Inode uint64
	// Segment identifies the file. Ids are never used again within a process.
	Segment uint64
	// SegmentSize is the size of the file in bytes. The file is sealed: it never shrinks.
	SegmentSize int64
	// Offset is where in the file the pointer lies, in bytes; in the block, if it is Frozen.
	Offset int64
	// Available is the number of bytes from the pointer to the end of what the program allocated.
	Available int64
}

// State says what the heap is doing.
type State uint32

// The states. The numbers are those of enum ndheap_state in ndheap.h.
const (
	Idle         State = iota // nothing large enough was asked for yet
	On                        // large blocks of the frameworks are shareable
	Off                       // switched off by a threshold of 0
	NoMemfd                   // memfd_create is forbidden, for instance by a seccomp filter
	NoAddresses               // a limit on address space or data (ulimit -v, ulimit -d) is in force
	StrictCommit              // vm.overcommit_memory is 2, under which shared pages could fail with SIGBUS
)

// Promotion says when memory that exists is made shareable.
type Promotion uint32

// The promotions. The numbers are those of enum ndheap_promotion in ndheap.h.
const (
	AsConfigured Promotion = iota // as the program's environment says
	Always                        // even where a system call of the program could fail by it
	Safe                          // only where none can
	Never
)

// Works reports whether blocks allocated from now on can be shareable.
func (s State) Works() bool { return s == Idle || s == On }

// String gives "on", or why the heap is not.
func (s State) String() string {
	switch s {
	case Idle, On:
		return "on"
	case Off:
		return "off: the threshold is 0"
	case NoMemfd:
		return "off: memfd_create is forbidden"
	case NoAddresses:
		return "off: a limit on address space or data is in force"
	case StrictCommit:
		return "off: vm.overcommit_memory is 2"
	default:
		return "state " + strconv.FormatUint(uint64(s), 10)
	}
}

// Stats are the heap's counters. Bytes are those that the program asked for, unless said otherwise.
type Stats struct {
	State        State
	Threshold    int64  // smaller requests never come to the heap
	Descriptors  int    // files that are open now
	LiveBytes    int64  // allocated and not freed
	LiveBlocks   int64  // likewise
	WarmBytes    int64  // freed, and kept with their pages for the next request of that size
	WarmBlocks   int64  // likewise
	PinnedBlocks int64  // blocks with at least one pin
	FrozenBlocks int64  // live ones that are private to this process
	Taken        uint64 // requests served since the start of the process
	Reused       uint64 // of these, the ones that got a warm block
	Given        uint64 // blocks freed by the program
	Refused      uint64 // requests that were left to the libc for want of resources
	Dropped      uint64 // warm blocks whose pages went back to the system
	Forks        uint64 // forks of this process, and of its ancestors, since the heap is in use
}
