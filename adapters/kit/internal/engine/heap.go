package engine

import (
	"os"
	"sync/atomic"
	"time"

	"github.com/ndbridge/ndbridge/adapters/kit/internal/routes"
	"github.com/ndbridge/ndbridge/core/contract"
	"github.com/ndbridge/ndbridge/internal/gpu"
	"github.com/ndbridge/ndbridge/internal/sharedheap"
	"github.com/ndbridge/ndbridge/internal/shm"
)

// heap is the shared heap of this process as kit knows heaps.
type heap struct {
	*sharedheap.Heap
	maps   *shm.Mappings
	tended chan bool // whether somebody sees to it that memory goes back to the system
}

// idle is how long the memory of blocks stays that the program has freed, in case that it wants them again.
const idle = 2 * time.Second

// openHeap finds the shared heap, and says what is to be said of it. The heap is nil if there is none that
// works. From then on memory that the program does not use again goes back to the system.
func openHeap() (_ routes.Heap, state func() string) {
	shared, ok := sharedheap.Open()
	if !ok {
		shared, ok = sharedheap.OpenLate()
	}
	if !ok {
		return nil, func() string { return "off: the program was started without it" }
	}
	state = func() string {
		if state := shared.Stats().State; !shared.Late() || !state.Works() {
			return state.String()
		}
		return "off: the program was started without it; what malloc maps for one array is shared in place"
	}
	if !shared.Stats().State.Works() {
		return nil, state
	}
	h := heap{shared, new(shm.Mappings), make(chan bool, 1)}
	go h.tend() // as long as the process lives, as the heap does
	h.tended <- true
	h.maps.Hold()
	return h, state
}

// tend gives memory back that the program does not use again, while it is tended.
func (h heap) tend() {
	tick := time.NewTicker(idle / 2)
	for {
		select {
		case <-tick.C:
			h.Trim(idle)
		case on := <-h.tended:
			if on {
				h.Trim(idle) // from now on the heap knows that somebody does
				tick.Reset(idle / 2)
			} else {
				tick.Stop()
				h.Untend()
			}
		}
	}
}

// Tend says whether to see to it that the heap gives memory back, as is done from the beginning. A heap that nobody tends keeps less.
func (p *Program) Tend(on bool) {
	if h, ok := p.heap.(heap); ok {
		h.tended <- on
	}
}

// Works implements [kit.Heap].
func (h heap) Works() bool { return !h.Late() && h.Stats().State.Works() }

// countForks adds 1 to count before each fork that takes what is pinned in h, which may be nil, away from
// others. count stays valid until it is called with it again, and on is false.
func countForks(h routes.Heap, count *atomic.Uint64, on bool) {
	if h, ok := h.(heap); ok {
		h.CountForks(count, on)
	}
}

// Pin implements [kit.Heap].
func (h heap) Pin(addr uintptr, writable bool) (routes.HeapBlock, bool) {
	b, ok := h.Heap.Pin(addr)
	if !ok {
		return routes.HeapBlock{}, false
	}
	block := h.block(addr, &b, writable)
	if b.Shareable && block.Backing == nil {
		h.Unpin(addr, b.Segment)
	}
	return block, true
}

// Repin implements [kit.Heap].
func (h heap) Repin(addr uintptr, segment uint64, writable bool) (routes.HeapBlock, bool) {
	b, ok := h.Heap.Repin(addr, segment)
	if !ok {
		return routes.HeapBlock{}, false
	}
	return h.block(addr, &b, writable), true
}

// block is how kit knows a block that is pinned, if it is shareable: for another process to write to, if writable.
func (h heap) block(addr uintptr, b *sharedheap.Block, writable bool) routes.HeapBlock {
	switch {
	case b.Freed:
		return routes.HeapBlock{Freed: true}
	case b.Outside:
		return routes.HeapBlock{Outside: true}
	case b.Frozen:
		return routes.HeapBlock{Reason: contract.ReasonFrozen, Offset: b.Offset, Available: b.Available}
	case !b.Shareable, !h.maps.Shows(addr, b.Available, b.Device, b.Inode, b.Offset): // the heap is not told of mappings by bare system calls
		return routes.HeapBlock{Reason: contract.ReasonOutsideHeap, Segment: b.Segment, Offset: b.Offset, Available: b.Available}
	}
	if writable {
		h.GrantWrite(addr)
	}
	return routes.HeapBlock{
		Backing:   heapSegment{task: b.Task, fd: b.FD, key: heapKey{b.Segment, b.SegmentSize}},
		Segment:   b.Segment,
		Offset:    b.Offset,
		Available: b.Available,
	}
}

// Unpin implements [kit.Heap].
func (h heap) Unpin(addr uintptr, segment uint64) { h.Heap.Unpin(addr, segment) }

// Promote implements [kit.Heap]. It refuses in a program for which the kernel or a device writes to memory when it
// likes: nothing says where.
func (h heap) Promote(addr uintptr, policy contract.PromotePolicy) bool {
	return !h.maps.Filled() && h.Heap.Promote(addr, promotion(policy), !gpu.Active())
}

// Promotes implements [kit.Heap].
func (h heap) Promotes(policy contract.PromotePolicy) bool { return h.Heap.Promotes(promotion(policy)) }

// promotion is how the heap knows a policy.
func promotion(policy contract.PromotePolicy) sharedheap.Promotion {
	switch policy {
	case contract.PromoteAlways:
		return sharedheap.Always
	case contract.PromoteSafe:
		return sharedheap.Safe
	case contract.PromoteNever:
		return sharedheap.Never
	}
	return sharedheap.AsConfigured
}

// heapSegment is one file of the heap: a backing while a block in it is pinned.
type heapSegment struct {
	task, fd int
	key      heapKey
}

type heapKey struct {
	segment uint64
	size    int64
}

func (s heapSegment) Key() any     { return s.key }
func (s heapSegment) Size() int64  { return s.key.size }
func (s heapSegment) Sealed() bool { return true }
func (s heapSegment) Close() error { return nil } // the heap's

func (s heapSegment) Open(writable bool) (*os.File, error) { return shm.Again(s.task, s.fd, writable) }
